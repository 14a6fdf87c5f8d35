"""Figures in pages that nothing stands behind: no record that writes them anew, and no command that makes them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from ownview.base.errors import OutputError

_RENDERED = re.compile(
    r"<!-- (?:results|figures|best rows|anchors):.*?<!-- end of (?:results|figures|best rows|anchors) -->", re.DOTALL
)
_CODE = re.compile(r"^( *)```.*?^\1```", re.DOTALL | re.MULTILINE)
_INLINE = re.compile(r"`[^`]*`")
_COMMAND = re.compile(r"(?:ownview|python -m|make) [\w-]")
_LOOSE = re.compile(r"(?<![\w.,])[01]?\.\d{3,4}(?![\w%])(?!\**<!-- [\w-]+: )(?!\** / \**[01]?\.\d+\**<!-- [\w-]+: )")
"""Numbers from 0 to 1 with three or four digits without a reference; of a pair both have the one behind the second."""

_NAMED = 8
"""Figures that an error names."""


def require_no_loose_figures(text: str, source: str) -> None:
    """Refuse a page with any; `source` names it."""
    found = list(loose_figures(text))
    if found:
        listed = ", ".join(f"line {line}: {figure}" for line, figure in found[:_NAMED])
        rest = f" and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
        raise OutputError(
            f"{source}: {listed}{rest}: nothing says where it comes from; expected a record behind it, such as "
            ".157<!-- best: ml-1m honest fedease -->, or a command in the paragraph or the section"
        )


def loose_figures(text: str) -> Iterator[tuple[int, str]]:
    """Line and text of figures that neither a record nor a command stands behind.

    Figures are numbers from 0 to 1 with three or four digits. They may be in what is rendered, have a reference, stand
    in a paragraph that names a command, or in a section that shows one in a block of its own.
    """
    plain = _blanked(_RENDERED, text)
    lines, bare = plain.splitlines(), _blanked(_CODE, plain).splitlines()
    starts = [0, *(place for place, line in enumerate(bare) if line.startswith("#")), len(lines)]
    for begin, end in pairwise(starts):
        shown = "\n".join(old for old, new in zip(lines[begin:end], bare[begin:end], strict=True) if old != new)
        section_has_command = bool(_COMMAND.search(shown))
        for first, last in _paragraphs(bare, begin, end):
            if section_has_command or _COMMAND.search("\n".join(bare[first:last])):
                continue
            for place in range(first, last):
                for found in _LOOSE.finditer(_INLINE.sub("", bare[place])):
                    yield place + 1, found[0]


def _blanked(pattern: re.Pattern[str], text: str) -> str:
    """The text with as many empty lines where the pattern matches."""
    return pattern.sub(lambda found: "\n" * found[0].count("\n"), text)


def _paragraphs(lines: Sequence[str], begin: int, end: int) -> Iterator[tuple[int, int]]:
    """Stretches without empty lines; a table belongs to the paragraph before it."""
    first = begin
    for place in range(begin, end + 1):
        breaks = place == end or (not lines[place].strip() and not _goes_on(lines, place, end))
        if breaks:
            if place > first:
                yield first, place
            first = place + 1


def _goes_on(lines: Sequence[str], place: int, end: int) -> bool:
    """Whether a table follows the empty line."""
    return place + 1 < end and lines[place + 1].lstrip().startswith("|")
