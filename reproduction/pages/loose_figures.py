"""Figures in pages that nothing stands behind: no record that writes them anew, and no command that makes them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from ownview.base.errors import OutputError

_KINDS = "results|figures|best rows|anchors|noise"
_MEASURED = "speed|peers|sums|serve"
"""Tables that benchmarks write into pages by themselves; so do those between `begin: FILE` and `end: FILE`."""

_SET_ASIDE = re.compile(
    rf"<!-- (?:{_KINDS}):.*?<!-- end of (?:{_KINDS}) -->"
    rf"|<!-- (?P<kind>{_MEASURED}) -->.*?<!-- end of (?P=kind) -->"
    r"|<!-- begin: (?P<by>[\w/. -]+?) -->.*?<!-- end: (?P=by) -->"
    r"|^\| setting \|[^\n]*(?:\n\|[^\n]*)*",
    re.DOTALL | re.MULTILINE,
)
"""What is rendered, and tables of settings, whose numbers were chosen and not measured."""

_BLOCK = re.compile(
    r"(?P<code>^(?P<indent> *)```[\s\S]*?^(?P=indent)```)|(?P<head>^#.*$)|"
    r"^.*\S.*(?:\n(?! *```|#).*\S.*)*(?:\n\s*\n(?: *\|.*(?:\n|\Z))+)?",
    re.MULTILINE,
)
_INLINE = re.compile(r"`[^`]*`")
_COMMAND = re.compile(r"(?:ownview|python -m|make) [\w-]|\btests/[\w/]+\.py\b")
"""A command, or the test that holds a figure."""
_LOOSE = re.compile(r"(?<![\w.,])[01]?\.\d{3,4}(?![\w%])(?!\**<!-- [\w-]+: )(?!\** / \**[01]?\.\d+\**<!-- [\w-]+: )")
"""Numbers from 0 to 1 with three or four digits without a reference; of a pair both have the one behind the second."""

_INTERVAL = re.compile(r"[01]?\.\d+ \(-?[01]?\.\d+ to [01]?\.\d+\)(?=<!-- [\w-]+: )")
"""A difference with its interval; all three numbers have the reference behind them."""

_NAMED = 8
"""Figures that an error names."""


def require_no_loose_figures(text: str, source: str, *, beside: bool = False) -> None:
    """Refuse a page with any; `source` names it."""
    found = list(loose_figures(text, beside=beside))
    if found:
        listed = ", ".join(f"line {line}: {figure}" for line, figure in found[:_NAMED])
        rest = f" and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
        where = "in the block beside the paragraph" if beside else "in a block of the section"
        raise OutputError(
            f"{source}: {listed}{rest}: nothing says where it comes from; expected a record behind it, such as "
            f".157<!-- best: ml-1m honest fedease -->, or a command in the paragraph or {where}"
        )


def loose_figures(text: str, *, beside: bool = False) -> Iterator[tuple[int, str]]:
    """Line and text of figures that neither a record nor a command stands behind.

    Figures are numbers from 0 to 1 with three or four digits. They may be in what is rendered, have a reference, stand
    in a paragraph that names a command, or in a section that shows one in a block of code.

    Args:
        text: of a page.
        beside: the block has to be the paragraph's neighbour; else it may stand anywhere in the section.
    """
    for section in _sections(_SET_ASIDE.sub(lambda found: "\n" * found[0].count("\n"), text)):
        for place, block in enumerate(section):
            around = section[max(place - 1, 0) : place + 2] if beside else section
            shown = any(_COMMAND.search(one.text) for one in around if one.code)
            if block.code or shown or _COMMAND.search(block.text):
                continue
            for number, line in enumerate(block.text.splitlines(), start=block.first):
                yield from ((number, found[0]) for found in _LOOSE.finditer(_INTERVAL.sub("", _INLINE.sub("", line))))


class _Block(NamedTuple):
    """A block of code, or a paragraph with the table behind it; `first` is the number of its first line."""

    first: int
    text: str
    code: bool


def _sections(text: str) -> list[list[_Block]]:
    """What stands under each heading."""
    made: list[list[_Block]] = [[]]
    for found in _BLOCK.finditer(text):
        if found["head"]:
            made.append([])
        else:
            made[-1].append(_Block(text.count("\n", 0, found.start()) + 1, found[0], found["code"] is not None))
    return made
