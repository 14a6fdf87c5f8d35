"""Any supported file as a table of strings that remembers which line each row came from."""

from __future__ import annotations

import csv
import io
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ownview.base.errors import DataError, SettingError
from ownview.data.source_text import PARQUET_MAGIC, SourceText, read_bytes, text_of

if TYPE_CHECKING:
    import polars as pl

_BY_SUFFIX = {".csv": ",", ".tsv": "\t", ".inter": "\t"}
_LIKELY = ("\t", ",", ";", "|", " ")
_NAMED = {"tab": "\t", "\\t": "\t", "space": " ", "comma": ",", "semicolon": ";", "pipe": "|"}
_UNIT_SEPARATOR = "\x1f"
"""Stands in for separators that are not one byte; no text file has it."""


@dataclass(frozen=True)
class Table:
    """Strings without nulls; an empty field is the empty string.

    Args:
        path: the file, for messages.
        header: names of the columns, or None where the file has none.
        frame: the rows below the header.
        place: from row position to 'line 7' (text) or 'row 7' (Parquet), as a person counts.
    """

    path: Path
    header: list[str] | None
    frame: pl.DataFrame
    place: Callable[[int], str]


def read_table(path: Path, separator: str | None, is_header: Callable[[Sequence[str]], bool]) -> Table:
    """Read text or Parquet, plain or gzip; `is_header` judges the first row of a text file."""
    wanted = _checked_separator(separator)
    content = read_bytes(path)
    if content.startswith(PARQUET_MAGIC):
        return _parquet_table(path, content)
    source = text_of(path, content)
    wanted = wanted or _detected_separator(path, source.first_line())
    # RecBole and '::' files never quote; a quote there is part of the value.
    quoted = b'"' in source.content and wanted != "::" and not path.name.removesuffix(".gz").endswith(".inter")
    table = _quoted_table(source, wanted, is_header) if quoted else _plain_table(source, wanted, is_header)
    if table.frame.height == 0:
        raise DataError(f"{path}: line 1: only a header ({', '.join(table.header or [])}); expected rows below it")
    return table


def _checked_separator(separator: str | None) -> str | None:
    if separator is None:
        return None
    separator = _NAMED.get(separator, separator)
    if separator == "::" or (len(separator) == 1 and separator not in '\n\r"'):
        return separator
    raise SettingError(f"separator: found {separator!r}; expected '::', one character, or one of {', '.join(_NAMED)}")


def _detected_separator(path: Path, line: str) -> str:
    by_name = _BY_SUFFIX.get(Path(path.name.removesuffix(".gz")).suffix)
    if by_name is not None and by_name in line:
        return by_name
    if "::" in line:
        return "::"
    present = [separator for separator in _LIKELY if separator in line]
    if not present:
        raise DataError(
            f"{path}: line 1: one column ({line[:60]!r}); expected user and item, separated by "
            "comma, tab, '::' or any one character given as separator"
        )
    return present[0]


def _plain_table(source: SourceText, separator: str, is_header: Callable[[Sequence[str]], bool]) -> Table:
    """Split text that has no quotes, many lines at once."""
    import polars as pl  # noqa: PLC0415 - not everywhere, and slow to import

    content, byte = source.content, separator
    if len(separator.encode()) > 1:
        content, byte = content.replace(separator.encode(), _UNIT_SEPARATOR.encode()), _UNIT_SEPARATOR
    first = source.first_line().split(separator)
    header = first if is_header(first) else None
    _require_even_rows(source, content, byte)
    skip = 0 if header is None else 1
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
    return Table(source.path, header, frame, lambda row: f"line {source.line_number(row + skip)}")


def _require_even_rows(source: SourceText, content: bytes, separator: str) -> None:
    text = np.frombuffer(content, dtype=np.uint8)
    ends = np.flatnonzero(text == ord("\n"))
    fields = np.diff(np.searchsorted(np.flatnonzero(text == ord(separator)), ends), prepend=0) + 1
    uneven = np.flatnonzero(fields != fields[0])
    if len(uneven):
        row = int(uneven[0])
        _raise_uneven(source, source.line_number(row), int(fields[row]), int(fields[0]))


def _raise_uneven(source: SourceText, line: int, found: int, expected: int) -> None:
    raise DataError(f"{source.path}: line {line}: {found} fields; expected {expected}, as in the first line")


def _quoted_table(source: SourceText, separator: str, is_header: Callable[[Sequence[str]], bool]) -> Table:
    """Split text with quotes the slow, exact way; a quoted field may go over several lines."""
    import polars as pl  # noqa: PLC0415 - not everywhere, and slow to import

    rows, lines = _quoted_rows(source, separator)
    header = rows[0] if is_header(rows[0]) else None
    skip = 0 if header is None else 1
    width = len(rows[0])
    for row, line in zip(rows, lines, strict=True):
        if len(row) != width:
            _raise_uneven(source, line, len(row), width)
    data = rows[skip:]
    frame = pl.DataFrame(
        {f"column_{k + 1}": [row[k] for row in data] for k in range(width)},
        schema={f"column_{k + 1}": pl.String for k in range(width)},
    )
    return Table(source.path, header, frame, lambda row: f"line {lines[row + skip]}")


def _quoted_rows(source: SourceText, separator: str) -> tuple[list[list[str]], list[int]]:
    """Rows, and the line of the file each starts in."""
    reader = csv.reader(io.StringIO(source.original.decode(), newline=""), delimiter=separator, strict=True)
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
        raise DataError(f"{source.path}: line {start}: a quote is opened and not closed ({error})") from None
    return rows, lines


def _parquet_table(path: Path, content: bytes) -> Table:
    import polars as pl  # noqa: PLC0415 - not everywhere, and slow to import

    try:
        with _without_reports_of_panic():
            raw = pl.read_parquet(io.BytesIO(content))
        frame = raw.select(_as_text(raw[name], k) for k, name in enumerate(raw.columns))
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, ValueError, OSError) as error:
        first = str(error).partition("\n")[0]
        raise DataError(f"{path}: unreadable Parquet ({first}); write or copy it again") from None
    if frame.height == 0:
        raise DataError(f"{path}: no rows; expected at least one row of user and item")
    return Table(path, list(raw.columns), frame, lambda row: f"row {row + 1}")


@contextmanager
def _without_reports_of_panic() -> Iterator[None]:
    """Keep from stderr what polars writes there, past Python, when a damaged file surprises it: the error tells it."""
    sys.stderr.flush()
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


def _as_text(column: pl.Series, position: int) -> pl.Series:
    import polars as pl  # noqa: PLC0415 - not everywhere, and slow to import

    if column.dtype.is_temporal() and column.dtype in (pl.Date, pl.Datetime):
        column = column.dt.epoch("s")
    return column.cast(pl.String).fill_null("").alias(f"column_{position + 1}")
