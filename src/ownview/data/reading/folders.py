"""A folder of files as one table: exports by month or by shop, and perhaps a file of titles among them."""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ownview.base.display.amounts import counted
from ownview.base.errors import DataError
from ownview.base.files import sha256_of
from ownview.base.items.column_names import bare_name
from ownview.data.reading.columns import locate_known
from ownview.data.reading.problems import Problems
from ownview.data.reading.string_table import Table

if TYPE_CHECKING:
    import polars as pl

_ENDINGS = (
    ".csv", ".tsv", ".txt", ".dat", ".data", ".inter", ".parquet", ".json", ".jsonl", ".ndjson", ".xlsx"
)  # fmt: skip
_MOST_FILES = 10_000
ReadFile = Callable[[Path, Problems], Table]


@dataclass(frozen=True)
class _Part:
    file: Path
    table: Table
    problems: Problems


def table_files(folder: Path) -> list[Path]:
    """Files that may be tables, by name; hidden ones are none."""
    try:
        found = sorted(one for one in folder.iterdir() if one.is_file() and not one.name.startswith("."))
    except OSError as error:
        raise DataError(f"{folder}: cannot be read ({error.strerror or error})") from None
    return [one for one in found if Path(one.name.removesuffix(".gz")).suffix.lower() in _ENDINGS]


def source_files(path: Path) -> list[Path]:
    """The file itself, or the files of a folder that may be tables."""
    return table_files(path) if path.is_dir() else [path]


def digest_of(path: Path) -> str:
    """SHA-256 of a file; of a folder, that of its files' names and digests."""
    if not path.is_dir():
        return sha256_of(path)
    listing = "".join(f"{sha256_of(one)}  {one.name}\n" for one in table_files(path))
    return hashlib.sha256(listing.encode()).hexdigest()


def folder_tables(folder: Path, read_file: ReadFile, problems: Problems) -> tuple[Table, Path | None]:
    """The rows of all files with the same columns, by name; and the file of titles, if one is there.

    A file with items and titles and without users is the one of titles. Files with other columns than the longest that
    has users and items are named and left out.
    """
    files = table_files(folder)
    if not files:
        raise DataError(f"{folder}: is a folder; expected a file of interactions, or files of them in it")
    if len(files) > _MOST_FILES:
        raise DataError(f"{folder}: holds {len(files):,} files; expected at most {_MOST_FILES:,}")
    read: list[_Part] = []
    titles: list[Path] = []
    for file in files:
        own = Problems(file, problems.tolerant)
        part = _Part(file, read_file(file, own), own)
        if _is_titles(part.table):
            titles.append(file)
        else:
            read.append(part)
    first = max(read, key=_rank, default=None)
    parts = [one for one in read if first is not None and _alike(first.table, one.table)]
    others = [one.file.name for one in read if one not in parts]
    if not parts:
        raise DataError(f"{folder}: is a folder without interactions; expected files with columns user and item")
    for one in parts:
        problems.take(one.problems)
    names = list(dict.fromkeys((parts[0].file.name, parts[-1].file.name)))
    problems.note(f"{counted(len(parts), 'file')} of the folder: {' to '.join(names)}")
    if others:
        problems.note(f"not read, because they have other columns: {', '.join(others[:5])}; --items takes one of items")
    return _joined(folder, parts), titles[0] if titles else None


def _rank(part: _Part) -> tuple[int, int]:
    """How likely a file is to hold the interactions: by names of user and item, then by rows."""
    return len(locate_known(part.table.header or [], ("user", "item"))), part.table.frame.height


def _is_titles(table: Table) -> bool:
    known = locate_known(table.header or [], ("user", "item", "title"))
    return "title" in known and "item" in known and "user" not in known


def _alike(first: Table, other: Table) -> bool:
    if first.header is None or other.header is None:
        return first.header is other.header and first.frame.width == other.frame.width
    return set(map(bare_name, first.header)) == set(map(bare_name, other.header))


def _joined(folder: Path, parts: Sequence[_Part]) -> Table:
    import polars as pl  # noqa: PLC0415 - not everywhere, and slow to import

    first = parts[0].table
    frames = [_in_order(one.table, first) for one in parts]
    begins = [0]
    for frame in frames[:-1]:
        begins.append(begins[-1] + frame.height)

    def place(row: int) -> str:
        number = bisect_right(begins, row) - 1
        return f"{parts[number].file.name}, {parts[number].table.place(row - begins[number])}"

    return Table(folder, first.header, pl.concat(frames), place)


def _in_order(table: Table, first: Table) -> pl.DataFrame:
    """The columns in the order of the first file's."""
    if table.header is None or first.header is None or table.header == first.header:
        return table.frame
    mine = [bare_name(name) for name in table.header]
    wanted = [mine.index(bare_name(name)) for name in first.header]
    frame = table.frame.select(table.frame.columns[place] for place in wanted)
    return frame.rename(dict(zip(frame.columns, first.frame.columns, strict=True)))
