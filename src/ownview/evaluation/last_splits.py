"""The splits that were made last, for the parts of one command that ask the same question of the same data.

To split sorts all rows several times. A run, the attack on it, its fit on everything and the lists of that split alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from weakref import ref

import numpy as np

from ownview.base.items.item_table import ItemTable
from ownview.data.interactions import Interactions
from ownview.data.splitting.splits import Split
from ownview.evaluation.protocol import Protocol

MOST_ROWS = 2_000_000
"""Rows up to which a split outlives those who asked for it, at most some 200 MB."""

_ARRAYS = ("users", "items", "offsets", "item", "row", "rating", "timestamp", "quantity")


@dataclass(frozen=True, eq=False)
class _Made:
    """A question and its split, which lives as long as it is in use elsewhere."""

    protocol: Protocol
    papers_filter: int | None
    data: ref[Interactions]
    split: ref[Split]


class LastSplits:
    """A cache of splits, which are immutable: the last one, and those still in use elsewhere.

    Data that was read twice is the same where all its values are.
    """

    def __init__(self) -> None:
        self._made: list[_Made] = []
        self._last: tuple[Interactions, Split] | None = None

    def of(self, protocol: Protocol, data: Interactions, papers_filter: int | None = None) -> Split:
        """What `protocol.prepare` makes of the data; made anew where a protocol reads files, which may have changed."""
        if protocol.reads_files:
            return protocol.prepare(data, papers_filter)
        self._made = [one for one in self._made if one.data() is not None and one.split() is not None]
        for one in self._made:
            known, split = one.data(), one.split()
            asked = (one.protocol, one.papers_filter) == (protocol, papers_filter)
            if asked and known is not None and split is not None and _same(known, data):
                self._keep(known, split)
                return split
        self._last = None  # never two that are in use nowhere else
        split = protocol.prepare(data, papers_filter)
        self._made.append(_Made(protocol, papers_filter, ref(data), ref(split)))
        self._keep(data, split)
        return split

    def _keep(self, data: Interactions, split: Split) -> None:
        self._last = (data, split) if len(data) <= MOST_ROWS else None


_SPLITS = LastSplits()


def split_of(protocol: Protocol, data: Interactions, papers_filter: int | None = None) -> Split:
    """What `protocol.prepare` makes of the data, or made of it before in this process."""
    return _SPLITS.of(protocol, data, papers_filter)


def _same(one: Interactions, other: Interactions) -> bool:
    """Whether two datasets are equal in all that a split or its names can show."""
    if one is other:
        return True
    plain = all(getattr(one, name) == getattr(other, name) for name in ("name", "titles", "clock"))
    tables = ((one.about, other.about), (one.about_users, other.about_users))
    return (
        plain
        and all(_equal(getattr(one, name), getattr(other, name)) for name in _ARRAYS)
        and all(_columns(first) == _columns(second) for first, second in tables)
    )


def _equal(one: np.ndarray | None, other: np.ndarray | None) -> bool:
    if one is None or other is None:
        return one is other
    return one.dtype == other.dtype and bool(np.array_equal(one, other))


def _columns(table: ItemTable | None) -> list[tuple[str, tuple[str, ...]]] | None:
    """By name and in their order."""
    return None if table is None else list(table.columns.items())
