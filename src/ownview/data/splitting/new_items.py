"""Items without a single row when the model is made: nothing of theirs is trained on, and they alone are asked for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import torch

from ownview.base.display.amounts import counted
from ownview.base.errors import DataError
from ownview.base.randomness import derive
from ownview.data.datasets.storage import NEW_ITEMS
from ownview.data.interactions import Interactions
from ownview.data.questions import Question
from ownview.data.ragged import Ragged
from ownview.data.reading.columns import locate_known, named
from ownview.data.reading.tables import read_table
from ownview.data.splitting.splits import RowMask, Split, by_time, distinct_rows, known_by, training

PARTS = ("validation", "test")


def drawn_items(data: Interactions, *, share: float, ties: str, untimed: str, seed: int, among_new: bool) -> Split:
    """A share of the items, drawn by a hash of their ids, is held out of training and asked for.

    Validation asks an earlier model that trained without a second draw of as large a share, taken from what is left.

    Args:
        data: as the protocol filters it.
        share: of the items that are new, in (0, 1/2].
        ties: as in `leave_one_out`.
        untimed: as in `leave_one_out`.
        seed: of the draw and of ties.
        among_new: whether new items are ranked among each other; else among all items.
    """
    hold_out = partial(_held_out, ties=ties, untimed=untimed, seed=seed, among_new=among_new)
    test = _drawn(data, share, derive(seed, "new items"))
    left = data.select(~test[data.item])
    earlier = hold_out(left, {"test": _drawn(left, share, derive(seed, "new items of validation"))})
    return _with_earlier(hold_out(data, {"test": test}), earlier)


def late_items(
    data: Interactions, *, first: int, second: int, ties: str, seed: int, among_new: bool
) -> Split:  # fmt: skip
    """Items that first appear at or after a moment are new; rows before the moment train.

    Args:
        data: with times.
        first: the moment of validation, which asks an earlier model: what came before `second` is all that it may see.
        second: the moment of test.
        ties: as in `leave_one_out`.
        seed: of ties.
        among_new: as in `drawn_items`.
    """
    assert data.timestamp is not None
    cut = partial(_after_moment, ties=ties, seed=seed, among_new=among_new)
    earlier = cut(data.select(data.timestamp < second), moment=first)
    return _with_earlier(cut(data, moment=second), earlier)


def listed_items(
    data: Interactions, file: str, *, ties: str, untimed: str, seed: int, among_new: bool
) -> Split:  # fmt: skip
    """Items that a file names, with columns item and part (validation or test); neither part trains.

    Without a name it is the file `NEW_ITEMS` of a stored dataset.
    """
    beside = None if data.folder is None else data.folder / NEW_ITEMS
    named_file = Path(file) if file else beside
    if named_file is None:
        raise DataError(f"{data.name}: lies in no folder with a file {NEW_ITEMS}; expected new_file to name the file")
    parts = _read_parts(named_file, data)
    return _held_out(data, parts, ties=ties, untimed=untimed, seed=seed, among_new=among_new)


def _with_earlier(split: Split, earlier: Split) -> Split:
    validation = replace(earlier.test, earlier=True)
    return replace(split, validation=validation, earlier=replace(earlier, test=validation))


def _drawn(data: Interactions, share: float, key: int) -> RowMask:
    """[m] True for the share of items whose hashes are lowest."""
    wanted = int(data.num_items * share)
    if not wanted:
        raise DataError(
            f"{data.name}: {share:g} of {data.num_items} items is less than one; expected more items, or a larger "
            "new_share"
        )
    order = np.argsort([derive(key, f"item:{one}") for one in data.items.tolist()], kind="stable")
    return np.isin(np.arange(data.num_items), order[:wanted])


def _after_moment(data: Interactions, *, moment: int, ties: str, seed: int, among_new: bool) -> Split:
    assert data.timestamp is not None
    first = np.full(data.num_items, np.iinfo(np.int64).max)
    np.minimum.at(first, data.item, data.timestamp)
    rows = (data.timestamp < moment) | (first >= moment)[data.item]
    new = (first >= moment)[np.unique(data.item[rows])]
    if not new.any():
        raise DataError(f"{data.name}: no item first appears after the cut; expected an earlier cut, or new_by = draw")
    return _held_out(data.select(rows), {"test": new}, ties=ties, untimed="rows", seed=seed, among_new=among_new)


def _held_out(
    data: Interactions, parts: Mapping[str, RowMask], *, ties: str, untimed: str, seed: int, among_new: bool
) -> Split:
    """The split that trains on everything but new items, which stand behind all others in its catalogue.

    Args:
        data: r rows of m items.
        parts: [m] by part of `PARTS`, its new items; without validation, validation is test.
        ties: as in `leave_one_out`.
        untimed: as in `leave_one_out`.
        seed: of ties.
        among_new: as in `drawn_items`.
    """
    users = data.num_users
    data, parts = _new_last(data, parts)
    num_new = int(_any(parts).sum())
    order, known, notes = by_time(data, ties=ties, untimed=untimed, seed=seed)
    trains = data.item < data.num_items - num_new
    train, timeline = training(data, order, trains)
    line, hidden = known_by(data, order, trains), distinct_rows(data, trains)
    asked = {part: distinct_rows(data, mask[data.item]) for part, mask in parts.items()}
    among = {part: np.flatnonzero(mask) if among_new else None for part, mask in parts.items()}
    questions = {part: Question(asked[part], line, hidden, among=among[part]) for part in parts}
    # What `by_time` says of items drawn at random is not what is held out here.
    true_notes = [note for note in notes if "held-out" not in note]
    if users > data.num_users:
        true_notes.append(f"{counted(users - data.num_users, 'user')} with nothing but new items dropped")
    true_notes.append(
        f"{num_new:,} of {counted(data.num_items, 'item')} are new: no client trains on them, they are asked for"
    )
    validation = questions.get("validation", questions["test"])
    return Split(data, train, timeline, validation, questions["test"], known, tuple(true_notes), num_new=num_new)


def _any(parts: Mapping[str, RowMask]) -> RowMask:
    return np.asarray(np.stack(list(parts.values())).any(0))


def _new_last(data: Interactions, parts: Mapping[str, RowMask]) -> tuple[Interactions, dict[str, RowMask]]:
    """Without users who have new items alone, and with new items behind all others; the parts follow."""
    stays = np.bincount(data.user, ~_any(parts)[data.item], data.num_users) > 0
    if not stays.any():
        raise DataError(f"{data.name}: no user has an item that is not new; expected a smaller new_share")
    rows = stays[data.user]
    left = np.unique(data.item[rows])
    data, parts = data.select(rows), {part: mask[left] for part, mask in parts.items()}
    order = np.argsort(_any(parts), kind="stable")
    return data.with_items_in(order), {part: mask[order] for part, mask in parts.items()}


def _read_parts(file: Path, data: Interactions) -> dict[str, RowMask]:
    table = read_table(file, None, lambda row: True)
    header = table.header or []
    where = locate_known(header, ("item",))
    if "item" not in where or "part" not in header:
        raise DataError(f"{file}: line 1: found {named(header)}; expected columns item and part")
    place = {str(one): k for k, one in enumerate(data.items.tolist())}
    found = {part: np.zeros(data.num_items, dtype=bool) for part in PARTS}
    listed = zip(table.column(where["item"]).to_list(), table.column(header.index("part")).to_list(), strict=True)
    for row, (item, part) in enumerate(listed):
        if part not in PARTS:
            raise DataError(f"{file}: {table.place(row)}: part {part!r}; expected validation or test")
        if item in place:
            found[part][place[item]] = True
    for part, mask in found.items():
        if not mask.any():
            raise DataError(f"{file}: no item of {data.name} has part {part}; expected at least one")
    return found


def never_drawn(lists: Ragged, num_items: int, num_new: int) -> Ragged:
    """Every list, and all new items behind it: what is never drawn as a negative, for no user could have taken it."""
    if not num_new:
        return lists
    new = torch.arange(num_items - num_new, num_items)
    lengths = lists.lengths
    values = torch.empty(int(lengths.sum()) + num_new * len(lists), dtype=torch.long)
    own = torch.repeat_interleave(torch.arange(len(lists)), lengths) * num_new + torch.arange(len(lists.values))
    values[own] = lists.values
    rest = torch.ones(len(values), dtype=torch.bool)
    rest[own] = False
    values[rest] = new.repeat(len(lists))
    return Ragged(lists.offsets + torch.arange(len(lists) + 1) * num_new, values)
