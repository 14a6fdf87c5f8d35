"""Every registered method and every plug-in around every method it accepts, through every check."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from torch import Tensor

from ownview import FedMF
from ownview.errors import SettingError
from ownview.method import Method
from ownview.registry import METHODS, PLUGINS
from ownview.testing import CHECKS
from ownview.types import Batch, Context, Params


def _combinations() -> dict[str, Method]:
    found: dict[str, Method] = {name: cls() for name, cls in METHODS.items()}
    for plugin in PLUGINS.values():
        for name, method in METHODS.items():
            try:
                found[f"{name}+{plugin.name}"] = plugin(inner=method())
            except SettingError:
                continue
    return found


COMBINATIONS = _combinations()


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("name", COMBINATIONS)
def test_conforms(name: str, check: str) -> None:
    CHECKS[check](COMBINATIONS[name])


def test_nothing_is_left_out() -> None:
    """An empty loop would pass silently: the collected names are the registry's, spelt out once."""
    assert set(METHODS) == {"fedmf", "local-only", "pfedclr", "pfedrec"}
    assert set(COMBINATIONS) == {
        *METHODS, "fedmf+dual-personalisation",
        "pfedclr+dual-personalisation", "pfedrec+dual-personalisation",
    }  # fmt: skip


def test_a_method_that_breaks_a_rule_is_caught() -> None:
    """The kit itself must be able to fail: a method whose loss depends on the padding of its block."""

    @dataclass(frozen=True)
    class Padded(FedMF):
        def loss(self, p: Params, batch: Batch, context: Context) -> Tensor:
            return super().loss(p, batch, context) * p["items"].shape[0]

    with pytest.raises(AssertionError):
        CHECKS["loop equals vector"](Padded())
