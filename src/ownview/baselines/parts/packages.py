"""The packages behind the classical baselines: how they are found, what they are given, how they are kept repeatable.

Neither is imported before a model is fitted, so that `import ownview` stays light and works without the extra.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from ownview.base.errors import SettingError
from ownview.base.extras import how_to_install
from ownview.base.randomness import derive
from ownview.data.splitting.splits import Split


def package(name: str, wanted_by: str) -> Any:
    """A package of the extra `baselines`, or an error that says how to install it."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] != name.split(".", maxsplit=1)[0]:
            raise
        raise SettingError(
            f"{wanted_by} needs the package {name}, which is not installed: {how_to_install('baselines')}"
        ) from None


def training_matrix(split: Split) -> Any:
    """[n, m] SciPy's compressed rows: 1 where a user has the item in training, however often."""
    from scipy.sparse import csr_matrix  # noqa: PLC0415 - comes with the extra

    items = split.training_items()
    ones = np.ones(len(items.values))
    return csr_matrix((ones, items.values.numpy(), items.offsets.numpy()), (split.num_users, split.num_items))


def package_seed(seed: int, purpose: str) -> int:
    """A seed as packages take them: below 2**31."""
    return derive(seed, purpose) & 0x7FFFFFFF


@contextmanager
def one_thread() -> Iterator[None]:
    """Linear algebra on one core: how sums are split among cores would change their last digits."""
    from threadpoolctl import threadpool_limits  # noqa: PLC0415 - comes with the extra

    with threadpool_limits(limits=1):
        yield
