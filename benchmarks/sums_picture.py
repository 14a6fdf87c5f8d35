"""The picture of `benchmarks.sums_by_size`: accuracy against what a client sends, masked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.panels import Curve, Point, picture

Row = Mapping[str, Any]


def drawn(rows: Sequence[Row]) -> str:
    """SVG: validation NDCG@10 over megabytes up, masked, in all rounds.

    A form's sizes are joined where they have as many rounds for item vectors, dashed where they have fewer than others;
    a form in full stands by itself.
    """
    curves = []
    for data, form in dict.fromkeys((str(row["data"]), str(row["form"])) for row in rows):
        own = sorted((row for row in rows if (row["data"], row["form"]) == (data, form)), key=lambda row: row["masked"])
        most = max(int(row["iterations"]) for row in own)
        for size_less, iterations in dict.fromkeys((not row["size"], int(row["iterations"])) for row in own):
            some = [row for row in own if (not row["size"], row["iterations"]) == (size_less, iterations)]
            curves.append(Curve(data, form, [_point(row) for row in some], not size_less, iterations < most))
    return picture(curves, "MB a client sends, masked")


def _point(row: Row) -> Point:
    size = f"{row['size']:,}" if row["size"] else "in full"
    said = f"{row['form']}, {size}, {row['rounds']} rounds: {row['masked'] / 1e6:,.1f} MB, {row['validation']:.3f}"
    return Point(row["masked"] / 1e6, float(row["validation"]), said)
