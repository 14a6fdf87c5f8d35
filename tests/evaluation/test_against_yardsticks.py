"""Rows that cannot be told to be above the yardsticks are marked so, by the test that marks everything else."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from ownview.evaluation.comparison import NOT_ABOVE, Mark, UserValues, compare_columns, compare_rows

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


@st.composite
def _tables(draw: st.DrawFn) -> list[dict[str, UserValues]]:
    """Up to three columns of one to three yardsticks and one to four rows, up to four questions a person."""
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    persons = draw(st.integers(2, 40))
    who = tuple(f"p{one}" for one in range(persons) for _ in range(random.integers(1, 5)))
    own = random.random(persons)[[int(one[1:]) for one in who]]
    columns = []
    for _ in range(draw(st.integers(1, 3))):
        rows = {}
        for place in range(draw(st.integers(1, 3)) + draw(st.integers(1, 4))):
            chance = np.clip(
                own * draw(st.sampled_from([0.2, 0.6, 0.9, 1.0])) + draw(st.sampled_from([0.0, 0.1])), 0, 1
            )
            hits = (random.random(len(who)) < chance).astype(float)[None]
            rows[f"row {place}"] = UserValues(who, hits, place == 0 or draw(st.booleans()), who)
        columns.append(rows)
    return columns


@settings(max_examples=60, deadline=None)
@given(_tables())
def test_the_best_is_above_the_yardsticks_exactly_where_none_of_them_is_level_with_it(
    columns: list[dict[str, UserValues]],
) -> None:
    """No row is ▲ without ○ while Popularity is ≈: both signs come from one p of the pair.

    Before, ○ came from Wilcoxon's test of the pair alone and ≈ from sign flips that were corrected.
    """
    for rows, cells in zip(columns, compare_columns(dict(enumerate(columns))).values(), strict=True):
        best = next(cell for cell in cells if cell.mark is Mark.BEST)
        sticks = [cell for cell in cells if rows[cell.label].yardstick and cell is not best]
        level = [cell.label for cell in sticks if cell.mark is Mark.LEVEL]
        if not rows[best.label].yardstick:
            assert bool(best.not_above) == bool(level)
            assert best.not_above in ("", *level)
        elif rows[best.label].yardstick:
            assert all(cell.not_above for cell in cells if not rows[cell.label].yardstick), "nobody is above the best"


def test_a_table_in_which_the_two_tests_used_to_contradict_each_other() -> None:
    """30 of 400 persons are won and 15 lost: Wilcoxon's p is .025, and with three more rows nothing is sure."""
    base = (np.arange(400) < 100).astype(float)
    better = base.copy()
    better[100:130], better[:15] = 1, 0
    random = np.random.default_rng(0)
    others = {f"other {k}": UserValues(ASKED, random.permutation(base)[None]) for k in range(3)}
    rows = {"popularity": UserValues(ASKED, base[None], True), "method": UserValues(ASKED, better[None]), **others}
    found = {cell.label: cell for cell in compare_rows(rows)}
    assert found["method"].mark is Mark.BEST
    assert found["popularity"].mark is Mark.LEVEL
    assert found["method"].not_above == "popularity"
    assert found["method"].signs == "▲○"
