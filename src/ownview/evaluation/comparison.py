"""Which rows of a table can be told apart from its best: paired over the same users, corrected for choosing the best.

A row is a method under one protocol, with one value a user and seed. Seeds are repeated runs: a user's value is the
mean over seeds, and intervals are over users. They tell what other users of the same kind would change, for these
seeds; the standard deviation over seeds stands beside them and tells what other seeds would.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from ownview.data.interactions import FloatArray
from ownview.evaluation.sign_flips import holm_over_columns, p_against_best
from ownview.evaluation.statistics import difference_interval, mean_interval

LEVEL = 0.05
"""Corrected p from which on a row cannot be told apart from the best."""

_DECIMALS = 12
"""Differences are rounded so: thirds that differ by rounding only are ties, not ranks."""

_FEW = 13
"""Users that differ, up to which p is exact also where ranks are shared."""

_FEW_UNSHARED = 50
"""The same where no two users share a rank."""

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
"""Stands beside a figure that is not above the best yardstick of its column."""


@dataclass(frozen=True, eq=False)
class UserValues:
    """A metric of one row.

    Args:
        asked: who was asked what, and how; rows are paired where all of it is the same.
        values: [seeds, users], from 0 to 1.
        yardstick: whether the row counts and learns nothing of taste.
    """

    asked: tuple[str, ...]
    values: FloatArray
    yardstick: bool = False

    @property
    def by_user(self) -> FloatArray:
        """[users] mean over seeds."""
        return np.asarray(self.values.mean(axis=0))


@dataclass(frozen=True)
class PairedTest:
    """One row minus another over the same users.

    Args:
        difference: mean over users.
        low: lower end of its 95 % interval.
        high: upper end.
        p: of Wilcoxon's signed-rank test, two-sided, for this pair alone: that the best was chosen is not in it.
        effect: Cohen's d_z, mean difference / its standard deviation over users; None where all differences are equal.
        rank_effect: matched-pairs rank-biserial correlation, (W+ - W-) / (W+ + W-), from -1 to 1.
        users: compared.
    """

    difference: float
    low: float
    high: float
    p: float
    effect: float | None
    rank_effect: float
    users: int


@dataclass(frozen=True)
class Cell:
    """A cell of a table: one row in one column.

    Args:
        label: of the row.
        mean: over users and seeds.
        spread: standard deviation of the mean over seeds; None for one seed.
        low: lower end of the 95 % interval over users.
        high: upper end.
        seeds: runs.
        users: ranked.
        mark: against the best of the column.
        against_best: this row minus the best; None for the best itself and where users differ.
        p_corrected: that the row is as good as the best, corrected for the choice of the best among the column's rows
            and for all columns of the table; None where `against_best` is.
        not_above: the best yardstick of the column, where the row is none itself and cannot be told to be above it
            (paired, two-sided p below 0.05); empty elsewhere.
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

    @property
    def signs(self) -> str:
        """What stands beside the figure: where it stands against the best, and against the yardsticks."""
        return SIGNS.get(self.mark, "") + NOT_ABOVE * bool(self.not_above)

    def __str__(self) -> str:
        return f"{self.mean:.3f}{' ' * bool(self.signs)}{self.signs} ({self.low:.3f} to {self.high:.3f})"

    def to_dict(self) -> dict[str, Any]:
        """As plain values."""
        return {**asdict(self), "mark": str(self.mark)}


def compare_rows(rows: Mapping[str, UserValues]) -> list[Cell]:
    """The rows of a table with one column, in the order given; see `compare_columns`."""
    return compare_columns({"": rows})[""]


def compare_columns(columns: Mapping[Column, Mapping[str, UserValues]]) -> dict[Column, list[Cell]]:
    """Compare every row of every column with the best of its column.

    The best is the highest mean, the first among equals. A row is told apart from it only where the corrected p is
    below 0.05, and ranks and mean agree on the direction. The correction is for the choice of the best among the rows
    of a column (`p_against_best`) and for the number of columns (`holm_over_columns`): where all rows are equally good,
    about 5 tables in 100 at most have any row that is called worse.
    """
    best = {column: max(rows, key=lambda label: rows[label].by_user.mean()) for column, rows in columns.items() if rows}
    found = {column: _p_values(rows, best[column]) for column, rows in columns.items() if rows}
    corrected = holm_over_columns([list(p.values()) for p in found.values()])
    p_of = {column: dict(zip(p, own, strict=True)) for (column, p), own in zip(found.items(), corrected, strict=True)}
    return {
        column: [_cell(label, row, best[column], rows, p_of[column].get(label)) for label, row in rows.items()]
        for column, rows in columns.items()
    }


