"""What the table's ≈ means: rows that a paired test cannot tell apart from the best."""

from __future__ import annotations

from collections.abc import Mapping

from ownview.data.interactions import FloatArray
from ownview.evaluation.comparison import Mark, UserValues, compare_rows


def not_told_apart(values: Mapping[str, FloatArray]) -> dict[str, list[str]]:
    """By variant, those it cannot be told apart from: the best, or for the best itself all that are level with it.

    Args:
        values: by variant, of one metric, one value a user [k]; the same users in the same order. The test is that of
            `ownview compare`, corrected for the variants of this column alone.
    """
    rows = compare_rows({label: UserValues((), column[None]) for label, column in values.items()})
    best = next((row.label for row in rows if row.mark is Mark.BEST), "")
    level = [row.label for row in rows if row.mark is Mark.LEVEL]
    return {best: level, **{label: [best] for label in level}} if level else {}
