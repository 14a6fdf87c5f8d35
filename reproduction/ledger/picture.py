"""The ledger as two pictures: published against here, and here against honest, in the report's colours and shapes."""

from __future__ import annotations

import importlib.resources
import re
from collections.abc import Sequence
from functools import cache
from html import escape
from typing import NamedTuple

from reproduction.ledger.lines import NEAR, Line
from reproduction.papers import CITATIONS

_SIDE, _LEFT, _TOP, _BELOW = 272, 50, 34, 84
"""Of the square that points lie in, and room beside it."""

_WIDTH, _HEIGHT = _LEFT + _SIDE + 18, _TOP + _SIDE + _BELOW


class Point(NamedTuple):
    """Of one figure."""

    paper: str
    words: str
    x: float
    y: float


def published_against_here(lines: Sequence[Line]) -> str:
    """SVG: shares as published along, as they are here upwards; the band is as wide as "within .03"."""
    points = [
        Point(line.figure.paper, _words(line), line.figure.value, line.here.over.mean)
        for line in lines
        if line.here is not None and "@" in line.figure.metric
    ]
    return _picture("Published, and here", "published", "here", points, band=NEAR)


def here_against_honest(lines: Sequence[Line]) -> str:
    """SVG: shares as the papers measure along, the same settings under protocol honest upwards."""
    points = [
        Point(line.figure.paper, _words(line), line.here.over.mean, line.honest.over.mean)
        for line in lines
        if line.here is not None and line.honest is not None and "@" in line.figure.metric
    ]
    return _picture("As papers measure, and honestly", "here, as the paper measures", "honest", points)


def _words(line: Line) -> str:
    one = line.figure
    return f"{one.paper}, Table {one.table}: {one.method}, {one.data}, {one.metric}"


def _picture(title: str, along: str, upwards: str, points: Sequence[Point], band: float = 0.0) -> str:
    parts = [f'<rect width="{_WIDTH}" height="{_HEIGHT}" rx="8" fill="{_colours()["panel"]}"/>']
    parts += [f'<text class="title" x="{_LEFT}" y="20">{escape(title)}</text>', *_axes(along, upwards)]
    if band:
        corners = ((0, 0), (0, band), (1 - band, 1), (1, 1), (1, 1 - band), (band, 0))
        parts.append(f'<polygon class="band" points="{" ".join(f"{_x(x):.1f},{_y(y):.1f}" for x, y in corners)}"/>')
    parts.append(f'<line class="equal" x1="{_x(0)}" y1="{_y(0)}" x2="{_x(1)}" y2="{_y(1)}"/>')
    for one in points:
        place = f"translate({_x(one.x):.1f} {_y(one.y):.1f})"
        tip = f"<title>{escape(one.words)}: {one.x:.3f}, {one.y:.3f}</title>"
        parts.append(
            f'<path class="p{_paper(one.paper)}" transform="{place}" d="{_SHAPES[_paper(one.paper)]}">{tip}</path>'
        )
    if not points:
        parts.append(f'<text x="{_x(0.5)}" y="{_y(0.5)}" text-anchor="middle">nothing has been run yet</text>')
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" height="{_HEIGHT}" '
        f'role="img"><title>{escape(title)}</title><style>{_style()}</style>{"".join(parts)}{_legend(points)}</svg>\n'
    )


def _x(value: float) -> float:
    return _LEFT + value * _SIDE


def _y(value: float) -> float:
    return _TOP + (1 - value) * _SIDE


def _axes(along: str, upwards: str) -> list[str]:
    parts = []
    for tenths in range(0, 11, 2):
        value = tenths / 10
        parts.append(f'<line class="grid" x1="{_x(value):.1f}" x2="{_x(value):.1f}" y1="{_y(0)}" y2="{_y(1)}"/>')
        parts.append(f'<line class="grid" x1="{_x(0)}" x2="{_x(1)}" y1="{_y(value):.1f}" y2="{_y(value):.1f}"/>')
        parts.append(f'<text x="{_x(value):.1f}" y="{_y(0) + 16}" text-anchor="middle">{value:g}</text>')
        parts.append(f'<text x="{_LEFT - 7}" y="{_y(value) + 4:.1f}" text-anchor="end">{value:g}</text>')
    middle = _y(0.5)
    parts.append(f'<text x="{_x(0.5)}" y="{_y(0) + 36}" text-anchor="middle">{escape(along)}</text>')
    turned = f'transform="rotate(-90 16 {middle})" text-anchor="middle"'
    return [*parts, f'<text x="16" y="{middle}" {turned}>{escape(upwards)}</text>']


def _legend(points: Sequence[Point]) -> str:
    parts, x = [], 16.0
    for paper in (name for name in CITATIONS if any(one.paper == name for one in points)):
        y = _HEIGHT - 16
        parts.append(
            f'<path class="p{_paper(paper)}" transform="translate({x:.1f} {y})" d="{_SHAPES[_paper(paper)]}"/>'
        )
        parts.append(f'<text x="{x + 9:.1f}" y="{y + 4}">{paper}</text>')
        x += 24 + 6.6 * len(paper)
    return "".join(parts)


_SHAPES = (
    "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0 -8 0Z",
    "M-3.6 -3.6H3.6V3.6H-3.6Z",
    "M0 -4.6L4.4 3.2H-4.4Z",
    "M0 -5L5 0L0 5L-5 0Z",
    "M0 4.6L4.4 -3.2H-4.4Z",
)
"""By paper: told apart by shape too, not by colour alone."""


def _paper(name: str) -> int:
    return list(CITATIONS).index(name)


@cache
def _colours() -> dict[str, str]:
    """Those of the report's light theme, by name."""
    text = (importlib.resources.files("ownview.reports") / "assets" / "style.css").read_text(encoding="utf-8")
    return dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", text[: text.index("}")]))


def _style() -> str:
    colours = _colours()
    rules = [
        f"text{{font:12px system-ui,sans-serif;fill:{colours['muted']}}}",
        f".title{{font-weight:600;font-size:14px;fill:{colours['ink']}}}",
        f".grid{{stroke:{colours['faint']}}}.band{{fill:{colours['good']};opacity:.13}}",
        f".equal{{stroke:{colours['muted']};stroke-dasharray:4 4;opacity:.7}}",
        *(f".p{k}{{fill:{colours[f'c{k}']};stroke:{colours['panel']};stroke-width:.8;opacity:.85}}" for k in range(5)),
    ]
    return "".join(rules)
