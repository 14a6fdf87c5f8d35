"""What a dataset is like: its size and activity, how good its times are, whether it is the papers' data."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from ownview.data.datasets.catalog import Entry
from ownview.data.interactions import IntArray, Interactions
from ownview.data.splitting.splits import FEWEST


@dataclass(frozen=True)
class Quantiles:
    """Least, quartiles and most interactions of a user or of an item."""

    min: float
    q25: float
    median: float
    q75: float
    max: float


@dataclass(frozen=True)
class Times:
    """How far the timestamps order the data.

    Args:
        kind: 'absent' or 'real'.
        distinct: how many different values there are; 0 where absent.
        first: the earliest; None where absent.
        last: the latest; None where absent.
        tied_rows: share of rows whose user has another row with the same timestamp; 0 where absent.
    """

    kind: str
    distinct: int
    first: int | None
    last: int | None
    tied_rows: float

    @property
    def span(self) -> int | None:
        """From the earliest to the latest."""
        return None if self.first is None or self.last is None else self.last - self.first


@dataclass(frozen=True)
class CountCheck:
    """The counts that papers print against those of this data after the same filter."""

    papers: tuple[str, ...]
    min_interactions: int
    expected: tuple[int, int, int]
    found: tuple[int, int, int]

    @property
    def equal(self) -> bool:
        """Whether users, items and rows all agree."""
        return self.expected == self.found


@dataclass(frozen=True)
class Description:
    """Everything `describe` finds; counts are of the data as it stands, before any filter."""

    name: str
    users: int
    items: int
    rows: int
    sparsity: float
    per_user: Quantiles
    per_item: Quantiles
    repeated_rows: int
    repeated_share: float
    rating_range: tuple[float, float] | None
    times: Times
    users_under_3: int
    titles: bool
    fingerprint: str
    papers: tuple[CountCheck, ...]
    notes: str

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; tuples become lists."""
        result = asdict(self)
        result["times"]["span"] = self.times.span
        result["rating_range"] = None if self.rating_range is None else list(self.rating_range)
        triple = ("users", "items", "rows")
        result["papers"] = [
            {
                "papers": list(check.papers),
                "min_interactions": check.min_interactions,
                "expected": dict(zip(triple, check.expected, strict=True)),
                "found": dict(zip(triple, check.found, strict=True)),
                "equal": check.equal,
            }
            for check in self.papers
        ]
        return result


def describe(data: Interactions, entry: Entry | None = None) -> Description:
    """Describe the data; with the catalogue's entry also check the papers' counts after their filter.

    Sparsity is 1 minus the share of (user, item) cells that rows fill, as papers compute it: repeated
    pairs count as often as they stand, so it can be below the share of truly empty cells.
    """
    repeated = int(data.repeated_pairs().sum())
    return Description(
        name=data.name,
        users=data.num_users,
        items=data.num_items,
        rows=len(data),
        sparsity=1.0 - len(data) / (data.num_users * data.num_items),
        per_user=_quantiles(data.counts),
        per_item=_quantiles(np.bincount(data.item, minlength=data.num_items).astype(np.int64)),
        repeated_rows=repeated,
        repeated_share=repeated / len(data),
        rating_range=None if data.rating is None else (float(data.rating.min()), float(data.rating.max())),
        times=_times(data),
        users_under_3=int((data.counts < FEWEST).sum()),
        titles=data.titles is not None,
        fingerprint=data.fingerprint(),
        papers=() if entry is None else _checks(data, entry),
        notes="" if entry is None else entry.notes,
    )


def _quantiles(counts: IntArray) -> Quantiles:
    return Quantiles(*(float(value) for value in np.quantile(counts, [0.0, 0.25, 0.5, 0.75, 1.0])))


def _times(data: Interactions) -> Times:
    if data.timestamp is None:
        return Times("absent", 0, None, None, 0.0)
    distinct, position = np.unique(data.timestamp, return_inverse=True)
    moment = data.user * len(distinct) + position.reshape(-1)
    _, group, sizes = np.unique(moment, return_inverse=True, return_counts=True)
    tied = float((sizes[group.reshape(-1)] > 1).mean())
    return Times("real", len(distinct), int(distinct[0]), int(distinct[-1]), tied)


def _checks(data: Interactions, entry: Entry) -> tuple[CountCheck, ...]:
    checks = []
    for count in entry.counts:
        kept = data.with_at_least(count.min_interactions)
        found = (kept.num_users, kept.num_items, len(kept))
        expected = (count.users, count.items, count.rows)
        checks.append(CountCheck(count.papers, count.min_interactions, expected, found))
    return tuple(checks)
