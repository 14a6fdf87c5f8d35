"""Rows that are not above the best yardstick are marked so."""

from __future__ import annotations

import numpy as np

from ownview.evaluation.comparison import NOT_ABOVE, UserValues, compare_rows

ASKED = tuple(f"user {k}" for k in range(400))


def row(share: float, *, yardstick: bool = False, asked: tuple[str, ...] = ASKED) -> UserValues:
    values = (np.arange(400) % 100 < 100 * share).astype(float)
    return UserValues(asked, values[None], yardstick)


def test_what_is_not_above_the_best_yardstick_is_marked() -> None:
    cells = compare_rows(
        {
            "counts": row(0.10, yardstick=True),
            "more counts": row(0.20, yardstick=True),
            "level": row(0.20),
            "below": row(0.15),
            "above": row(0.40),
        }
    )
    found = {cell.label: cell.not_above for cell in cells}
    assert found == {"counts": "", "more counts": "", "level": "more counts", "below": "more counts", "above": ""}
    below = next(cell for cell in cells if cell.label == "below")
    assert NOT_ABOVE in str(below)
    assert NOT_ABOVE not in str(cells[-1])


def test_rows_that_were_asked_something_else_are_not_held_against_it() -> None:
    other = tuple(f"other {k}" for k in range(400))
    cells = compare_rows({"counts": row(0.2, yardstick=True), "level": row(0.1, asked=other)})
    assert [cell.not_above for cell in cells] == ["", ""]
