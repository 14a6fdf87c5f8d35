"""Pictures of benchmarks: curves on a logarithmic axis across, a panel a dataset, as SVG."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

PANEL, HEIGHT, LEFT, RIGHT, BOTTOM = 360, 266, 48, 24, 46
LINE, LETTER = 18, 7
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
"""Told apart by people who see few colours; by the order in which names first come."""
_STEP = 0.02


@dataclass(frozen=True)
class Point:
    """A measurement.

    Args:
        across: above 0.
        up: 0 or more, in the unit of accuracy.
        title: what is said of it when it is pointed at.
    """

    across: float
    up: float
    title: str


@dataclass(frozen=True)
class Curve:
    """Points of one name in one panel, joined where `joined`."""

    panel: str
    name: str
    points: Sequence[Point]
    joined: bool = True
    dashed: bool = False


def picture(curves: Sequence[Curve], axis: str) -> str:
    """SVG with a panel for each of `curves`' own, in the order in which they first come; all share the axis across."""
    panels, names = (list(dict.fromkeys(kind)) for kind in zip(*((one.panel, one.name) for one in curves), strict=True))
    decades = [math.log10(point.across) for one in curves for point in one.points]
    low, high = math.floor(min(decades)), math.ceil(max(decades))
    width, wide = PANEL * len(panels), 28 + LETTER * max(map(len, names))
    columns = max(1, (width - LEFT) // wide)
    top = LINE * math.ceil(len(names) / columns) + 36
    colours = dict(zip(names, COLOURS, strict=False))
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {top + HEIGHT}"',
        ' font-family="sans-serif" font-size="12">',
        f'<rect width="{width}" height="{top + HEIGHT}" fill="#ffffff"/>',
    ]
    for place, (name, colour) in enumerate(colours.items()):
        x, y = LEFT + wide * (place % columns), 18 + LINE * (place // columns)
        parts.append(f'<circle cx="{x + 4}" cy="{y - 4}" r="4" fill="{colour}"/>')
        parts.append(f'<text x="{x + 14}" y="{y}">{name}</text>')
    for place, panel in enumerate(panels):
        mine = [one for one in curves if one.panel == panel]
        parts += _panel((place * PANEL, top), mine, (low, high), axis, colours)
    return "\n".join([*parts, "</svg>", ""])


def _panel(
    corner: tuple[int, int], curves: Sequence[Curve], decades: tuple[int, int], axis: str, colours: dict[str, str]
) -> list[str]:
    left, above = corner
    low, high = decades
    most = _STEP * math.ceil(max(point.up for one in curves for point in one.points) / _STEP)
    floor = above + HEIGHT - BOTTOM

    def x(value: float) -> float:
        return left + LEFT + (math.log10(value) - low) / (high - low) * (PANEL - LEFT - RIGHT)

    def y(value: float) -> float:
        return floor - value / most * (HEIGHT - BOTTOM)

    parts = [f'<text x="{left + LEFT}" y="{above - 8}" font-weight="bold">{curves[0].panel}</text>']
    for step in range(round(most / _STEP) + 1):
        line, end = y(_STEP * step), left + PANEL - RIGHT
        parts.append(f'<line x1="{left + LEFT}" x2="{end}" y1="{line:.1f}" y2="{line:.1f}" stroke="#dddddd"/>')
        parts.append(f'<text x="{left + LEFT - 6}" y="{line + 4:.1f}" text-anchor="end">{_STEP * step:.2f}</text>')
    for decade in range(low, high + 1):
        parts.append(f'<text x="{x(10**decade):.1f}" y="{floor + 18}" text-anchor="middle">{10**decade:,g}</text>')
    middle = left + (LEFT + PANEL - RIGHT) / 2
    parts.append(f'<text x="{middle}" y="{floor + 38}" text-anchor="middle">{axis}</text>')
    for one in curves:
        colour, dashes = colours[one.name], ' stroke-dasharray="4 3"' if one.dashed else ""
        if one.joined:
            points = " ".join(f"{x(point.across):.1f},{y(point.up):.1f}" for point in one.points)
            parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"{dashes}/>')
        for point in one.points:
            place = f'cx="{x(point.across):.1f}" cy="{y(point.up):.1f}"'
            parts.append(f'<circle {place} r="3" fill="{colour}"><title>{point.title}</title></circle>')
    return parts
