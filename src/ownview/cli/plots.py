"""Curves in plain Unicode: dots of braille over several lines, or blocks on one."""

from __future__ import annotations

from collections.abc import Sequence

_BRAILLE = 0x2800
_DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
"""Bits of a braille character: four dots high, two wide."""

_BLOCKS = "▁▂▃▄▅▆▇█"


def curve(values: Sequence[float], width: int, height: int) -> list[str]:
    """`height` lines of `width` characters: the first value at the left edge, the last at the right, joined up.

    A single value, or equal ones, lie on the bottom line; no values give empty lines.
    """
    across, high = 2 * width, 4 * height
    cells = [[0] * width for _ in range(height)]
    before: int | None = None
    for column, value in enumerate(_spread(values, across)):
        level = _level(value, values, high)
        for dot in _between(before, level):
            row = high - 1 - dot
            cells[row // 4][column // 2] |= _DOTS[row % 4][column % 2]
        before = level
    return ["".join(chr(_BRAILLE + bits) for bits in line) for line in cells]


def blocks(values: Sequence[float], width: int) -> str:
    """One line of at most `width` characters."""
    shown = _spread(values, width) if len(values) > width else list(values)
    return "".join(_BLOCKS[_level(value, values, len(_BLOCKS))] for value in shown)


def _spread(values: Sequence[float], number: int) -> list[float]:
    """`number` values from first to last, each the nearest one."""
    last = len(values) - 1
    return [values[round(k * last / max(number - 1, 1))] for k in range(number)] if values else []


def _level(value: float, values: Sequence[float], levels: int) -> int:
    low, high = min(values), max(values)
    return 0 if high == low else round((value - low) / (high - low) * (levels - 1))


def _between(before: int | None, level: int) -> range:
    """The dots from the last level (not itself) to this one."""
    if before is None or abs(level - before) <= 1:
        return range(level, level + 1)
    return range(before + 1, level + 1) if level > before else range(level, before)
