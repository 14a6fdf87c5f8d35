"""The one form of data everything else reads: who interacted with what, in which order.

`Interactions` is immutable and stored by user (compressed sparse rows). Ids stay what the source has
(strings or integers); inside the program users and items are the positions 0..n-1 and 0..m-1.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ownview.base.errors import DataError, UnknownNameError
from ownview.base.items.item_table import ByItem, ItemTable

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]
IdArray = npt.NDArray[Any]
"""Ids as the source has them: int64 or object (str)."""

_WORDS = re.compile(r"[^\W\d_]{2}.*\s.*[^\W\d_]{2}")
"""Two words somewhere: 'Green Tea 100g', not 'item 7'."""


@dataclass(frozen=True, eq=False, repr=False)
class Interactions:
    """n users, m items and their interactions, grouped by user, in source order inside each user.

    Args:
        name: what reports call this data.
        users: [n] ids of the users, in order of first appearance in the source.
        items: [m] ids of the items, in order of first appearance in the source.
        offsets: [n + 1] user u's interactions are rows offsets[u] to offsets[u + 1].
        item: [r] item position of each row.
        row: [r] line of each row in the source (0 = first data line); rises inside each user.
        rating: [r] or None where the source has none.
        timestamp: [r] seconds or any increasing clock, or None where the source has none.
        quantity: [r] how much of its item each row took, or None where the source does not say.
        titles: [m] what a person calls the item, or None.
        about: what else is known of the items, by column; None where nothing is.
        about_users: what is known of the users besides, by column; it stays with them. None where nothing is.
        clock: whether differences of timestamps are seconds; False where they tell the order of rows and nothing else.
        unread: names of the source's columns that nothing was taken from.
        reading: what was understood and left out when the source was read, a sentence each.
        folder: of a stored dataset, which may have other files about it; None for all others.
    """

    name: str
    users: IdArray
    items: IdArray
    offsets: IntArray
    item: IntArray
    row: IntArray
    rating: FloatArray | None = None
    timestamp: IntArray | None = None
    quantity: FloatArray | None = None
    titles: tuple[str, ...] | None = None
    about: ItemTable | None = None
    about_users: ItemTable | None = None
    clock: bool = True
    unread: tuple[str, ...] = ()
    reading: tuple[str, ...] = ()
    folder: Path | None = None
    _user_position: dict[Any, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        own = (self.item, self.row, self.rating, self.timestamp, self.quantity)
        for array in (self.users, self.items, self.offsets, *own):
            if array is not None:
                array.setflags(write=False)

    @classmethod
    def from_rows(
        cls,
        name: str,
        users: Sequence[Any] | IdArray,
        items: Sequence[Any] | IdArray,
        rating: Sequence[float] | FloatArray | None = None,
        timestamp: Sequence[Any] | IntArray | None = None,
        titles: dict[Any, str] | None = None,
        about: ByItem | None = None,
        quantity: Sequence[float] | FloatArray | None = None,
    ) -> Interactions:
        """Build from one id pair a row, in source order. Titles and columns about items are looked up by item id.

        Columns are lists, arrays, or Series of pandas or Polars; times are whole numbers or dates.
        """
        users, items = _column(name, "users", users), _column(name, "items", items)
        rating = None if rating is None else _numbers(name, "rating", rating)
        timestamp = None if timestamp is None else _times(name, _column(name, "timestamp", timestamp))
        quantity = None if quantity is None else _numbers(name, "quantity", quantity)
        if quantity is not None and len(quantity) and quantity.min() <= 0:
            row = int((quantity <= 0).argmax())
            raise DataError(
                f"{name}: quantity {quantity[row]:g} in row {row + 1}; expected more than 0 of what was taken"
            )
        given = [one for one in (users, items, rating, timestamp, quantity) if one is not None]
        if len(set(map(len, given))) > 1:
            found = ", ".join(str(len(one)) for one in given)
            raise DataError(f"{name}: columns of {found} rows; expected as many in each")
        if len(users) == 0:
            raise DataError(f"{name}: no interactions; expected at least one row of user and item")
        user_ids, user = _first_appearance(users)
        item_ids, item = _first_appearance(items)
        order = np.argsort(user, kind="stable")
        offsets = np.concatenate([[0], np.cumsum(np.bincount(user, minlength=len(user_ids)))]).astype(np.int64)
        return cls(
            name=name,
            users=user_ids,
            items=item_ids,
            offsets=offsets,
            item=item[order],
            row=order.astype(np.int64),
            rating=None if rating is None else rating[order],
            timestamp=None if timestamp is None else timestamp[order],
            quantity=None if quantity is None else quantity[order],
            titles=None if titles is None else tuple(titles.get(i, str(i)) for i in item_ids.tolist()),
            about=None if about is None else ItemTable.aligned(about, item_ids.tolist()),
        )

    @classmethod
    def from_frame(
        cls,
        name: str,
        rows: Mapping[str, Sequence[Any]],
        *,
        items: Mapping[str, Sequence[Any]] | None = None,
        users: Mapping[str, Sequence[Any]] | None = None,
    ) -> Interactions:
        """Build from a table of interactions, and tables of items and users, joined by id as `with_tables` does.

        Args:
            name: what reports call the data.
            rows: by name [r] columns: user, item and, where they are known, rating, timestamp and quantity; a data
                frame of pandas or Polars will do. Nothing is taken from others.
            items: what is publicly known of items; see `with_tables`.
            users: what is known of users, which stays with them; see `with_tables`.

        Raises:
            DataError: a column is missing or has gaps, or a table cannot be joined.
        """
        names = [str(one) for one in (rows.columns if hasattr(rows, "columns") else rows)]
        missing = next((one for one in ("user", "item") if one not in names), None)
        if missing is not None:
            raise DataError(f"{name}: the table has columns {', '.join(names[:12])}; expected one called {missing!r}")
        values: dict[str, Any] = {one: rows[one] for one in ("rating", "timestamp", "quantity") if one in names}
        found = cls.from_rows(name, rows["user"], rows["item"], **values)
        unread = tuple(one for one in names if one not in ("user", "item", *values))
        return replace(found, unread=unread).with_tables(items=items, users=users)

    @property
    def num_users(self) -> int:
        """How many users have at least one interaction."""
        return len(self.users)

    @property
    def num_items(self) -> int:
        """Items with at least one interaction."""
        return len(self.items)

    def __len__(self) -> int:
        return len(self.item)

    def __repr__(self) -> str:
        return f"Interactions({self.name}: {len(self.users)} users, {len(self.items)} items, {len(self)} interactions)"

    @property
    def counts(self) -> IntArray:
        """[n] interactions of each user, repeated pairs counted as often as they stand."""
        return np.diff(self.offsets)

    @property
    def user(self) -> IntArray:
        """[r] user position of each row."""
        return np.repeat(np.arange(self.num_users, dtype=np.int64), self.counts)

    def of(self, user: int) -> slice:
        """The rows of one user, as a slice into `item`, `row`, `rating` and `timestamp`."""
        return slice(int(self.offsets[user]), int(self.offsets[user + 1]))

    def position_of_user(self, user_id: Any) -> int:
        """Position of a user id, given as the source has it or as text; names the nearest when unknown."""
        if not self._user_position:
            self._user_position.update({str(u): k for k, u in enumerate(self.users.tolist())})
        try:
            return self._user_position[str(user_id)]
        except KeyError:
            raise UnknownNameError(f"user of {self.name}", str(user_id), self._user_position) from None

    @property
    def titled(self) -> bool:
        """Whether items have titles, or ids of several words: things without a number go by what they are called."""
        called = sum(_WORDS.search(str(one)) is not None for one in self.items)
        return self.titles is not None or 2 * called > self.num_items

    def title(self, item: int) -> str:
        """The item's title, or its id where there are no titles."""
        return self.titles[item] if self.titles is not None else str(self.items[item])

    def repeated_pairs(self) -> npt.NDArray[np.bool_]:
        """[r] True where the same user had the same item in an earlier row."""
        pair = self.user * self.num_items + self.item
        ordered = np.sort(pair)
        if not (ordered[1:] == ordered[:-1]).any():  # as most files are; to find them takes 30 times as long
            return np.zeros(len(pair), dtype=bool)
        repeated = np.ones(len(pair), dtype=bool)
        repeated[np.unique(pair, return_index=True)[1]] = False
        return repeated

    def select(self, keep: npt.NDArray[np.bool_]) -> Interactions:
        """Keep the marked rows; users and items left with no row disappear. The data itself where nothing goes."""
        if keep.all() and self.counts.all() and np.bincount(self.item, minlength=self.num_items).all():
            return self
        user, item = self.user[keep], self.item[keep]
        user_kept, new_user = np.unique(user, return_inverse=True)
        item_kept, new_item = np.unique(item, return_inverse=True)
        counts = np.bincount(new_user, minlength=len(user_kept))
        return replace(
            self,
            users=self.users[user_kept],
            items=self.items[item_kept],
            offsets=np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
            item=new_item.astype(np.int64),
            row=self.row[keep],
            rating=None if self.rating is None else self.rating[keep],
            timestamp=None if self.timestamp is None else self.timestamp[keep],
            quantity=None if self.quantity is None else self.quantity[keep],
            titles=None if self.titles is None else tuple(self.titles[i] for i in item_kept.tolist()),
            about=None if self.about is None else self.about.select(item_kept.tolist()),
            about_users=None if self.about_users is None else self.about_users.select(user_kept.tolist()),
            _user_position={},
        )

    def in_order_of_appearance(self) -> Interactions:
        """The same rows, users and items numbered by their first row here: what was left out leaves no trace."""
        first_row = np.full(self.num_items, np.iinfo(np.int64).max)
        np.minimum.at(first_row, self.item, self.row)
        users = np.argsort(np.minimum.reduceat(self.row, self.offsets[:-1]), kind="stable")
        rows = np.concatenate([np.arange(self.offsets[u], self.offsets[u + 1]) for u in users.tolist()])
        renumbered = self.with_items_in(np.argsort(first_row, kind="stable"))
        return replace(
            renumbered,
            users=self.users[users],
            offsets=np.concatenate([[0], np.cumsum(self.counts[users])]).astype(np.int64),
            item=renumbered.item[rows],
            row=self.row[rows],
            rating=None if self.rating is None else self.rating[rows],
            timestamp=None if self.timestamp is None else self.timestamp[rows],
            quantity=None if self.quantity is None else self.quantity[rows],
            about_users=None if self.about_users is None else self.about_users.select(users.tolist()),
            _user_position={},
        )

    def with_items_in(self, order: IntArray) -> Interactions:
        """The same rows, items numbered anew: `order` [m] has the old position of each."""
        place = np.empty(self.num_items, dtype=np.int64)
        place[order] = np.arange(self.num_items)
        return replace(
            self,
            items=self.items[order],
            item=place[self.item],
            titles=None if self.titles is None else tuple(self.titles[i] for i in order.tolist()),
            about=None if self.about is None else self.about.select(order.tolist()),
        )

    def with_tables(
        self, *, items: Mapping[str, Sequence[Any]] | None = None, users: Mapping[str, Sequence[Any]] | None = None
    ) -> Interactions:
        """The same with what tables say of items (public) and of users (which stays with them), joined by id.

        Args:
            items: by name [k] columns, one of them called item; a data frame will do. Other columns are of any kind;
                one called title names the items where nothing has so far.
            users: likewise, one of them called user.

        Raises:
            DataError: a table has no column of ids, one id twice, columns of different lengths, or no id of the data.
        """
        found = self
        if items is not None:
            about = ItemTable.joined(self.name, "item", items, self.items.tolist())
            named = zip(about.columns.get("title", ()), self.items.tolist(), strict=False)
            titles = tuple(title or str(item) for title, item in named) or None
            found = replace(found, about=about, titles=titles if self.titles is None else self.titles)
        if users is not None:
            found = replace(found, about_users=ItemTable.joined(self.name, "user", users, self.users.tolist()))
        return found

    def with_items_of_at_least(self, interactions: int) -> Interactions:
        """Keep items with at least so many rows; users left with no row disappear."""
        return self.select((np.bincount(self.item, minlength=self.num_items) >= interactions)[self.item])

    def with_at_least(self, interactions: int) -> Interactions:
        """Keep users with at least so many rows (repeated pairs counted); items are not filtered."""
        return self.select(np.repeat(self.counts >= interactions, self.counts))

    def without_repeats(self) -> Interactions:
        """Keep the first row of every (user, item) pair."""
        return self.select(~self.repeated_pairs())

    def fingerprint(self) -> str:
        """SHA-256 of ids, pairs, ratings, times and quantities in source order: equal data, equal fingerprint."""
        return self._fingerprint

    @cached_property
    def _fingerprint(self) -> str:
        digest = hashlib.sha256()
        for ids in (self.users, self.items):
            digest.update("\x1f".join(str(i) for i in ids.tolist()).encode())
        for array in (self.offsets, self.item, self.row, self.rating, self.timestamp):
            digest.update(b"-" if array is None else np.ascontiguousarray(array).tobytes())
        digest.update(b"" if self.quantity is None else np.ascontiguousarray(self.quantity).tobytes())
        return digest.hexdigest()


