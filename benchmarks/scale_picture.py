"""The picture of what `benchmarks.private_scale` printed: share of the accuracy without noise, by users and epsilon.

python -m benchmarks.private_scale > lines.jsonl
python -m benchmarks.scale_picture lines.jsonl docs/pictures/users-and-epsilon.svg
"""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 640, 300, 60, 90, 20, 46
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7")
"""Told apart by people who see few colours."""


def picture(lines: list[dict[str, float | str]]) -> str:
    """SVG with one line an epsilon; users on a logarithmic axis."""
    users = sorted({int(line["users"]) for line in lines})
    low, high = math.log10(users[0]), math.log10(users[-1])

    def across(count: float) -> float:
        return LEFT + (math.log10(count) - low) / max(high - low, 1e-9) * (WIDTH - LEFT - RIGHT)

    def up(share: float) -> float:
        return HEIGHT - BOTTOM - min(share, 1.1) / 1.1 * (HEIGHT - TOP - BOTTOM)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}"',
        ' font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
    ]
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        y = up(share)
        parts.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="#dddddd"/>')
        parts.append(f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{share:.0%}</text>')
    for count in users:
        x = across(count)
        parts.append(f'<text x="{x:.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{count:,}</text>')
    middle = (LEFT + WIDTH - RIGHT) / 2
    parts.append(f'<text x="{middle}" y="{HEIGHT - 8}" text-anchor="middle">users</text>')
    private = [line for line in lines if line["epsilon"] != "none"]
    for colour, epsilon in zip(COLOURS, dict.fromkeys(str(line["epsilon"]) for line in private), strict=False):
        own = sorted((line for line in private if line["epsilon"] == epsilon), key=lambda line: int(line["users"]))
        points = [(across(int(line["users"])), up(float(line["share"]))) for line in own]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{colour}"/>' for x, y in points]
        x, y = points[0]
        parts.append(f'<text x="{x + 8:.1f}" y="{y - 6:.1f}" fill="{colour}">epsilon {epsilon}</text>')
    return "\n".join([*parts, "</svg>", ""])


def main() -> None:
    """Draw a file of lines."""
    source, target = map(Path, sys.argv[1:3])
    lines = [json.loads(line) for line in source.read_text(encoding="utf-8").splitlines() if line.startswith("{")]
    target.write_text(picture(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
