"""What is added to a store of sums stays within 64 bits, from wherever it comes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ownview.base.errors import OutputError
from ownview.sums.additions import merge, update
from ownview.sums.blocks import LARGEST
from ownview.sums.store import Store
from tests.sums.worlds import by_item, empty, rows


def test_sums_that_would_not_fit_together_are_not_merged(tmp_path: Path) -> None:
    for name in ("mine", "theirs"):
        with Store.writing(empty(tmp_path / name, "popularity")) as store:
            update(store, rows(np.random.default_rng(1), [name], 3, 30), name)
            for value in store.arrays.values.values():
                value[value != 0] = LARGEST
            store.arrays.flush()
    with Store.writing(tmp_path / "mine") as mine, Store.reading(tmp_path / "theirs") as theirs:
        before = mine.snapshot()
        with pytest.raises(OutputError, match="a sum would go beyond 2\\^62 steps; nothing was added"):
            merge(mine, theirs.snapshot(), theirs)
        assert by_item(mine.snapshot()) == by_item(before)
