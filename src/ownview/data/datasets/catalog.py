"""The datasets Ownview knows by name, and one function that loads any of them or any file."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from ownview.base import entry_points
from ownview.base.arguments import kinds_checked
from ownview.base.errors import DataError, UnknownNameError
from ownview.base.files import is_file
from ownview.data.datasets.last_read import LastRead
from ownview.data.datasets.storage import INTERACTIONS, ITEMS, USERS, embedded_dir, find, places, stored_names
from ownview.data.interactions import Interactions
from ownview.data.reading.readers import ReadingOptions, read

__all__ = ["Entry", "PaperCounts", "catalog", "entry_of", "find", "how_to_get", "load", "min_interactions", "not_here"]


@dataclass(frozen=True)
class PaperCounts:
    """What papers print about a dataset after keeping users with at least `min_interactions` rows."""

    papers: tuple[str, ...]
    min_interactions: int
    users: int
    items: int
    rows: int


@dataclass(frozen=True)
class Entry:
    """A dataset of the catalogue: where it comes from, how to read it, and what the papers say of it.

    Args:
        name: its name on the command line and in results.
        title: its name in prose.
        homepage: where its makers describe it.
        terms: licence or terms, in a few words.
        citation: what to cite.
        urls: official downloads, tried in order; none where the makers ask for an agreement or move it.
        sha256: of the download, or None where it is not known.
        member: file to read inside the download when that is a zip archive.
        separator: of the source file; detected where None.
        columns: mapping of the source's columns; recognised by name where None.
        allow_negative_times: whether the source has times before 1970.
        clock: False where the source's times tell the order of rows and not how much time lies between them.
        embedded: whether it comes with the package.
        by_hand: how to get it where there is no direct download.
        min_interactions: the papers' filter, None where no paper uses the dataset.
        counts: what the papers print, the one that goes with `min_interactions` first.
        notes: what a user of its numbers must know.
    """

    name: str
    title: str
    homepage: str
    terms: str
    citation: str
    urls: tuple[str, ...] = ()
    sha256: str | None = None
    member: str | None = None
    separator: str | None = None
    columns: Mapping[str, str] | None = None
    allow_negative_times: bool = False
    clock: bool = True
    embedded: bool = False
    by_hand: str | None = None
    min_interactions: int | None = None
    counts: tuple[PaperCounts, ...] = field(default=())
    notes: str = ""


_LAST_READ = LastRead()


@cache
def catalog() -> dict[str, Entry]:
    """All entries by name, in the order of the catalogue."""
    with (embedded_dir() / "catalog.toml").open("rb") as file:
        tables = tomllib.load(file)
    return {name: _entry(name, table) for name, table in tables.items()}


def entry_of(name: str) -> Entry:
    """The catalogue's entry; an unknown name is an error that names the nearest."""
    try:
        return catalog()[name]
    except KeyError:
        raise UnknownNameError("dataset", name, catalog()) from None


def min_interactions(name: str) -> int | None:
    """The papers' filter: users with fewer rows are dropped. None for goodbooks and data of your own."""
    return catalog()[name].min_interactions if name in catalog() else None


@kinds_checked()
def load(
    name_or_path: str | Path,
    *,
    data_dir: Path | None = None,
    columns: Mapping[str, str] | None = None,
    options: ReadingOptions | None = None,
) -> Interactions:
    """Load a dataset of the catalogue, an imported one, or a file.

    Names are looked for in data_dir, $OWNVIEW_DATA, the cache and the package, in this order, and win over
    files of the same name; write ./NAME for the file. A folder with interactions.csv.gz counts as a file.

    Args:
        name_or_path: of the dataset, or of a file or a folder of files.
        data_dir: searched first.
        columns: the source's own names of columns.
        options: how a file is read that is not stored yet, see `ownview.data.read`.

    Raises:
        DataError: the dataset is known but not here (says how to get it), or its file is not sound.
        UnknownNameError: neither a name nor a file; names the nearest.
    """
    require_data_dir(data_dir)
    if isinstance(name_or_path, str):
        file = find(name_or_path, data_dir)
        if file is not None:
            return _read_stored(file, name_or_path, columns)
        if name_or_path in catalog():
            raise DataError(_absent_message(name_or_path, data_dir))
        if name_or_path.lower() in entry_points.named(entry_points.DATASETS):
            return _brought(name_or_path)
    path = Path(name_or_path).expanduser()
    if is_file(path / INTERACTIONS):
        return _read_stored(path / INTERACTIONS, path.resolve().name, columns)
    if _looks_like_path(name_or_path) or _exists(path):
        asked: ReadingOptions = {**(options or {}), "columns": columns}
        return read(path, **asked)
    offered = entry_points.named(entry_points.DATASETS)
    raise UnknownNameError("dataset", str(name_or_path), {*catalog(), *stored_names(data_dir), *offered})


