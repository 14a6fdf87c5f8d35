"""Recommendation lists of any program, and splits for it to train on, in the forms of others.

A list is rows of user, item, and a score or a rank. Forms that are read: Parquet, CSV, TSV and JSON lines with columns
user (or user_id), item (or item_id), score, rank; LensKit's item list collections as it saves them (Parquet, flat or a
list of structs for every user); RecBole's atomic files, whose head names types (user_id:token).
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ownview.base.arguments import kinds_checked
from ownview.base.errors import DataError, suggestion
from ownview.base.files import make_folder
from ownview.data.splitting.splits import Split

if TYPE_CHECKING:
    import polars as pl

FORMS = ("plain", "lenskit", "recbole")
_NAMES = {"user": ("user", "user_id"), "item": ("item", "item_id"), "score": ("score",), "rank": ("rank",)}


@kinds_checked()
def read_lists(path: str | Path) -> pl.DataFrame:
    """Columns user, item (as text) and rank (from 1, by user), in the order of users and ranks.

    Where there are scores and no ranks, the highest score is first, and equal ones as they stand in the file.
    """
    import polars as pl  # noqa: PLC0415 - slow to import, and few need it

    path = Path(path)
    table = _table(path)
    nested = [
        name for name, kind in table.schema.items() if isinstance(kind, pl.List) and isinstance(kind.inner, pl.Struct)
    ]
    if nested:  # LensKit's own layout: a row a user
        table = table.explode(nested[0]).unnest(nested[0])
    table = table.rename({name: name.partition(":")[0] for name in table.columns})  # RecBole's name:type
    found = {what: next((name for name in names if name in table.columns), None) for what, names in _NAMES.items()}
    missing = [what for what in ("user", "item") if found[what] is None]
    if missing or (found["score"] is None and found["rank"] is None):
        lacks = missing[0] if missing else "score or rank"
        near = suggestion(lacks, table.columns) if missing else ""
        raise DataError(
            f"{path}: no column {lacks} among {', '.join(table.columns)}; expected user, item, and score or rank{near}"
        )
    kept = table.select(
        pl.col(str(found["user"])).cast(pl.String).alias("user"),
        pl.col(str(found["item"])).cast(pl.String).alias("item"),
        pl.col(str(found["rank"] or found["score"])).cast(pl.Float64, strict=False).alias("order"),
    ).with_columns(pl.col("order") * (1 if found["rank"] else -1))
    bad = kept.with_row_index("row").filter(pl.any_horizontal(pl.all().is_null()) | pl.col("order").is_nan())
    if bad.height:
        raise DataError(f"{path}: row {bad['row'][0] + 1} has no user, item, or number to order by; expected all three")
    twice = kept.filter(kept.select("user", "item").is_duplicated())
    if twice.height:
        raise DataError(f"{path}: item {twice['item'][0]} stands twice in the list of user {twice['user'][0]}")
    ranked = kept.sort("user", "order", maintain_order=True)
    return ranked.select("user", "item", pl.int_range(1, pl.len() + 1).over("user").alias("rank"))


def _table(path: Path) -> pl.DataFrame:
    import polars as pl  # noqa: PLC0415

    if not path.is_file():
        raise DataError(f"{path}: no such file of lists")
    try:
        if path.suffix == ".parquet":
            return pl.read_parquet(path)
        if path.suffix in (".jsonl", ".ndjson"):
            return pl.read_ndjson(path)
        if path.suffix in (".csv", ".tsv", ".inter", ".txt"):
            return pl.read_csv(path, separator="," if path.suffix == ".csv" else "\t", infer_schema=False)
    except Exception as error:  # whatever the library makes of a damaged file
        raise DataError(f"{path}: cannot be read as {path.suffix[1:]}: {str(error).splitlines()[0][:200]}") from None
    raise DataError(
        f"{path}: lists come as .parquet, .csv, .tsv, .inter or .jsonl, not {path.suffix or 'without ending'}"
    )


@kinds_checked("lists")
def write_lists(lists: pl.DataFrame, path: str | Path, form: str = "plain") -> None:
    """Write lists (user, item, rank, score; as `Run.recommend_many` returns them) for another program.

    Args:
        lists: a row an item of a list.
        path: .parquet or .csv; of RecBole .inter.
        form: plain, lenskit (user_id, item_id, rank, score) or recbole (a head with types, tabs).
    """
    require_form(form)
    path, kept = Path(path), [name for name in ("user", "item", "rank", "score") if name in lists.columns]
    table = lists.select(kept)
    if form != "plain":
        table = table.rename({"user": "user_id", "item": "item_id"})
    if form == "recbole":
        _atomic(table, path)
    elif path.suffix == ".parquet":
        table.write_parquet(path)
    else:
        table.write_csv(path)


def write_split(split: Split, folder: Path, form: str = "plain") -> list[Path]:
    """What another program may train on, and what it is asked: train, validation and test, a file each.

    Of `recbole` they are NAME.train.inter, NAME.valid.inter and NAME.test.inter, which its `benchmark_filename` takes;
    of `lenskit` CSV files with user_id, item_id and timestamp; else user, item and timestamp.
    """
    import polars as pl  # noqa: PLC0415

    require_form(form)
    make_folder(folder)
    name, users, items = split.data.name, split.data.users, split.data.items
    times = None if split.timeline.times is None else split.timeline.times.values.numpy()
    parts = {
        "train": (split.timeline.items.values.numpy(), split.timeline.items.lengths.numpy(), times),
        "valid": (split.validation.relevant.values.numpy(), split.validation.relevant.lengths.numpy(), None),
        "test": (split.test.relevant.values.numpy(), split.test.relevant.lengths.numpy(), None),
    }
    written = []
    for part, (item, lengths, when) in parts.items():
        if split.test.strangers is not None or (len(item) and int(item.max()) >= len(items)):
            raise DataError(
                f"{name}: {part} asks about users or items that are not trained on; such a split has no such files"
            )
        table = pl.DataFrame({"user_id": users[np.repeat(np.arange(len(lengths)), lengths)], "item_id": items[item]})
        table = table if when is None else table.with_columns(timestamp=pl.Series(when))
        if form == "recbole":
            path = folder / f"{name}.{part}.inter"
            _atomic(table, path)
        else:
            path = folder / f"{part}.csv"
            (table if form == "lenskit" else table.rename({"user_id": "user", "item_id": "item"})).write_csv(path)
        written.append(path)
    return written


def require_form(form: str) -> None:
    """Refuse a form that is none."""
    if form not in FORMS:
        raise DataError(f"form {form!r}: expected one of {', '.join(FORMS)}{suggestion(form, FORMS)}")


def _atomic(table: pl.DataFrame, path: Path) -> None:
    types = {"user_id": "token", "item_id": "token"}
    head = {name: f"{name}:{types.get(name, 'float')}" for name in table.columns}
    table.rename(head).write_csv(path, separator="\t")
