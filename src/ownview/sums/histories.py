"""One person's rows, as the journal keeps them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from ownview.base.errors import DataError, OutputError
from ownview.base.items.item_table import ItemTable
from ownview.data.interactions import IdArray, IntArray, Interactions

_WHOLE = re.compile(r"0|-?[1-9][0-9]{0,18}")
"""Whole numbers as they are written: no sign, zero or digit too much."""
_HEAD = 9
"""Bytes before the numbers: how many rows, and whether they have times."""


class History(NamedTuple):
    """Rows of one person, in the order in which they came.

    places: [r] of the items in the store
    times:  [r] or None where the data has none
    rows:   [r] numbers of the rows in all that ever came, rising
    """

    places: IntArray
    times: IntArray | None
    rows: IntArray

    def packed(self) -> bytes:
        """For the journal."""
        parts = (self.places, self.rows) if self.times is None else (self.places, self.rows, self.times)
        head = len(self.places).to_bytes(_HEAD - 1, "little") + bytes([self.times is not None])
        return head + b"".join(np.ascontiguousarray(one, dtype="<i8").tobytes() for one in parts)

    @classmethod
    def unpacked(cls, content: bytes) -> History:
        """Of what `packed` wrote."""
        count, timed = int.from_bytes(content[: _HEAD - 1], "little"), bool(content[_HEAD - 1 : _HEAD] == b"\x01")
        if len(content) != _HEAD + 8 * count * (2 + timed):
            raise OutputError(
                f"a history of {len(content):,} bytes: is damaged; bring a sound copy of the journal back"
            )
        numbers = np.frombuffer(content, dtype="<i8", offset=_HEAD).astype(np.int64).reshape(-1, count)
        return cls(numbers[0], numbers[2] if timed else None, numbers[1])

    def plus(self, other: History) -> History:
        """With rows that are not there yet: the same item (at the same time, where there are times) counts once."""
        known = set(zip(self.places.tolist(), self._when(), strict=True))
        fresh = []
        for k, one in enumerate(zip(other.places.tolist(), other._when(), strict=True)):
            if one not in known:
                known.add(one)
                fresh.append(k)
        times = None
        if self.times is not None and other.times is not None:
            times = np.concatenate([self.times, other.times[fresh]])
        places, rows = (
            np.concatenate([mine, more[fresh]]) for mine, more in ((self[0], other[0]), (self[2], other[2]))
        )
        return History(places, times, rows)

    def _when(self) -> list[int]:
        return [0] * len(self.places) if self.times is None else self.times.tolist()

    @classmethod
    def empty(cls, *, timed: bool) -> History:
        """Of a person who has none yet."""
        none = np.zeros(0, dtype=np.int64)
        return cls(none, none if timed else None, none)


def as_ids(names: Sequence[str]) -> IdArray:
    """Whole numbers where all names are such, as readers of files have it; else text."""
    fits = all(_WHOLE.fullmatch(name) and abs(int(name)) < 2**63 for name in names)
    return np.array([int(name) for name in names] if fits else list(names), dtype=np.int64 if fits else object)


def interactions(
    name: str, people: Mapping[str, History], items: Mapping[int, tuple[str, dict[str, str]]], *, clock: bool
) -> Interactions:
    """Everybody's rows as data; items without rows are left out.

    Args:
        name: of the data.
        people: by name.
        items: by place: id, and columns about it, the title among them.
        clock: whether times are seconds.
    """
    kept = {who: one for who, one in people.items() if len(one.places)}
    if not kept:
        raise DataError(f"{name}: no person is left; a model needs at least one person")
    held = np.unique(np.concatenate([one.places for one in kept.values()]))
    about = [items[place] for place in held.tolist()]
    columns = list(dict.fromkeys(column for _, facts in about for column in facts))
    table = {column: tuple(facts.get(column, "") for _, facts in about) for column in columns}
    timed = all(one.times is not None for one in kept.values())
    titles = tuple(facts.get("title", item) for item, facts in about) if "title" in columns else None
    return Interactions(
        name=name,
        users=as_ids(list(kept)),
        items=as_ids([item for item, _ in about]),
        offsets=np.concatenate([[0], np.cumsum([len(one.places) for one in kept.values()])]).astype(np.int64),
        item=np.searchsorted(held, np.concatenate([one.places for one in kept.values()])),
        row=np.concatenate([one.rows for one in kept.values()]),
        timestamp=np.concatenate([_timed(one) for one in kept.values()]) if timed else None,
        titles=titles,
        about=ItemTable(table) if columns else None,
        clock=clock,
    )


def with_facts(whole: Interactions, before: Interactions, more: Interactions, first: int) -> Interactions:
    """Rows of both with what they say of users, the later word for each, and with ratings where both have them.

    Quantities are 1 where one of them has none.

    Args:
        whole: rows of `before`, and of `more` by the number `first` higher.
        before: had before.
        more: that came.
        first: number of the first row that came.
    """
    known: dict[str, dict[str, str]] = {}
    for one in (before, more):
        for column, values in ({} if one.about_users is None else one.about_users.columns).items():
            pairs = zip(map(str, one.users.tolist()), values, strict=True)
            known.setdefault(column, {}).update((user, value) for user, value in pairs if value)
    about = ItemTable.aligned(known, [str(user) for user in whole.users.tolist()]) if known else None
    size, found = first + int(more.row.max()) + 1, replace(whole, about_users=about)
    if before.quantity is not None or more.quantity is not None:
        quantity = np.ones(size)
        for rows, taken in ((before.row, before.quantity), (first + more.row, more.quantity)):
            quantity[rows] = 1.0 if taken is None else taken
        found = replace(found, quantity=quantity[whole.row])
    if before.rating is None or more.rating is None:
        return found
    rating = np.zeros(size, dtype=before.rating.dtype)
    rating[before.row], rating[first + more.row] = before.rating, more.rating
    return replace(found, rating=rating[whole.row])


def _timed(one: History) -> IntArray:
    assert one.times is not None
    return one.times


def about_items(data: Interactions) -> list[tuple[str, dict[str, str]]]:
    """Id of every item of some data, and columns about it; a title that is the id says nothing."""
    columns: dict[str, Any] = dict(data.about.columns) if data.about is not None else {}
    if data.titles is not None:
        columns["title"] = data.titles
    return [
        (str(item), {name: values[k] for name, values in columns.items() if values[k]})
        for k, item in enumerate(data.items.tolist())
    ]
