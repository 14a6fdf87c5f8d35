"""Tables from Parquet and from Excel workbooks."""

from __future__ import annotations

import io
import os
import sys
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import polars as pl

from ownview.base.display.amounts import counted
from ownview.base.errors import DataError, SettingError, suggestion
from ownview.base.extras import how_to_install
from ownview.data.reading.columns import REQUIRED, header_place, locate_known
from ownview.data.reading.problems import Problems
from ownview.data.reading.string_table import IsHeader, Table

_LARGEST_WORKBOOK = 1 << 30
"""Bytes of a workbook when it is unpacked; a sheet has at most a million rows."""

_ABOVE = 20
"""Rows among which a header is looked for."""


def parquet_table(path: Path, content: bytes) -> Table:
    """All columns as text."""
    try:
        with _without_reports_of_panic():
            raw = pl.read_parquet(io.BytesIO(content))
        frame = raw.select(_as_text(raw[name], k) for k, name in enumerate(raw.columns))
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, ValueError, OSError) as error:
        first = str(error).partition("\n")[0]
        raise DataError(f"{path}: unreadable Parquet ({first}); write or copy it again") from None
    if frame.height == 0:
        raise DataError(f"{path}: no rows; expected at least one row of user and item")
    return Table(path, list(raw.columns), frame, lambda row: f"row {row + 1}", _moments(raw))


def is_excel(path: Path, content: bytes) -> bool:
    """Whether a zip archive is a workbook of Excel; a damaged one with that ending counts."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            return any(name.startswith("xl/") for name in archive.namelist())
    except (zipfile.BadZipFile, ValueError, NotImplementedError):
        return path.suffix in (".xlsx", ".xlsm")


def excel_table(
    path: Path, content: bytes, is_header: IsHeader, sheet: str | None = None, problems: Problems | None = None
) -> Table:
    """One sheet; dates are seconds since 1970.

    Args:
        path: of the workbook, for errors.
        content: its bytes.
        is_header: judges the first row of a sheet.
        sheet: its name; where None, the only sheet, or the only one with a header.
        problems: takes note of which of several sheets is read.

    Raises:
        DataError: nothing can be read, there is no such sheet, or several could be meant.
    """
    try:
        import fastexcel  # noqa: PLC0415 - an extra
    except ImportError:
        raise SettingError(
            f"{path}: is a workbook of Excel, which needs an extra: {how_to_install('excel')}; or save it as CSV"
        ) from None
    _refuse_traps(path, content)
    try:
        with _without_reports_of_panic():
            book = fastexcel.read_excel(content)
            wanted = [sheet] if sheet in book.sheet_names else book.sheet_names if sheet is None else []
            plain = {one: book.load_sheet(one, header_row=None, dtype_coercion="coerce").to_polars() for one in wanted}
            plain = {one: frame for one, frame in plain.items() if frame.height}
            rows = {one: [["" if cell is None else str(cell) for cell in row] for row in frame.head(_ABOVE).rows()]
                    for one, frame in plain.items()}  # fmt: skip
            above = {one: header_place(every) for one, every in rows.items()}
            firsts = {one: every[above[one]] for one, every in rows.items()}
            chosen = _one_sheet(firsts, is_header)
            raw, headed = (None, False) if chosen is None else (plain[chosen], is_header(firsts[chosen]))
            if chosen is not None and headed:
                raw = book.load_sheet(chosen, header_row=above[chosen], dtype_coercion="coerce").to_polars()
            frame = None if raw is None else raw.select(_as_text(raw[name], k) for k, name in enumerate(raw.columns))
    except Exception as error:
        # The extra's errors, and those of its panics, have no common class of their own.
        reason = str(error).partition("\n")[0]
        raise DataError(f"{path}: unreadable workbook ({reason}); save it again, or as CSV") from None
    named = ", ".join(map(repr, book.sheet_names))
    if sheet is not None and not wanted:
        raise DataError(f"{path}: has no sheet {sheet!r}{suggestion(sheet, set(book.sheet_names))}; it has {named}")
    if len(plain) > 1 and chosen is None:
        raise DataError(f"{path}: has {len(plain)} sheets with rows ({named}); expected --sheet and the name of one")
    if raw is None or frame is None or chosen is None or frame.height == 0:
        raise DataError(f"{path}: no rows; expected at least one row of user and item")
    if problems is not None and len(book.sheet_names) > 1:
        problems.note(f"sheet {chosen!r} is read, of {named}")
    if problems is not None and above[chosen]:
        problems.note(f"{counted(above[chosen], 'row')} above the header, not read")
    begin = 1 + headed + above[chosen]
    return Table(path, firsts[chosen] if headed else None, frame, lambda row: f"row {row + begin}", _moments(raw))


def _one_sheet(firsts: Mapping[str, Sequence[str]], is_header: IsHeader) -> str | None:
    """Choose a sheet by first rows: the only one, else the only one that names user and item, or has a header."""
    named = [name for name, first in firsts.items() if len(locate_known(first, REQUIRED)) == len(REQUIRED)]
    headed = [name for name, first in firsts.items() if is_header(first)]
    return next((one[0] for one in (list(firsts), named, headed) if len(one) == 1), None)


def _refuse_traps(path: Path, content: bytes) -> None:
    """A workbook that unpacks to more than a sheet can hold is none."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            size = sum(one.file_size for one in archive.infolist())
    except (zipfile.BadZipFile, ValueError, NotImplementedError) as error:
        raise DataError(f"{path}: unreadable workbook ({error}); save it again, or as CSV") from None
    if size > _LARGEST_WORKBOOK:
        raise DataError(f"{path}: unpacks to {size:,} bytes, which no sheet of interactions does; refused")


@contextmanager
def _without_reports_of_panic() -> Iterator[None]:
    """Keep from stderr what polars writes there, past Python, when a damaged file surprises it: the error says it."""
    sys.stderr.flush()
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


def _moments(raw: pl.DataFrame) -> frozenset[int]:
    return frozenset(place for place, kind in enumerate(raw.dtypes) if kind in (pl.Date, pl.Datetime))


def _as_text(column: pl.Series, position: int) -> pl.Series:
    if column.dtype in (pl.Date, pl.Datetime):
        column = column.dt.epoch("s")
    if column.dtype.is_float():
        column = column.fill_nan(None)
        whole = column.cast(pl.Int64, strict=False)
        if bool((whole.cast(column.dtype) == column).fill_null(True).all()) and bool((column.abs() < 2**53).all()):
            column = whole  # spreadsheets and pandas know no whole numbers beside empty cells
    return column.cast(pl.String).fill_null("").alias(f"column_{position + 1}")
