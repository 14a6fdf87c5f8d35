"""Text from data in cells of CSV files for people: a spreadsheet must not take it for a formula.

A title such as `=cmd|' /C calc'!A0` is run, or asked about, by spreadsheets when the file is opened. Text that begins
with = + - @, a tab or a carriage return gets an apostrophe in front, which spreadsheets take for "text". So does text
that already has apostrophes there, so that the way back is exact. Numbers stay as they are.
"""

from __future__ import annotations

import re

_FORMULA = re.compile(r"'*[=+\-@\t\r]")
_QUOTED = re.compile(r"'+[=+\-@\t\r]")


def as_cell(text: str) -> str:
    """The text, with an apostrophe in front where a spreadsheet would take it for a formula."""
    return f"'{text}" if _FORMULA.match(text) else text


def from_cell(cell: str) -> str:
    """The text that `as_cell` was given."""
    return cell[1:] if _QUOTED.match(cell) else cell
