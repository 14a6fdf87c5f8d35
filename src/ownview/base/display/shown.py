"""Text that came from elsewhere, made fit to be shown: it cannot steer a terminal and stays on its line.

Titles, ids, column names and file names are written by strangers. An escape sequence in them could clear the screen,
change what was printed before, or type into some terminals.
"""

from __future__ import annotations

import re

_STEERING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
"""Control characters but tab and line end, line separators, marks of direction, and halves of characters."""


def shown(text: str) -> str:
    r"""The text with what steers a terminal spelt out, as in \x1b; tabs and line ends stay."""
    return _STEERING.sub(_spelt, text)


def one_line(text: str) -> str:
    """The same on one line."""
    return shown(" ".join(line.strip() for line in text.splitlines()).replace("\t", " "))


def shown_json(text: str) -> str:
    """JSON text in which such characters are written as JSON writes them: they can only stand inside its strings."""
    return _STEERING.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _spelt(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
