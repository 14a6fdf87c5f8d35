"""What the table's ≈ means: rows that a paired test cannot tell apart from the best."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ownview.evaluation.comparison import Mark, Row, compare_columns
from ownview.evaluation.metrics import HEADLINE
from ownview.report.cells import user_values
from ownview.report.reading import SeenRun

Columns = Mapping[str, Mapping[str, Sequence[SeenRun]]]
"""By protocol and variant's label, the runs that are seeds of each other."""


def mark_alike(results: Mapping[str, Mapping[str, Any]], runs: Columns) -> None:
    """Fill `alike` of every cell of one dataset's table: the best, or for the best itself all that are level with it.

    The test is that of `ownview compare` and `ownview bench`, corrected over the whole table. Variants whose users,
    held-out items or protocols differ, or are not known, are not marked.

    Args:
        results: by protocol and label, with `cells`.
        runs: likewise.
    """
    values = {
        (protocol, metric): {
            label: mine for label, seeds in by_label.items() if (mine := user_values(seeds, metric)) is not None
        }
        for protocol, by_label in runs.items()
        for metric in HEADLINE
    }
    for (protocol, metric), rows in compare_columns(values).items():
        for label, others in _alike(rows).items():
            results[protocol][label]["cells"][metric]["alike"] = others


def _alike(rows: Sequence[Row]) -> dict[str, list[str]]:
    level = [row.label for row in rows if row.mark is Mark.LEVEL]
    best = next((row.label for row in rows if row.mark is Mark.BEST), "")
    return {best: level, **{label: [best] for label in level}} if level else {}