def _first_appearance(ids: IdArray) -> tuple[IdArray, IntArray]:
    """Distinct ids in order of first appearance, and the position of every row's id among them."""
    distinct, first, inverse = np.unique(ids, return_index=True, return_inverse=True)
    order = np.argsort(first, kind="stable")
    position = np.empty(len(order), dtype=np.int64)
    position[order] = np.arange(len(order))
    return distinct[order], position[inverse.reshape(-1)]


def _column(name: str, what: str, given: Any) -> IdArray:
    """One axis, text as objects; `DataError` for what is no column, or has gaps."""
    found = np.asarray(given)
    found = found.astype(object) if found.dtype.kind in "USO" else found
    if found.ndim != 1:
        raise DataError(f"{name}: {what} came as {type(given).__name__}; expected one value a row")
    if found.dtype.kind == "O":  # what is not equal to itself is no number
        missing = np.fromiter((value is None or value != value for value in found), bool, len(found))  # noqa: PLR0124
    else:
        missing = found != found  # noqa: PLR0124
    if bool(missing.any()):
        raise DataError(f"{name}: {what} has no value in row {int(missing.argmax()) + 1}; expected one in every row")
    return found


def _numbers(name: str, what: str, given: Any) -> FloatArray:
    """One finite number a row."""
    column = _column(name, what, given)
    try:
        found = column.astype(np.float64)
    except (TypeError, ValueError):
        found = np.array([_number(value) for value in column.tolist()])
    if not np.isfinite(found).all():
        row = int((~np.isfinite(found)).argmax())
        raise DataError(f"{name}: {what} {str(column[row])!r} in row {row + 1}; expected a finite number in every row")
    return found


def _number(value: Any) -> float:
    """NaN for what is none."""
    try:
        return float(value)
    except (TypeError, ValueError):
        return float("nan")


def _times(name: str, column: IdArray) -> IntArray:
    """Seconds of dates (those without a zone are UTC); whole numbers as they are."""
    if column.dtype.kind == "O" and all(isinstance(one, date) for one in column.tolist()):
        column = np.array([_in_utc(one) for one in column.tolist()], dtype="datetime64[s]")
    try:
        return column.astype("datetime64[s]").astype(np.int64) if column.dtype.kind == "M" else column.astype(np.int64)
    except (TypeError, ValueError, OverflowError):
        shown = f"values such as {str(column[0])!r}"
        raise DataError(f"{name}: timestamp has {shown}; expected whole seconds, or dates (datetime)") from None


def _in_utc(moment: date) -> date:
    """A date as it is; a time without a zone."""
    if isinstance(moment, datetime) and moment.tzinfo is not None:
        return moment.astimezone(UTC).replace(tzinfo=None)
    return moment