def _brought(name: str) -> Interactions:
    """What an installed package makes, by a function of no arguments: interactions, or the path of a file."""
    made: Any = entry_points.load(entry_points.DATASETS, name)
    found = made() if callable(made) else made
    if isinstance(found, str | Path):
        found = read(Path(found), name=name)
    if not isinstance(found, Interactions):
        raise DataError(f"dataset {name}: its package made {type(found).__name__}; expected Interactions or a path")
    return replace(found, name=name)


def not_here(name: str, data_dir: Path | None) -> str | None:
    """Why `load` would find nothing by that name, in half a sentence; None where something is there to be read."""
    if find(name, data_dir) is not None:
        return None
    if name in catalog():
        return how_to_get(catalog()[name])
    if name.lower() in entry_points.named(entry_points.DATASETS):
        return None
    if _exists(Path(name).expanduser()):
        return None
    return "no such file" if _looks_like_path(name) else "neither a dataset of that name nor a file"


def require_data_dir(data_dir: Path | None) -> None:
    """Refuse a folder of datasets that was named and is not there."""
    if data_dir is not None and not Path(data_dir).is_dir():
        raise DataError(f"{data_dir}: no such folder of datasets (--data-dir)")


def how_to_get(entry: Entry) -> str:
    """What to do to have the dataset here, in half a sentence."""
    if entry.urls:
        return f"get it with: ownview data fetch {entry.name}"
    return (
        f"see {entry.homepage} ({entry.by_hand}), then: ownview data import FILE --name {entry.name}"
        if not entry.embedded
        else "comes with Ownview; reinstall it"
    )


def _absent_message(name: str, data_dir: Path | None) -> str:
    looked = ", ".join(str(place) for place in places(data_dir)[:-1])
    return f"dataset {name!r} is not here (looked in {looked}); {how_to_get(catalog()[name])}"


def _read_stored(file: Path, name: str, columns: Mapping[str, str] | None) -> Interactions:
    asked = (name, None if columns is None else tuple(sorted(columns.items())))
    files = (file, file.with_name(ITEMS), file.with_name(USERS))
    return _LAST_READ.of(asked, files, lambda: _read_files(*files, name, columns))


def _read_files(file: Path, titles: Path, users: Path, name: str, columns: Mapping[str, str] | None) -> Interactions:
    entry = catalog().get(name)
    data = read(
        file,
        columns=columns,
        name=name,
        titles=titles if titles.is_file() else None,
        users=users if users.is_file() else None,
        allow_negative_times=entry is not None and entry.allow_negative_times,
    )
    return replace(data, folder=file.parent, clock=data.clock and (entry is None or entry.clock))


def _exists(path: Path) -> bool:
    """Something other than a plain file may be there: a folder, which is refused by name, or a pipe."""
    try:
        return path.exists()
    except (OSError, ValueError):
        return False


def _looks_like_path(name_or_path: str | Path) -> bool:
    text = str(name_or_path)
    return isinstance(name_or_path, Path) or any(mark in text for mark in ("/", "\\", "."))


def _entry(name: str, table: dict[str, Any]) -> Entry:
    counts = tuple(PaperCounts(**{**count, "papers": tuple(count["papers"])}) for count in table.pop("counts", []))
    return Entry(name=name, urls=tuple(table.pop("urls", ())), counts=counts, **table)
