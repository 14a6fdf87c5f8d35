"""Rows of text with a separator, quoted or not."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl

from ownview.base.display.amounts import counted
from ownview.base.errors import DataError, SettingError
from ownview.data.reading.columns import header_place
from ownview.data.reading.problems import EXAMPLES, UNEVEN, Problem, Problems
from ownview.data.reading.source_text import SourceText
from ownview.data.reading.string_table import IsHeader, Table

_BY_SUFFIX = {".csv": ",", ".tsv": "\t", ".inter": "\t"}
_LIKELY = ("\t", ",", ";", "|", " ")
_NAMED = {"tab": "\t", "\\t": "\t", "space": " ", "comma": ",", "semicolon": ";", "pipe": "|"}
_UNIT_SEPARATOR = "\x1f"
"""Stands in for separators that are not one byte; no text file has it."""

_LOOKED_AT = 50
"""Lines from which a separator is detected."""

_ABOVE = 20
"""Lines among which a header is looked for."""


def checked_separator(separator: str | None) -> str | None:
    """The separator that is meant: 'tab' is one. None stays None."""
    if separator is None:
        return None
    separator = _NAMED.get(separator, separator)
    if separator == "::" or (len(separator) == 1 and separator not in '\n\r"'):
        return separator
    raise SettingError(f"separator: found {separator!r}; expected '::', one character, or one of {', '.join(_NAMED)}")


def text_table(source: SourceText, separator: str | None, is_header: IsHeader, problems: Problems) -> Table:
    """Split text into rows; rows with another number of fields than the first are noted and left out."""
    named = source.named_separator() if separator is None else None
    if named is not None:
        source = source.without_first_line()
        if not source.content.strip():
            raise DataError(f"{source.path}: nothing below its first line, sep={named}; expected rows of user and item")
    wanted = separator or named
    source = _from_header(source, _LIKELY if wanted is None else (wanted,), problems)
    wanted = wanted or _detected_separator(source)
    # RecBole and '::' files never quote; a quote there is part of the value.
    plain_name = source.path.name.removesuffix(".gz")
    quoted = b'"' in source.content and wanted != "::" and not plain_name.endswith(".inter")
    return (_quoted_table if quoted else _plain_table)(source, wanted, is_header, problems)


def _from_header(source: SourceText, separators: Sequence[str], problems: Problems) -> SourceText:
    """The text without the title of a report above its header."""
    lines = source.content[: 1 << 16].decode("utf-8", "ignore").split("\n")[:_ABOVE]
    lines = lines[:-1] if len(lines) > 1 and not lines[-1] else lines
    above = header_place(*([_cells(line, one) for line in lines] for one in separators))
    if above:
        problems.note(f"{counted(above, 'line')} above the header, not read")
    for _ in range(above):
        source = source.without_first_line()
    return source


def _cells(line: str, separator: str) -> list[str]:
    if len(separator) > 1:
        return line.split(separator)
    return next(csv.reader([line], delimiter=separator), [""])


def _detected_separator(source: SourceText) -> str:
    """The ending's, where its character is in the first line; else the one that parts the first lines evenly."""
    line = source.first_line()
    by_name = _BY_SUFFIX.get(Path(source.path.name.removesuffix(".gz")).suffix)
    present = [separator for separator in _LIKELY if separator in line]
    if "::" in line and by_name not in present:
        return "::"
    if not present:
        raise DataError(
            f"{source.path}: line 1: one column ({line[:60]!r}); expected two or more, such as user and item, "
            "separated by comma, tab, '::' or any one character given as separator"
        )
    first = source.content[: 1 << 16].decode("utf-8", "ignore").split("\n")[:_LOOKED_AT]
    lines = [_unquoted(one) for one in first if one.strip()]
    even = [one for one in present if len({text.count(one) for text in lines}) == 1 and one in lines[0]]
    if by_name in present and (by_name in even or not even):
        return str(by_name)
    return (even or ([by_name] if by_name in present else present))[0]


def _unquoted(line: str) -> str:
    """A line without what stands in quotes."""
    return "".join(line.split('"')[::2])


