"""Tables from Parquet and from Excel workbooks."""

from __future__ import annotations

import io
import os
import sys
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import polars as pl

from ownview.base.errors import DataError, SettingError
from ownview.base.extras import how_to_install
from ownview.data.string_table import IsHeader, Table

_LARGEST_WORKBOOK = 1 << 30
"""Bytes of a workbook when it is unpacked; a sheet has at most a million rows."""


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
    return Table(path, list(raw.columns), frame, lambda row: f"row {row + 1}")


def is_excel(path: Path, content: bytes) -> bool:
    """Whether a zip archive is a workbook of Excel; a damaged one with that ending counts."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            return any(name.startswith("xl/") for name in archive.namelist())
    except (zipfile.BadZipFile, ValueError, NotImplementedError):
        return path.suffix in (".xlsx", ".xlsm")


def excel_table(path: Path, content: bytes, is_header: IsHeader) -> Table:
    """The first sheet; dates are seconds since 1970."""
    try:
        import fastexcel  # noqa: PLC0415 - an extra
    except ImportError:
        raise SettingError(
            f"{path}: is a workbook of Excel, which needs an extra: {how_to_install('excel')}; or save it as CSV"
        ) from None
    _refuse_traps(path, content)
    try:
        with _without_reports_of_panic():
            sheet = fastexcel.read_excel(content).load_sheet(0, header_row=None, dtype_coercion="coerce")
            typed = fastexcel.read_excel(content).load_sheet(0, header_row=0, dtype_coercion="coerce").to_polars()
            first = ["" if one is None else str(one) for one in sheet.to_polars().row(0)]
            raw = typed if is_header(first) else sheet.to_polars()
        frame = raw.select(_as_text(raw[name], k) for k, name in enumerate(raw.columns))
    except Exception as error:
        # The extra's errors, and those of its panics, have no common class of their own.
        told = str(error).partition("\n")[0]
        raise DataError(f"{path}: unreadable workbook ({told}); save it again, or as CSV") from None
    if frame.height == 0:
        raise DataError(f"{path}: no rows; expected at least one row of user and item")
    headed = is_header(first)
    header = first if headed else None
    return Table(path, header, frame, lambda row: f"row {row + 1 + headed}")


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
    if column.dtype.is_temporal() and column.dtype in (pl.Date, pl.Datetime):
        column = column.dt.epoch("s")
    if column.dtype.is_float():
        column = column.fill_nan(None)
        whole = column.cast(pl.Int64, strict=False)
        if bool((whole.cast(column.dtype) == column).fill_null(True).all()) and bool((column.abs() < 2**53).all()):
            column = whole  # spreadsheets and pandas know no whole numbers beside empty cells
    return column.cast(pl.String).fill_null("").alias(f"column_{position + 1}")
