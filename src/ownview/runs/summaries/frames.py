"""Runs as polars frames, for notebooks and files."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ownview.base.display.cells import as_cell
from ownview.base.errors import OutputError
from ownview.base.files import write_bytes
from ownview.data.interactions import IdArray
from ownview.evaluation.ranking import NONE
from ownview.runs.recommending import Lists, Recommender

if TYPE_CHECKING:
    import polars as pl

ENDINGS = (".parquet", ".csv")
"""Of files of lists."""

_TRAFFIC = ("bytes_down_per_client", "bytes_up_per_client")


def frame_of_lists(recommender: Recommender, found: Lists) -> pl.DataFrame:
    """user, rank (from 1), item, title (where the data has titles) and score, a row for every recommended item."""
    import polars as pl  # noqa: PLC0415 - slow to import, and most of the program needs it not

    split = recommender.split
    there = found.items != NONE
    place, rank = np.nonzero(there)
    item = found.items[there]
    titles = split.data.titles
    named = {} if titles is None else {"title": np.array(titles, dtype=object)[item].tolist()}
    return pl.DataFrame(
        {
            "user": _plain(split.users_of(recommender.ranker.question)[found.users[place]]),
            "rank": rank + 1,
            "item": _plain(split.data.items[item]),
            **named,
            "score": found.scores[there],
        }
    )


def frame_of_rounds(rounds: Sequence[Mapping[str, Any]]) -> pl.DataFrame:
    """A row a round: clients, loss, seconds, bytes, and what was measured under names such as `validation HR@10`."""
    import polars as pl  # noqa: PLC0415 - slow to import, and most of the program needs it not

    return pl.DataFrame([_row(line) for line in rounds], infer_schema_length=None)


def write_frame(frame: pl.DataFrame, path: Path) -> None:
    """Write Parquet or CSV, whole or not at all; formulas in a CSV's text are quoted (`base.display.cells`)."""
    import polars as pl  # noqa: PLC0415 - slow to import, and most of the program needs it not

    require_ending(path)
    written = io.BytesIO()  # polars itself takes no name that is not UTF-8, and has other errors for a full disk
    if path.suffix == ".parquet":
        frame.write_parquet(written)
    else:
        texts = [name for name, kind in frame.schema.items() if kind == pl.String]
        frame.with_columns(pl.col(texts).map_elements(as_cell, return_dtype=pl.String)).write_csv(written)
    write_bytes(path, written.getvalue())


def require_ending(path: Path) -> None:
    """Refuse a file whose kind its name does not show."""
    if path.suffix not in ENDINGS:
        found = f"ends in {path.suffix}" if path.suffix else "has no ending"
        raise OutputError(f"{path}: {found}; expected {' or '.join(ENDINGS)}")
    if path.is_dir():
        raise OutputError(f"{path}: is a folder; expected a file such as {path / ('lists' + path.suffix)}")


def _row(line: Mapping[str, Any]) -> dict[str, Any]:
    measured = {
        f"{stage} {name}": value for stage in ("validation", "test") for name, value in line.get(stage, {}).items()
    }
    plain = {name: line[name] for name in ("round", "clients", "loss")}
    return {**plain, **measured, "seconds": sum(line["seconds"].values()), **{name: line[name] for name in _TRAFFIC}}


def _plain(ids: IdArray) -> Any:
    """Numbers as an array; text as a list, which polars reads as text."""
    return ids.tolist() if ids.dtype == object else ids
