"""Any supported file as a table of strings."""

from __future__ import annotations

from pathlib import Path

from ownview.base.errors import DataError
from ownview.data.reading.columns import named
from ownview.data.reading.problems import Problems
from ownview.data.reading.source_text import PARQUET_MAGIC, ZIP_MAGIC, read_bytes, text_of
from ownview.data.reading.string_table import IsHeader, Table


def read_table(
    path: Path,
    separator: str | None,
    is_header: IsHeader,
    problems: Problems | None = None,
    encoding: str | None = None,
    sheet: str | None = None,
) -> Table:
    """Read text, JSON Lines, Parquet or Excel, plain or gzip.

    Args:
        path: the file.
        separator: of text; detected where None.
        is_header: judges the first row of a text file.
        problems: takes note of rows that are no rows; where None, the first is an error.
        encoding: of text; detected where None.
        sheet: of a workbook of Excel, by name; the only one with a header where None.
    """
    # Polars is loaded when it is used.
    from ownview.data.reading import binary_tables, json_tables, text_tables  # noqa: PLC0415

    found = Problems(path) if problems is None else problems
    wanted = text_tables.checked_separator(separator)
    content = read_bytes(path)
    if content.startswith(PARQUET_MAGIC):
        table = binary_tables.parquet_table(path, content)
    elif content.startswith(ZIP_MAGIC) and binary_tables.is_excel(path, content):
        table = binary_tables.excel_table(path, content, is_header, sheet, found)
    else:
        source = text_of(path, content, found, encoding)
        if source.content.lstrip()[:1] in (b"{", b"["):
            table = json_tables.json_table(source, found)
        else:
            table = text_tables.text_table(source, wanted, is_header, found)
    if problems is None:
        found.require_none()
    if table.frame.height == 0:
        raise DataError(f"{path}: line 1: only a header ({named(table.header or [])}); expected rows below it")
    return table
