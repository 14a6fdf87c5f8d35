"""Detection of a text file's encoding from its bytes.

A byte order mark or zero bytes tell UTF-16, text that decodes is UTF-8, and what is neither is Windows-1252, the
encoding in which spreadsheets of Western Europe and America export. A file of UTF-8 with a few broken bytes is damaged
and no Windows-1252: read so, every accent would be two wrong letters.
"""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass
from pathlib import Path

from ownview.base.display.amounts import counted
from ownview.base.errors import DataError, SettingError

_UTF8_BOM = b"\xef\xbb\xbf"
_UTF16 = {b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be"}
_LOOKED_AT = 4096
_SEQUENCE = re.compile(rb"[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}")
_HIGH = re.compile(rb"[\x80-\xff]")
_NAMES = {"utf-16-le": "UTF-16", "utf-16-be": "UTF-16", "cp1252": "Windows-1252"}
_SHOWN = 4
"""Characters that a note shows."""


@dataclass(frozen=True)
class Decoded:
    """A file's text.

    Args:
        content: in UTF-8, without byte order mark.
        note: how it was read, where that is not plain UTF-8; empty else.
        damaged: how many bytes are no text, [(line, byte)] of each; they became U+FFFD.
    """

    content: bytes
    note: str = ""
    damaged: tuple[tuple[int, int], ...] = ()


def decoded(path: Path, content: bytes, encoding: str | None) -> Decoded:
    """The text of some bytes.

    Args:
        path: the file, for messages.
        content: its bytes, unpacked.
        encoding: as Python names it; detected where None.

    Raises:
        DataError: the bytes are of no encoding that is detected, or not of the one given.
        SettingError: there is no such encoding.
    """
    if encoding is not None:
        return Decoded(_recoded(path, content, encoding), f"read as {encoding}, as asked")
    for mark, name in _UTF16.items():
        if content.startswith(mark):
            return Decoded(_recoded(path, content[len(mark) :], name), f"the text is {_NAMES[name]}, read as such")
    unmarked = _unmarked_utf16(content)
    if unmarked is not None:
        return Decoded(
            _recoded(path, content, unmarked), f"the text is {_NAMES[unmarked]} without a mark, read as such"
        )
    content = content.removeprefix(_UTF8_BOM)
    try:
        content.decode("utf-8")
    except UnicodeDecodeError as error:
        return _western(path, content, error)
    return Decoded(content)


def _unmarked_utf16(content: bytes) -> str | None:
    """UTF-16 of mostly ASCII has a zero in every second byte."""
    head = content[:_LOOKED_AT]
    for first, name in ((0, "utf-16-be"), (1, "utf-16-le")):
        zeros, others = head[first::2], head[1 - first :: 2]
        if len(zeros) > 4 and zeros.count(0) > 0.7 * len(zeros) and others.count(0) == 0:
            return name
    return None


def _western(path: Path, content: bytes, error: UnicodeDecodeError) -> Decoded:
    """Windows-1252, or UTF-8 with broken bytes."""
    whole = _SEQUENCE.findall(content)
    odd = _HIGH.findall(_SEQUENCE.sub(b"", content))
    if len(whole) > len(odd):
        lines = []
        for place in _broken(content):
            lines.append((content.count(b"\n", 0, place) + 1, content[place]))
        return Decoded(content.decode("utf-8", "replace").encode(), damaged=tuple(lines))
    try:
        text = content.decode("cp1252")
    except UnicodeDecodeError:
        line = content.count(b"\n", 0, error.start) + 1
        raise DataError(
            f"{path}: line {line}: byte 0x{content[error.start]:02x} at offset {error.start} is neither UTF-8 nor "
            "Windows-1252; convert the file to UTF-8: iconv -f NAME -t UTF-8 (--encoding names that of interactions)"
        ) from None
    found = dict.fromkeys(one for one in text if ord(one) > 127)
    shown = " ".join(list(found)[:_SHOWN])
    note = f"the text is no UTF-8, read as Windows-1252 ({counted(len(odd) + 2 * len(whole), 'such letter')}: {shown})"
    return Decoded(text.encode(), f"{note}; --encoding names another")


def _broken(content: bytes) -> list[int]:
    """Where bytes are no UTF-8, at most a thousand places."""
    places: list[int] = []
    start = 0
    while len(places) < 1000:
        try:
            content[start:].decode("utf-8")
        except UnicodeDecodeError as error:
            places.append(start + error.start)
            start += error.start + 1
        else:
            break
    return places


def _recoded(path: Path, content: bytes, encoding: str) -> bytes:
    try:
        codec = codecs.lookup(encoding)
        text = codec.decode(content, "strict")[0]
    except LookupError:
        raise SettingError(
            f"encoding: no encoding is called {encoding!r}; expected a name such as utf-8, utf-16, cp1252 or shift-jis"
        ) from None
    except (UnicodeError, ValueError) as error:
        place = getattr(error, "start", 0)
        reason = getattr(error, "reason", str(error))
        raise DataError(f"{path}: byte {place} is not of encoding {encoding} ({reason})") from None
    if not isinstance(text, str):
        raise SettingError(f"encoding: {encoding!r} is no encoding of text; expected utf-8, cp1252 or another")
    return text.removeprefix("\ufeff").encode("utf-8", "replace")
