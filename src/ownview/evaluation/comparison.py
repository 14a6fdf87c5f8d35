"""Which rows of a table can be told apart from its best, and from its yardsticks: one test, one correction.

A row is a method under one protocol, with one value a user and seed. Seeds are repeated runs: a user's value is the
mean over seeds, and intervals are over persons. They tell what other persons of the same kind would change, for these
seeds; the standard deviation over seeds stands beside them and tells what other seeds would. Protocols that ask at
several cuts ask some persons several times: a person is one unit, however often it was asked.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from itertools import combinations
from typing import Any, TypeVar

import numpy as np

from ownview.data.interactions import FloatArray, IntArray
from ownview.evaluation.sign_flips import holm_over_columns, p_between
from ownview.evaluation.statistics import by_person, difference_interval, mean_interval, number_of_persons

LEVEL = 0.05
"""Corrected p from which on two rows cannot be told apart."""

_DECIMALS = 12
"""Differences are rounded so: thirds that differ by rounding only are ties, not ranks."""

Column = TypeVar("Column", bound=Hashable)


class Mark(StrEnum):
    """Where a row stands against the best of its column."""

    BEST = "best"
    LEVEL = "not told apart"
    WORSE = "worse"
    UNPAIRED = "not paired"


SIGNS = {Mark.BEST: "▲", Mark.LEVEL: "≈"}
"""What stands beside a figure in tables."""

NOT_ABOVE = "○"
"""Stands beside a figure that is not significantly above every yardstick of its column."""


@dataclass(frozen=True, eq=False)
class UserValues:
    """A metric of one row.

    Args:
        asked: who was asked what, and how; rows are paired where all of it is the same.
        values: [seeds, users], from 0 to 1.
        yardstick: whether the row counts and learns nothing of taste.
        persons: [users] ids, which stand several times where a person was asked several times; None where every user
            is another person.
    """

    asked: tuple[str, ...]
    values: FloatArray
    yardstick: bool = False
    persons: tuple[str, ...] | None = None

    @property
    def by_user(self) -> FloatArray:
        """[users] mean over seeds."""
        return np.asarray(self.values.mean(axis=0))

    @property
    def units(self) -> IntArray | None:
        """[users] the number of the person behind each, from 0; None where every user is another person."""
        return None if self.persons is None else np.unique(self.persons, return_inverse=True)[1]


@dataclass(frozen=True)
class PairedTest:
    """One row minus another over the same users.

    Args:
        difference: mean over users.
        low: lower end of its 95 % interval over persons.
        high: upper end.
        effect: Cohen's d_z, mean over standard deviation of the persons' own mean differences; None where all are
            equal.
        rank_effect: matched-pairs rank-biserial correlation of the same, (W+ - W-) / (W+ + W-), from -1 to 1.
        users: compared.
    """

    difference: float
    low: float
    high: float
    effect: float | None
    rank_effect: float
    users: int


@dataclass(frozen=True)
class Beside:
    """A row against one that it was asked to be compared with, besides the best.

    Args:
        label: of the other row.
        test: this row minus the other.
        p_corrected: that both are equally good, corrected for the choice of the pair among all pairs of the column's
            rows, and for all columns of the table.
    """

    label: str
    test: PairedTest
    p_corrected: float


@dataclass(frozen=True)
class Cell:
    """A cell of a table: one row in one column.

    Args:
        label: of the row.
        mean: over users and seeds.
        spread: standard deviation of the mean over seeds; None for one seed.
        low: lower end of the 95 % interval over persons.
        high: upper end.
        seeds: runs.
        users: ranked; who is asked at several cuts counts at each.
        mark: against the best of the column.
        against_best: this row minus the best; None for the best itself and where users differ.
        p_corrected: that the row is as good as the best, corrected for the choice of the best among the column's rows
            and for all columns of the table; None where `against_best` is.
        not_above: the best of the yardsticks of the column that the row, itself none, cannot be told to be above, by
            the same p; empty elsewhere.
        persons: different ones among the users; None where that is not known.
        beside: the row against one that was asked for; None where none was, or users differ.
    """

    label: str
    mean: float
    spread: float | None
    low: float
    high: float
    seeds: int
    users: int
    mark: Mark
    against_best: PairedTest | None = None
    p_corrected: float | None = None
    not_above: str = ""
    persons: int | None = None
    beside: Beside | None = None

    @property
    def signs(self) -> str:
        """What stands beside the figure: where it stands against the best, and against the yardsticks."""
        return SIGNS.get(self.mark, "") + NOT_ABOVE * bool(self.not_above)

    def __str__(self) -> str:
        return f"{self.mean:.3f}{' ' * bool(self.signs)}{self.signs} ({self.low:.3f} to {self.high:.3f})"

    def to_dict(self) -> dict[str, Any]:
        """The row as plain values."""
        return {**asdict(self), "mark": str(self.mark)}


def compare_rows(rows: Mapping[str, UserValues]) -> list[Cell]:
    """The rows of a table with one column, in the order given; see `compare_columns`."""
    return compare_columns({"": rows})[""]


def compare_columns(
    columns: Mapping[Column, Mapping[str, UserValues]], also: Mapping[str, str] | None = None
) -> dict[Column, list[Cell]]:
    """Compare every row of every column with the best of its column, and with its yardsticks.

    The best is the highest mean among the rows that were asked most, the first among equals: a row that lacks the
    pooled cuts answered other questions, and its mean is no match for theirs. Two rows are told apart where the
    corrected p of the pair is below 0.05. The correction is for the choice of the pair among the rows of a column
    (`p_between`) and for the number of columns (`holm_over_columns`): where all rows are equally good, about 5 tables
    in 100 at most have any two rows that are told apart. The best has the mark `BEST` without `NOT_ABOVE` only where
    every yardstick is `WORSE`.

    Args:
        columns: rows by label.
        also: by row another one that it is compared with besides, under the same correction.
    """
    also = also or {}
    best = {column: _best(rows) for column, rows in columns.items() if rows}
    found = {column: _p_values(rows, best[column], also) for column, rows in columns.items() if rows}
    corrected = holm_over_columns([list(p.values()) for p in found.values()])
    p_of = {column: dict(zip(p, own, strict=True)) for (column, p), own in zip(found.items(), corrected, strict=True)}
    return {
        column: [_cell(label, best[column], rows, p_of[column], also.get(label, "")) for label in rows]
        for column, rows in columns.items()
    }


PairOfRows = frozenset[str]


def _best(rows: Mapping[str, UserValues]) -> str:
    return max(rows, key=lambda label: (len(rows[label].asked), rows[label].by_user.mean()))


def _p_values(rows: Mapping[str, UserValues], best: str, also: Mapping[str, str]) -> dict[PairOfRows, float]:
    """P of every row with the best, every yardstick and what is asked for, as far as they can be paired."""
    wanted = {frozenset(pair) for pair in also.items()}
    found: dict[PairOfRows, float] = {}
    for asked in dict.fromkeys(row.asked for row in rows.values()):
        labels = [label for label, row in rows.items() if row.asked == asked]
        values: FloatArray = np.stack([rows[label].by_user for label in labels], axis=1).round(_DECIMALS)
        first = labels.index(best) if best in labels else int(values.mean(axis=0).argmax())
        p = p_between(by_person(values, rows[labels[0]].units), first)
        for one, other in combinations(range(len(labels)), 2):
            pair = labels[one], labels[other]
            if best in pair or rows[pair[0]].yardstick != rows[pair[1]].yardstick or frozenset(pair) in wanted:
                found[frozenset(pair)] = float(p[one, other])
    return found


def paired_test(ours: FloatArray, theirs: FloatArray, persons: IntArray | None = None) -> PairedTest:
    """Ours minus theirs, [users] each, the same users in the same order; `persons` as in `mean_intervals`."""
    difference = np.round(ours - theirs, _DECIMALS)
    low, high = difference_interval(difference, persons)
    each = by_person(difference[:, None], persons)[:, 0] / by_person(np.ones((len(difference), 1)), persons)[:, 0]
    effect = float(each.mean() / each.std(ddof=1)) if np.ptp(each) > 0 else None
    if not each.any():
        effect = 0.0
    return PairedTest(float(difference.mean()), low, high, effect, _rank_effect(each), len(difference))


def _rank_effect(difference: FloatArray) -> float:
    """The rank-biserial correlation of differences [persons], those without any left out."""
    moved = difference[difference != 0]
    if not len(moved):
        return 0.0
    ranks = _average_ranks(np.abs(moved))
    return float((ranks * np.sign(moved)).sum() / ranks.sum())


def _average_ranks(values: FloatArray) -> FloatArray:
    """[n] places from 1 in ascending order; equal values share the mean of theirs."""
    _, which, counts = np.unique(values, return_inverse=True, return_counts=True)
    mean: FloatArray = np.cumsum(counts) - (counts - 1) / 2
    return mean[which]


def _cell(
    label: str, best: str, rows: Mapping[str, UserValues], p_of: Mapping[PairOfRows, float], also: str = ""
) -> Cell:
    row = rows[label]
    values, units = row.by_user, row.units
    low, high = mean_interval(values, units)
    by_seed = row.values.mean(axis=1)
    spread = float(by_seed.std(ddof=1)) if len(by_seed) > 1 else None
    paired = label != best and row.asked == rows[best].asked
    test = paired_test(values, rows[best].by_user, units) if paired else None
    p = p_of[frozenset((label, best))] if paired else None
    mark = Mark.BEST if label == best else _mark(p)
    return Cell(
        label, float(values.mean()), spread, low, high, len(by_seed), len(values), mark, test, p,
        _not_above(label, rows, p_of), number_of_persons(values, units), _beside(label, also, rows, p_of),
    )  # fmt: skip


def _beside(label: str, other: str, rows: Mapping[str, UserValues], p_of: Mapping[PairOfRows, float]) -> Beside | None:
    if other not in rows or rows[other].asked != rows[label].asked:
        return None
    test = paired_test(rows[label].by_user, rows[other].by_user, rows[label].units)
    return Beside(other, test, p_of[frozenset((label, other))])


def _not_above(label: str, rows: Mapping[str, UserValues], p_of: Mapping[PairOfRows, float]) -> str:
    """The best yardstick that a row is not significantly above; empty where there is none, or the row is one itself."""
    row = rows[label]
    if row.yardstick:
        return ""
    height = row.by_user.mean()
    sticks = {one: other.by_user.mean() for one, other in rows.items() if other.yardstick and other.asked == row.asked}
    level = [one for one, mean in sticks.items() if mean >= height or p_of[frozenset((label, one))] >= LEVEL]
    return max(level, key=lambda one: sticks[one], default="")


def _mark(p: float | None) -> Mark:
    if p is None:
        return Mark.UNPAIRED
    return Mark.WORSE if p < LEVEL else Mark.LEVEL
