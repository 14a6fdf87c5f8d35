"""Tables and numbers of things as Markdown has them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def table_lines(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """A table, a line a row."""
    return ["| " + " | ".join(cells) + " |" for cells in (heads, ["---"] * len(heads), *rows)]


def counted(number: int, thing: str) -> str:
    """1 seed, 2 seeds."""
    return f"{number} {thing}" + "s" * (number != 1)
