"""The bytes of a data file as clean UTF-8 text: unpacked, checked, and still able to name a line.

Every way in which a file can be unreadable before its columns matter is an error here, with the place.
"""

from __future__ import annotations

import re
import stat
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ownview.base.errors import DataError, nearest_beside
from ownview.data.reading.encodings import decoded
from ownview.data.reading.problems import EXAMPLES, Problem, Problems

GZIP_MAGIC = b"\x1f\x8b"
PARQUET_MAGIC = b"PAR1"
ZIP_MAGIC = b"PK\x03\x04"
_OTHER_FILES = {
    b"pk\x03\x04": "a zip archive; unpack it and give the file of interactions inside",
    b"\xd0\xcf\x11\xe0": "a workbook of old Excel (.xls); save it as .xlsx or as CSV",
    b"%pdf": "a PDF; export the rows as CSV",
    b"<!doctype": "a web page, perhaps one that asks to log in; export the rows as CSV",
    b"<html": "a web page, perhaps one that asks to log in; export the rows as CSV",
}
"""By first bytes in small letters, what is no table."""
LARGEST_BYTES = 4 << 30
"""Of a file when it is unpacked. No dataset of the catalogue comes near it."""

_SMALL_BYTES = 256 << 20
_LARGEST_RATIO = 100
"""Tables shrink to a tenth or so; what shrinks to less than a hundredth, and is not small, is a trap."""

_NAMED_SEPARATOR = re.compile(rb"sep=(.)\n")
"""What Excel writes above a table of text."""

_BLANK_LINE = re.compile(rb"^ *\n|\n *(?=\n)|\n *$")
_BEGINS_WITH_A_BLANK = re.compile(rb"\n[ \n]")
"""What a line that follows another and is blank begins with; looked for twenty times as fast, and in few files."""


@dataclass(frozen=True)
class SourceText:
    """A text file without blank lines, and the text it was made from.

    Args:
        path: the file, for messages.
        content: UTF-8 with newlines as line ends, no byte order mark and no blank lines.
        original: the same with its blank lines, so that line numbers are the file's own.
    """

    path: Path
    content: bytes
    original: bytes

    def line_number(self, nth: int) -> int:
        """Line in the file (1-based) of the nth line that is not blank (0-based)."""
        seen = -1
        for number, line in enumerate(self.original.split(b"\n"), start=1):
            seen += bool(line.strip(b" "))
            if seen == nth:
                return number
        raise IndexError(nth)

    def first_line(self) -> str:
        """The first line that is not blank."""
        return self.content.partition(b"\n")[0].decode()

    def named_separator(self) -> str | None:
        """The separator that a first line `sep=;` names; None without such a line."""
        found = _NAMED_SEPARATOR.match(self.content)
        return None if found is None or found[1] == b'"' or found[1] >= b"\x80" else found[1].decode()

    def without_first_line(self) -> SourceText:
        """The same without its first line, which stays a blank line of the file."""
        first, _, rest = self.content.partition(b"\n")
        return SourceText(self.path, rest, self.original.replace(first, b"", 1))


def require_source(path: Path, expected: str = "a file of interactions") -> None:
    """Refuse what no rows can be read from: a folder, a device, or nothing at all; the error names the nearest name.

    Args:
        path: the file.
        expected: what it should be, in words.
    """
    with _reading(path):
        kind = path.stat().st_mode
    if stat.S_ISDIR(kind):
        raise DataError(f"{path}: is a folder; expected {expected}")
    if stat.S_ISCHR(kind) or stat.S_ISBLK(kind):
        raise DataError(f"{path}: is a device; expected {expected}")


def read_bytes(path: Path) -> bytes:
    """Content of the file, unpacked when it is gzip (detected by its first bytes, not its name)."""
    require_source(path)
    with _reading(path):
        raw = path.read_bytes()
    content = _unpacked(path, raw) if raw.startswith(GZIP_MAGIC) else raw
    if not content.strip():
        raise DataError(f"{path}: is empty; expected rows of user and item")
    return content


def text_of(path: Path, content: bytes, problems: Problems, encoding: str | None = None) -> SourceText:
    """Decode and clean line ends; the content must not be empty.

    Args:
        path: the file, for messages.
        content: its bytes, unpacked.
        problems: takes note of bytes that are no text, and of encodings other than UTF-8.
        encoding: detected where None.
    """
    for begin, what in _OTHER_FILES.items():
        if content[:9].lower().startswith(begin):
            raise DataError(f"{path}: is {what}")
    text = decoded(path, content, encoding)
    if text.note:
        problems.note(text.note)
    if text.damaged:
        line, byte = text.damaged[0]
        shown = tuple(f"line {line}: 0x{byte:02x}" for line, byte in text.damaged[:EXAMPLES])
        advice = f"line {line}: byte 0x{byte:02x} is not UTF-8, which the rest of the text is; copy the file again"
        problems.add(Problem("bytes that are no UTF-8", len(text.damaged), shown, "read as \ufffd", advice))
    content = text.content
    if b"\r" in content:
        # Files from old Macs have \r alone; those from Windows \r\n.
        content = content.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    original, end = content, len(content)
    while end and content[end - 1 : end] == b"\n":
        end -= 1
    indented = content[:1] in (b" ", b"\n") or _BEGINS_WITH_A_BLANK.search(content, 0, end)
    if indented and _BLANK_LINE.search(content, 0, end):
        content = b"\n".join(line for line in content[:end].split(b"\n") if line.strip(b" ")) + b"\n"
    elif end + 1 != len(content):  # most files end with one newline, and are not copied
        content = content[:end] + b"\n"
    if not content.strip():
        raise DataError(f"{path}: is empty; expected rows of user and item")
    return SourceText(path, content, original)


def _unpacked(path: Path, raw: bytes) -> bytes:
    """All members of a gzip file, one after the other, as long as they stay within what data can be."""
    most = min(LARGEST_BYTES, max(_SMALL_BYTES, _LARGEST_RATIO * len(raw)))
    parts: list[bytes] = []
    size = 0
    while raw.startswith(GZIP_MAGIC):
        member = zlib.decompressobj(wbits=31)
        try:
            parts.append(member.decompress(raw, most - size + 1))
        except zlib.error as error:
            raise DataError(f"{path}: corrupt gzip ({error}); copy or download it again") from None
        size += len(parts[-1])
        if size > most:
            raise DataError(f"{path}: unpacks to over {most:,} bytes, which no table of interactions does; refused")
        if not member.eof:
            raise DataError(
                f"{path}: truncated gzip, the file ends after {path.stat().st_size:,} bytes before its end mark; "
                "copy or download it again"
            )
        raw = member.unused_data.lstrip(b"\0")  # some programs fill the last block with zeros
    if raw:
        raise DataError(f"{path}: corrupt gzip ({len(raw):,} bytes of something else at the end); copy it again")
    return b"".join(parts)


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Turn what the operating system says about a file into an error that names it."""
    try:
        yield
    except FileNotFoundError:
        raise DataError(f"{path}: no such file{nearest_beside(path, Path.is_file)}") from None
    except (OSError, ValueError) as error:  # a ValueError for names that no file can have
        raise DataError(f"{path}: cannot be read ({getattr(error, 'strerror', None) or error})") from None
