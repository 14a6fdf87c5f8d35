"""Counts and sizes as people read them."""

from __future__ import annotations

import pytest

from ownview.base.display.amounts import counted, readable


@pytest.mark.parametrize(("number", "words"), [(0, "0 runs"), (1, "1 run"), (2, "2 runs"), (1200, "1,200 runs")])
def test_one_is_no_plural(number: int, words: str) -> None:
    assert counted(number, "run") == words


@pytest.mark.parametrize(
    ("size", "words"),
    [(1, "1 byte"), (999, "999 bytes"), (33_596, "33.6 kB"), (4_830_000, "4.83 MB"), (2 * 10**9, "2 GB")],
)
def test_small_sizes_are_not_nought(size: int, words: str) -> None:
    assert readable(size) == words