def _p_values(rows: Mapping[str, UserValues], best: str) -> dict[str, float]:
    """P of every row that can be paired with the best, by label; corrected for the choice among them."""
    paired = [label for label, row in rows.items() if row.asked == rows[best].asked]
    if len(paired) < 2:
        return {}
    values: FloatArray = np.stack([rows[label].by_user for label in paired], axis=1).round(_DECIMALS)
    found = dict(zip(paired, p_against_best(values, paired.index(best)).tolist(), strict=True))
    del found[best]
    return found


def paired_test(ours: FloatArray, theirs: FloatArray) -> PairedTest:
    """Ours minus theirs, [users] each, the same users in the same order. Without any difference p is 1."""
    difference = np.round(ours - theirs, _DECIMALS)
    low, high = difference_interval(difference)
    p, rank_effect = _signed_ranks(difference)
    effect = float(difference.mean() / difference.std(ddof=1)) if np.ptp(difference) > 0 else None
    if not difference.any():
        effect = 0.0
    return PairedTest(float(difference.mean()), low, high, p, effect, rank_effect, len(difference))


def _signed_ranks(difference: FloatArray) -> tuple[float, float]:
    """P of Wilcoxon's test (users without a difference left out), and the rank-biserial correlation."""
    moved = difference[difference != 0]
    if not len(moved):
        return 1.0, 0.0
    ranks = _average_ranks(np.abs(moved))
    effect = float((ranks * np.sign(moved)).sum() / ranks.sum())
    shared = len(np.unique(ranks)) < len(ranks)
    few = len(moved) <= (_FEW if shared else _FEW_UNSHARED)
    return (_exact_p if few else _normal_p)(ranks, moved > 0), effect


def _average_ranks(values: FloatArray) -> FloatArray:
    """[n] places from 1 in ascending order; equal values share the mean of theirs."""
    _, which, counts = np.unique(values, return_inverse=True, return_counts=True)
    mean: FloatArray = np.cumsum(counts) - (counts - 1) / 2
    return mean[which]


def _normal_p(ranks: FloatArray, better: npt.NDArray[np.bool_]) -> float:
    """Two-sided, by the normal distribution that sums of ranks come near to.

    If signs were thrown, the ranks r of those who are better would add up to half of all ranks, with a variance of a
    quarter of the sum of r^2. SciPy's p too; here, because to load `scipy.stats` takes two seconds.
    """
    away = ranks[better].sum() - ranks.sum() / 2
    return math.erfc(abs(float(away)) / math.sqrt(float(np.square(ranks).sum()) / 2))


def _exact_p(ranks: FloatArray, better: npt.NDArray[np.bool_]) -> float:
    """Two-sided, over all 2^n patterns of signs [n], ranks that are shared included.

    The same as SciPy's p for so few users, which goes through the patterns one by one and takes a second for it.
    """
    doubled = np.rint(2 * ranks).astype(int)  # shared ranks are halves
    share = np.ones(1)  # of the patterns in which the ranks of those who are better add up to 0, 1, 2, ...
    for rank in doubled:
        share = (np.pad(share, (0, rank)) + np.pad(share, (rank, 0))) / 2
    reached = doubled[better].sum()
    return float(min(1.0, 2 * min(share[: reached + 1].sum(), share[reached:].sum())))


def _cell(label: str, row: UserValues, best: str, rows: Mapping[str, UserValues], p: float | None) -> Cell:
    values = row.by_user
    low, high = mean_interval(values)
    by_seed = row.values.mean(axis=1)
    spread = float(by_seed.std(ddof=1)) if len(by_seed) > 1 else None
    test = None if p is None else paired_test(values, rows[best].by_user)
    mark = Mark.BEST if label == best else _mark(test, p)
    below = _not_above(row, rows)
    return Cell(label, float(values.mean()), spread, low, high, len(by_seed), len(values), mark, test, p, below)


def _not_above(row: UserValues, rows: Mapping[str, UserValues]) -> str:
    """The best yardstick that can be paired with a row, where the row is not above it; empty elsewhere."""
    sticks = {label: one for label, one in rows.items() if one.yardstick and one.asked == row.asked}
    if row.yardstick or not sticks:
        return ""
    best = max(sticks, key=lambda label: sticks[label].by_user.mean())
    test = paired_test(row.by_user, sticks[best].by_user)
    return "" if test.difference > 0 and test.p < LEVEL else best


def _mark(test: PairedTest | None, p: float | None) -> Mark:
    if test is None or p is None:
        return Mark.UNPAIRED
    return Mark.WORSE if p < LEVEL and test.rank_effect < 0 else Mark.LEVEL
