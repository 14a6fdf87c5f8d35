"""The picture of `benchmarks.sums_by_size`: accuracy against what a client sends, masked, a panel a dataset."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

Row = Mapping[str, Any]

PANEL, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 360, 320, 48, 24, 54, 46
COLOURS = {"FedNext": "#0072b2", "FedEASE": "#d55e00", "sketch": "#009e73"}
"""Told apart by people who see few colours."""


def picture(rows: Sequence[Row]) -> str:
    """SVG: validation NDCG@10 over megabytes up, masked, in all rounds, on a logarithmic axis that panels share."""
    panels = list(dict.fromkeys(str(row["data"]) for row in rows))
    decades = [math.log10(row["masked"] / 1e6) for row in rows]
    low, high = math.floor(min(decades)), math.ceil(max(decades))
    width = PANEL * len(panels)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {HEIGHT}"',
        ' font-family="sans-serif" font-size="12">',
        f'<rect width="{width}" height="{HEIGHT}" fill="#ffffff"/>',
    ]
    for place, data in enumerate(panels):
        parts += _panel(place * PANEL, data, [row for row in rows if row["data"] == data], low, high)
    for place, (form, colour) in enumerate(COLOURS.items()):
        parts.append(f'<circle cx="{LEFT + 100 * place + 4}" cy="14" r="4" fill="{colour}"/>')
        parts.append(f'<text x="{LEFT + 100 * place + 14}" y="18">{form}</text>')
    return "\n".join([*parts, "</svg>", ""])


def _panel(left: int, data: str, rows: Sequence[Row], low: int, high: int) -> list[str]:
    top = 0.02 * math.ceil(max(float(row["validation"]) for row in rows) / 0.02)

    def across(count: float) -> float:
        return left + LEFT + (math.log10(count / 1e6) - low) / (high - low) * (PANEL - LEFT - RIGHT)

    def up(value: float) -> float:
        return HEIGHT - BOTTOM - value / top * (HEIGHT - TOP - BOTTOM)

    parts = [f'<text x="{left + LEFT}" y="{TOP - 8}" font-weight="bold">{data}</text>']
    for step in range(round(top / 0.02) + 1):
        y, end = up(0.02 * step), left + PANEL - RIGHT
        parts.append(f'<line x1="{left + LEFT}" x2="{end}" y1="{y:.1f}" y2="{y:.1f}" stroke="#dddddd"/>')
        parts.append(f'<text x="{left + LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{0.02 * step:.2f}</text>')
    for decade in range(low, high + 1):
        x, y = across(10**decade * 1e6), HEIGHT - BOTTOM + 18
        parts.append(f'<text x="{x:.1f}" y="{y}" text-anchor="middle">{10**decade:,g}</text>')
    middle = left + (LEFT + PANEL - RIGHT) / 2
    parts.append(f'<text x="{middle}" y="{HEIGHT - 8}" text-anchor="middle">MB a client sends, masked</text>')
    for form, colour in COLOURS.items():
        own = sorted((row for row in rows if row["form"] == form), key=lambda row: int(row["masked"]))
        most = max((int(row["iterations"]) for row in own), default=0)
        for iterations in sorted({int(row["iterations"]) for row in own}):
            line = [row for row in own if row["size"] and row["iterations"] == iterations]
            points = " ".join(f"{across(row['masked']):.1f},{up(row['validation']):.1f}" for row in line)
            dashes = "" if iterations == most else ' stroke-dasharray="4 3"'
            parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"{dashes}/>')
        for row in own:
            x, y = across(row["masked"]), up(row["validation"])
            parts.append(
                f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{colour}"><title>{_named(row)}</title></circle>'
            )
    return parts


def _named(row: Row) -> str:
    size = f"{row['size']:,}" if row["size"] else "in full"
    return f"{row['form']}, {size}, {row['rounds']} rounds: {row['masked'] / 1e6:,.1f} MB, {row['validation']:.3f}"
