"""Where datasets lie on this machine, and the one form they are kept in.

A stored dataset is a folder NAME with `interactions.csv.gz` (header user,item,rating,timestamp and, where it is known,
quantity), optionally `items.csv.gz` (item,title), `users.csv.gz` (user and what is known of them), `new_items.csv.gz`
(item,part: new items of a published split) and `provenance.json`. Equal data gives equal bytes.
"""

from __future__ import annotations

import gzip
import importlib.resources
import io
import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ownview.base.errors import OutputError, SettingError
from ownview.base.files import is_file, write_bytes, writing
from ownview.base.platforms import cache_home
from ownview.data.interactions import FloatArray, Interactions

if TYPE_CHECKING:
    import polars as pl

INTERACTIONS = "interactions.csv.gz"
ITEMS = "items.csv.gz"
USERS = "users.csv.gz"
NEW_ITEMS = "new_items.csv.gz"
PROVENANCE = "provenance.json"
ENVIRONMENT = "OWNVIEW_DATA"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


def places(data_dir: Path | None = None) -> list[Path]:
    """Folders that may hold datasets, in search order: data_dir, $OWNVIEW_DATA, the cache, the package."""
    folders = [] if data_dir is None else [Path(data_dir)]
    if os.environ.get(ENVIRONMENT):
        folders.append(Path(os.environ[ENVIRONMENT]).expanduser())
    return [*folders, cache_dir(), embedded_dir()]


def cache_dir() -> Path:
    """$XDG_CACHE_HOME/ownview, ~/.cache/ownview on Linux, elsewhere where the system keeps caches."""
    return cache_home() / "ownview"


def embedded_dir() -> Path:
    """The folder of the package that holds the datasets which come with it."""
    return Path(str(importlib.resources.files("ownview.data")))


def write_dir(data_dir: Path | None = None) -> Path:
    """Where new datasets go: the first of the places that is not the package."""
    return places(data_dir)[0]


def stored_names(data_dir: Path | None = None) -> set[str]:
    """Names of all datasets found in the places."""
    return {file.parent.name for place in places(data_dir) for file in place.glob(f"*/{INTERACTIONS}")}


def find(name: str, data_dir: Path | None = None) -> Path | None:
    """The interactions file of a stored dataset, from the first place that has it; None where none has."""
    if not _NAME.fullmatch(name):
        return None
    candidates = (place / name / INTERACTIONS for place in places(data_dir))
    return next((file for file in candidates if is_file(file)), None)


def store(
    data: Interactions, name: str, folder: Path, provenance: Mapping[str, Any], *, overwrite: bool = False
) -> Path:
    """Write the dataset as folder/name in source order; the interactions come last, so half is nothing.

    Raises:
        SettingError: the name cannot be a folder's.
        OutputError: the dataset is there and `overwrite` is not set, or the disk refuses.
    """
    if not _NAME.fullmatch(name):
        raise SettingError(f"name: found {name!r}; expected letters, digits, '.', '_' and '-', as in my-shop")
    target = folder / name
    if (target / INTERACTIONS).exists() and not overwrite:
        raise OutputError(f"{target / INTERACTIONS}: is there already; choose another name or give --overwrite")
    record = json.dumps(dict(provenance), indent=2, sort_keys=True, ensure_ascii=False).encode() + b"\n"
    tables = {
        ITEMS: None if data.titles is None and data.about is None else _packed(_title_rows(data)),
        USERS: None if data.about_users is None else _packed(_user_rows(data)),
    }
    rows = _packed(_source_rows(data))
    with writing(target):
        target.mkdir(parents=True, exist_ok=True)
        for file in (one for one, content in tables.items() if content is None):
            (target / file).unlink(missing_ok=True)
    for file, content in tables.items():
        if content is not None:
            write_bytes(target / file, content)
    write_bytes(target / PROVENANCE, record)
    write_bytes(target / INTERACTIONS, rows)
    return target / INTERACTIONS


def _source_rows(data: Interactions) -> pl.DataFrame:
    import polars as pl  # noqa: PLC0415 - not everywhere, and slow to import

    order = np.argsort(data.row, kind="stable")
    empty = [""] * len(data)
    taken = {} if data.quantity is None else {"quantity": _short(data.quantity[order])}
    return pl.DataFrame(
        {
            "user": data.users[data.user[order]].tolist(),
            "item": data.items[data.item[order]].tolist(),
            "rating": empty if data.rating is None else _short(data.rating[order]),
            "timestamp": empty if data.timestamp is None else data.timestamp[order],
            **taken,
        }
    )


def _short(rating: FloatArray) -> Any:
    """Whole numbers as integers, so that 5 is not written as 5.0."""
    whole = bool(np.all((rating == np.floor(rating)) & (np.abs(rating) < 2.0**53)))
    return rating.astype(np.int64) if whole else rating


def _title_rows(data: Interactions) -> pl.DataFrame:
    import polars as pl  # noqa: PLC0415 - not everywhere, and slow to import

    about = {"title": data.titles or ()} if data.about is None else data.about.columns
    return pl.DataFrame({"item": data.items.tolist(), **{name: list(values) for name, values in about.items()}})


def _user_rows(data: Interactions) -> pl.DataFrame:
    import polars as pl  # noqa: PLC0415 - not everywhere, and slow to import

    assert data.about_users is not None
    columns = {name: list(values) for name, values in data.about_users.columns.items()}
    return pl.DataFrame({"user": data.users.tolist(), **columns})


def _packed(frame: pl.DataFrame) -> bytes:
    text = io.BytesIO()
    # An empty text is written as "" unless it is null; the canonical form has nothing between commas.
    frame.with_columns(_without_empty_texts(frame)).write_csv(text)
    return gzip.compress(text.getvalue(), compresslevel=6, mtime=0)


def _without_empty_texts(frame: pl.DataFrame) -> list[pl.Expr]:
    import polars as pl  # noqa: PLC0415 - not everywhere, and slow to import

    texts = [name for name, kind in frame.schema.items() if kind == pl.String]
    return [pl.when(pl.col(name) != "").then(pl.col(name)).alias(name) for name in texts]
