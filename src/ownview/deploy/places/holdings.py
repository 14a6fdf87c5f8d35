"""What the users of a place have: their ratings, read from their file, by the positions of the agreed items."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from ownview.base.errors import DataError, suggestion
from ownview.base.items.item_table import ItemTable
from ownview.data.interactions import IntArray, Interactions
from ownview.data.ragged import Ragged
from ownview.data.reading.readers import read
from ownview.data.reading.user_tables import read_users
from ownview.data.splitting.splits import FEWEST, by_time, distinct
from ownview.data.timeline import Timeline
from ownview.deploy.agreement import Agreement
from ownview.federation.facts import OwnFacts, OwnRows


@dataclass(frozen=True, eq=False)
class Holdings:
    """Ratings of k users, by place in `users`.

    Args:
        users: their names at the place, which never leave it, in the order in which they came.
        train: what they train on, in the order of the file.
        timeline: the same, oldest first. Now is the time of a user's last training item.
        held_out: [k] the latest item of a user, kept out of training; -1 where nothing is.
        unknown: ratings of items that are not among those agreed on; they are left out.
        facts: what was agreed on that they know besides.
    """

    users: tuple[str, ...]
    train: Ragged
    timeline: Timeline
    held_out: Tensor
    unknown: int = 0
    facts: OwnFacts = field(default_factory=OwnFacts)

    @property
    def excluded(self) -> Ragged:
        """Items that are never drawn as training negatives: a user's own."""
        return distinct(self.train)

    def first(self, count: int) -> Holdings:
        """Holdings of the first users alone."""
        line = self.timeline
        times = None if line.times is None else _first(line.times, count)
        timeline = Timeline(_first(line.items, count), times, None if line.now is None else line.now[:count])
        return replace(
            self, users=self.users[:count], train=_first(self.train, count), timeline=timeline,
            held_out=self.held_out[:count], facts=self.facts.part(range(count)),
        )  # fmt: skip

    def joined(self, other: Holdings) -> Holdings:
        """The users of both, these first, without what they know besides."""
        times, now = None, None
        if self.timeline.times is not None and other.timeline.times is not None:
            times = _behind(self.timeline.times, other.timeline.times)
            assert self.timeline.now is not None
            assert other.timeline.now is not None
            now = torch.cat([self.timeline.now, other.timeline.now])
        line = Timeline(_behind(self.timeline.items, other.timeline.items), times, now)
        held_out = torch.cat([self.held_out, other.held_out])
        return Holdings(
            self.users + other.users, _behind(self.train, other.train), line, held_out, self.unknown + other.unknown
        )


def read_holdings(
    file: Path, agreement: Agreement, before: Sequence[str] = (), known_of_users: Path | None = None
) -> Holdings:
    """From a file of ratings: columns user, item and, where they are known, rating and timestamp.

    Of ratings of the same item by the same user the first counts.

    Args:
        file: any that `data.reading.readers.read` reads.
        agreement: knows the items, and whether the latest rating is held out.
        before: users known already; they come first, also where they have no ratings any more.
        known_of_users: file with the agreed columns about users.

    Raises:
        DataError: the files do not have what was agreed on.
    """
    data = read(file).without_repeats()
    if data.timestamp is None and agreement.needs_times:
        raise DataError(
            f"{file}: no timestamp column, and {agreement.label} goes by the times of ratings; expected "
            "user,item,timestamp, or an agreement with order = rows"
        )
    if data.rating is None and agreement.ratings:
        raise DataError(
            f"{file}: no column rating with a number in every row, and {agreement.label} asks for ratings; expected "
            "user,item,rating"
        )
    users = list(dict.fromkeys([*before, *map(str, data.users.tolist())]))
    place = {one: k for k, one in enumerate(users)}
    owner = np.array([place[str(one)] for one in data.users.tolist()], dtype=np.int64)[data.user]
    known = np.array([agreement.positions.get(str(one), -1) for one in data.items.tolist()], dtype=np.int64)[data.item]
    trains = known >= 0
    order = by_time(data, ties="hash", untimed="rows", seed=agreement.seed)[0]
    order = order[trains[order]]
    held_out = np.full(len(users), -1, dtype=np.int64)
    if agreement.hold_out:
        last = _latest(owner[order], len(users))
        rows = order[last[last >= 0]]
        held_out[owner[rows]], trains[rows] = known[rows], False
        order = order[trains[order]]
    train = Ragged.from_pairs(owner[trains], known[trains], len(users))
    line = _timeline(data, owner, known, order, len(users), timed=agreement.order == "times")
    facts = OwnFacts(_own_rows(data, owner, known, agreement, users), _about_users(known_of_users, agreement, users))
    return Holdings(tuple(users), train, line, torch.from_numpy(held_out), int((known < 0).sum()), facts)


def _own_rows(
    data: Interactions, owner: IntArray, known: IntArray, agreement: Agreement, users: Sequence[str]
) -> OwnRows | None:
    """Ratings and quantities of the agreed items, by users as places know them."""
    order = np.argsort(owner, kind="stable")
    order = order[known[order] >= 0]
    counts = np.bincount(owner[order], minlength=len(users))
    return OwnRows.of(
        replace(
            data, users=np.array(users, dtype=object), items=agreement.item_ids, item=known[order], row=data.row[order],
            offsets=np.concatenate([[0], np.cumsum(counts)]), timestamp=None,
            rating=None if data.rating is None else data.rating[order],
            quantity=None if data.quantity is None else data.quantity[order],
        )
    )  # fmt: skip


def _about_users(file: Path | None, agreement: Agreement, users: Sequence[str]) -> ItemTable | None:
    """The agreed columns about users, in the agreed order."""
    if not agreement.user_columns:
        return None
    asks = f"{agreement.label} asks for what is known of users"
    if file is None or not file.is_file():
        listed = ",".join(("user", *agreement.user_columns))
        raise DataError(f"{file or 'users.csv'}: is not there, and {asks}; expected a file with columns {listed}")
    found = read_users(file, users).columns.columns
    missing = next((name for name in agreement.user_columns if name not in found), None)
    if missing is not None:
        here = f"found {', '.join(found) or 'no other than user'}"
        raise DataError(f"{file}: no column {missing!r}, and {asks}; {here}{suggestion(missing, list(found))}")
    return ItemTable({name: found[name] for name in agreement.user_columns})


def _timeline(
    data: Interactions, owner: IntArray, known: IntArray, order: IntArray, users: int, *, timed: bool
) -> Timeline:
    items = Ragged.from_pairs(owner[order], known[order], users)
    if not timed or data.timestamp is None:
        return Timeline(items)
    # Grouped by users as places know them, who need not stand in the order of the file.
    times = Ragged.from_pairs(owner[order], data.timestamp[order], users)
    return Timeline(items, times, Timeline(items, times).last)


def _latest(owner: IntArray, users: int) -> IntArray:
    """[users] the place of each user's last entry in time order; -1 for users with too few to hold one out."""
    counts = np.bincount(owner, minlength=users)
    last = np.full(users, -1, dtype=np.int64)
    last[owner] = np.arange(len(owner))  # of equal indices the last one counts
    return np.where(counts >= FEWEST, last, -1)


def _behind(first: Ragged, second: Ragged) -> Ragged:
    offsets = torch.cat([first.offsets, second.offsets[1:] + first.offsets[-1]])
    return Ragged(offsets, torch.cat([first.values, second.values]))


def _first(lists: Ragged, count: int) -> Ragged:
    return Ragged(lists.offsets[: count + 1], lists.values[: int(lists.offsets[count])])
