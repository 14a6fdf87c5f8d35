"""Which rows of the page's table carry a ≈."""

from __future__ import annotations

import numpy as np

from ownview.report.apart import not_told_apart


def test_a_row_as_good_as_the_best_and_one_far_below() -> None:
    drawn = np.random.default_rng(0).random(200)
    swapped = drawn.copy()
    swapped[::2], swapped[1::2] = drawn[1::2], drawn[::2]
    found = not_told_apart({"best": drawn + 1e-6, "level": swapped, "far": drawn - 0.5})
    assert found == {"best": ["level"], "level": ["best"]}


def test_nothing_is_level_with_a_clear_best() -> None:
    drawn = np.random.default_rng(1).random(200)
    assert not_told_apart({"best": drawn + 0.2, "far": drawn}) == {}


def test_one_row_alone() -> None:
    assert not_told_apart({"only": np.ones(5)}) == {}
