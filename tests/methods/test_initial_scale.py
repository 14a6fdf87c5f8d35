"""Methods that say how widely their vectors start: items and users, own and received, start just so."""

from __future__ import annotations

import math
from dataclasses import fields

import pytest
import torch

from ownview.registry import METHODS
from ownview.seam.training import Params
from ownview.testing.worlds import federation, small_world

SCALED = [name for name, cls in METHODS.items() if "initial_scale" in {field.name for field in fields(cls)}]


def start(name: str, scale: float) -> Params:
    """What two clients predict with before any round."""
    one = federation(METHODS[name](initial_scale=scale), small_world())  # type: ignore[call-arg]
    return one.predicting(torch.arange(2), None)[0]


@pytest.mark.parametrize("name", SCALED)
def test_items_start_as_widely_as_the_setting_says(name: str) -> None:
    narrow, wide = start(name, 0.02)["items"], start(name, 0.2)["items"]
    size = narrow.shape[-1] if name == "fedials" else 1  # of a vector's length there, of each of its numbers elsewhere
    assert 0.01 < narrow.std() * math.sqrt(size) < 0.04
    torch.testing.assert_close(wide, 10 * narrow)


@pytest.mark.parametrize("value", ["user", "received"])
def test_fedem_scales_the_user_vector_and_the_received_table_too(value: str) -> None:
    torch.testing.assert_close(start("fedem", 0.2)[value], 10 * start("fedem", 0.02)[value])


def test_the_methods_with_the_setting_are_known() -> None:
    expected = {"colr", "fcf", "fedcia", "fedem", "fedials", "fedmf", "fedrecon", "local-only", "perfedrec"}
    assert set(SCALED) == expected
