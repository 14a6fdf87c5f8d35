"""A split the user brings: train, validation and test files in one folder."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from ownview.base.errors import DataError
from ownview.data.interactions import IntArray, Interactions
from ownview.data.questions import Question
from ownview.data.ragged import Ragged
from ownview.data.reading.readers import read
from ownview.data.splitting.splits import Split, distinct
from ownview.data.timeline import Timeline, time_order

_PARTS = ("train", "validation", "test")
_UNKNOWN = -1


def from_files(folder: Path, data: Interactions, *, ties: str, seed: int) -> Split:
    """Read `train.*`, `validation.*` and `test.*`; the last two hold at most one row a user.

    Args:
        folder: holds the three files, in any format `ownview.data.read` takes.
        data: gives the universe of users and items; every id in the files must be known to it.
        ties: which of equally timed rows of the train file is the later, see `time_order`.
        seed: of the hash that decides them.

    The timeline follows the timestamps of the train file, where it has any, and else the order of its rows: the
    times of `data` are not looked up. A client that is asked takes the time of its last training item for now.
    """
    parts = {part: read(_file(folder, part)) for part in _PARTS}
    positions = {part: _positions(rows, data, _file(folder, part)) for part, rows in parts.items()}
    user, item = positions["train"]
    untrained = np.setdiff1d(np.arange(data.num_users), user)
    if len(untrained):
        raise DataError(f"{folder}: user {data.users[untrained[0]]} of {data.name} has no row in the train file")
    train = Ragged.from_pairs(user, item, data.num_users)
    for part in _PARTS[1:]:
        _require_one_each(positions[part], data, _file(folder, part))
    trained = set(zip(user.tolist(), item.tolist(), strict=True))
    for part in _PARTS[1:]:
        _require_unseen(positions[part], trained, data, _file(folder, part))
    line = _timeline(parts["train"], positions["train"], train, ties, seed)
    validation, test = (Ragged.from_pairs(*positions[part], data.num_users) for part in _PARTS[1:])
    hidden = [distinct(train), Ragged.from_distinct_pairs(*_both(positions, "train", "validation"), data.num_users)]
    order = "none" if line.times is None else "times"
    known = line if line.times is None else replace(line, now=line.times.values[line.items.offsets[1:] - 1])
    questions = [Question(right, known, seen) for right, seen in zip((validation, test), hidden, strict=True)]
    return Split(data, train, line, questions[0], questions[1], order, (f"split from the files in {folder}",))


def _both(positions: dict[str, tuple[IntArray, IntArray]], *parts: str) -> tuple[IntArray, IntArray]:
    user, item = (np.concatenate([positions[part][axis] for part in parts]) for axis in (0, 1))
    return user, item


def _timeline(
    rows: Interactions, positions: tuple[IntArray, IntArray], train: Ragged, ties: str, seed: int
) -> Timeline:
    """The rows of the train file in time order, as they stand without times; `positions` are theirs in the data."""
    if rows.timestamp is None:
        return Timeline(train)
    user, item = positions
    order = time_order(rows, rows.timestamp, ties=ties, seed=seed)
    order = order[np.argsort(user[order], kind="stable")]  # the file may name its users in another order than the data
    now = torch.full((len(train),), int(rows.timestamp.max()))
    return Timeline(train.with_values(item[order]), train.with_values(rows.timestamp[order]), now)


def _require_unseen(
    positions: tuple[IntArray, IntArray], trained: set[tuple[int, int]], data: Interactions, path: Path
) -> None:
    for u, i in zip(positions[0].tolist(), positions[1].tolist(), strict=True):
        if (u, i) in trained:
            raise DataError(f"{path}: user {data.users[u]} has item {data.items[i]} in the train file too")


def _file(folder: Path, part: str) -> Path:
    found = sorted(folder.glob(f"{part}.*"))
    if len(found) != 1:
        raise DataError(f"{folder}: expected exactly one file {part}.csv (or .tsv, .parquet, ...), found {len(found)}")
    return found[0]


def _positions(part: Interactions, data: Interactions, path: Path) -> tuple[IntArray, IntArray]:
    users = {str(u): k for k, u in enumerate(data.users.tolist())}
    items = {str(i): k for k, i in enumerate(data.items.tolist())}
    found = []
    for ids, known, kind in ((part.users, users, "user"), (part.items, items, "item")):
        places = np.array([known.get(str(one), _UNKNOWN) for one in ids.tolist()], dtype=np.int64)
        if (places == _UNKNOWN).any():
            raise DataError(f"{path}: {kind} {ids[places == _UNKNOWN][0]} does not occur in {data.name}")
        found.append(places)
    return found[0][part.user], found[1][part.item]


def _require_one_each(positions: tuple[IntArray, IntArray], data: Interactions, path: Path) -> None:
    often = np.bincount(positions[0], minlength=data.num_users)
    if (often > 1).any():
        raise DataError(f"{path}: user {data.users[often.argmax()]} has {often.max()} rows; expected at most one")