def _plain_table(source: SourceText, separator: str, is_header: IsHeader, problems: Problems) -> Table:
    """Split text that has no quotes, many lines at once."""
    content, byte = source.content, separator
    if len(separator.encode()) > 1:
        content, byte = content.replace(separator.encode(), _UNIT_SEPARATOR.encode()), _UNIT_SEPARATOR
    first = source.first_line().split(separator)
    header = first if is_header(first) else None
    skip = 0 if header is None else 1
    lines = _even_lines(source, content, byte, problems)
    if lines is not None:
        rows = content.split(b"\n")
        content = b"\n".join(rows[line] for line in lines) + b"\n"
    if content.count(b"\n") == skip:
        frame = pl.DataFrame(schema={f"column_{k + 1}": pl.String for k in range(len(first))})
    else:
        frame = pl.read_csv(
            io.BytesIO(content),
            has_header=False,
            skip_rows=skip,
            separator=byte,
            quote_char=None,
            infer_schema=False,
        ).fill_null("")

    def place(row: int) -> str:
        return f"line {source.line_number(row + skip if lines is None else int(lines[row + skip]))}"

    return Table(source.path, header, frame, place)


def _even_lines(source: SourceText, content: bytes, separator: str, problems: Problems) -> Sequence[int] | None:
    """Lines with as many fields as the first, noting the others; None where all have."""
    text = np.frombuffer(content, dtype=np.uint8)
    ends = np.flatnonzero(text == ord("\n"))
    fields = np.diff(np.searchsorted(np.flatnonzero(text == ord(separator)), ends), prepend=0) + 1
    uneven = np.flatnonzero(fields != fields[0])
    if not len(uneven):
        return None
    places = [(source.line_number(int(line)), int(fields[line])) for line in uneven[:EXAMPLES]]
    problems.add(_uneven(places, len(uneven), int(fields[0])))
    return np.flatnonzero(fields == fields[0]).tolist()


def _uneven(places: Sequence[tuple[int, int]], count: int, expected: int) -> Problem:
    line, found = places[0]
    return Problem(
        f"{UNEVEN} {expected} fields",
        count,
        tuple(f"line {line}: {found}" for line, found in places),
        "left out",
        f"line {line}: {found} fields; expected {expected}, as in the first line",
    )


def _quoted_table(source: SourceText, separator: str, is_header: IsHeader, problems: Problems) -> Table:
    """Split text with quotes the slow, exact way; a quoted field may go over several lines."""
    rows, lines = _quoted_rows(source, separator, problems)
    if not rows:
        raise DataError(f"{source.path}: no rows; expected at least one row of user and item")
    header = rows[0] if is_header(rows[0]) else None
    skip = 0 if header is None else 1
    width = len(rows[0])
    uneven = [(line, len(row)) for row, line in zip(rows, lines, strict=True) if len(row) != width]
    if uneven:
        problems.add(_uneven(uneven[:EXAMPLES], len(uneven), width))
    kept = [(row, line) for row, line in zip(rows[skip:], lines[skip:], strict=True) if len(row) == width]
    frame = pl.DataFrame(
        {f"column_{k + 1}": [row[k] for row, _ in kept] for k in range(width)},
        schema={f"column_{k + 1}": pl.String for k in range(width)},
    )
    return Table(source.path, header, frame, lambda row: f"line {kept[row][1]}")


def _quoted_rows(source: SourceText, separator: str, problems: Problems) -> tuple[list[list[str]], list[int]]:
    """Rows, and the line of the file each starts in; rows after a quote that never closes are read without quotes."""
    text = source.original.decode()
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    rows: list[list[str]] = []
    lines: list[int] = []
    start = 1
    try:
        for row in reader:
            if row and (len(row) > 1 or row[0].strip()):
                rows.append(row)
                lines.append(start)
            start = reader.line_num + 1
    except csv.Error as error:
        advice = f"line {start}: a quote is opened and not closed ({error})"
        remedy = "quotes from there on are taken as letters"
        problems.add(Problem("quotes that are not closed", 1, (f"line {start}",), remedy, advice))
        for number, line in enumerate(text.split("\n")[start - 1 :], start):
            if line.strip():
                rows.append(line.split(separator))
                lines.append(number)
    return rows, lines
