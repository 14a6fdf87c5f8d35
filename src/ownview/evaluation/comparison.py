"""Which rows of a table can be told apart from its best: paired over the same users, corrected for many rows.

A row is a method under one protocol, with one value a user and seed. Seeds are repeated runs: a user's value is the
mean over seeds, and intervals come from drawing users. They tell what other users of the same kind would change, for
these seeds; the standard deviation over seeds stands beside them and tells what other seeds would.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from ownview.data.interactions import FloatArray
from ownview.evaluation.statistics import bootstrap_interval

LEVEL = 0.05
"""Corrected p from which on a row cannot be told apart from the best."""

_DECIMALS = 12
"""Differences are rounded so: thirds that differ by rounding only are ties, not ranks."""

_FEW = 13
"""Users that differ, up to which p is exact also where ranks are shared."""

Column = TypeVar("Column", bound=Hashable)


class Mark(StrEnum):
    """Where a row stands against the best of its column."""

    BEST = "best"
    LEVEL = "not told apart"
    WORSE = "worse"
    UNPAIRED = "not paired"


SIGNS = {Mark.BEST: "▲", Mark.LEVEL: "≈"}
"""What stands beside a figure in tables."""


@dataclass(frozen=True, eq=False)
class UserValues:
    """A metric of one row.

    Args:
        asked: who was asked what, and how; rows are paired where all of it is the same.
        values: [seeds, users].
    """

    asked: tuple[str, ...]
    values: FloatArray

    @property
    def by_user(self) -> FloatArray:
        """[users] mean over seeds."""
        return np.asarray(self.values.mean(axis=0))


@dataclass(frozen=True)
class PairedTest:
    """One row minus another over the same users.

    Args:
        difference: mean over users.
        low: lower end of its 95 % interval, users drawn with replacement (paired bootstrap).
        high: upper end.
        p: of Wilcoxon's signed-rank test, two-sided.
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
        p_holm: `against_best.p` corrected for all comparisons of the table.
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
    p_holm: float | None = None

    def __str__(self) -> str:
        sign = f" {SIGNS[self.mark]}" if self.mark in SIGNS else ""
        return f"{self.mean:.3f}{sign} ({self.low:.3f} to {self.high:.3f})"

    def to_dict(self) -> dict[str, Any]:
        """As plain values."""
        return {**asdict(self), "mark": str(self.mark)}


def compare_rows(rows: Mapping[str, UserValues]) -> list[Cell]:
    """The rows of a table with one column, in the order given; see `compare_columns`."""
    return compare_columns({"": rows})[""]


def compare_columns(columns: Mapping[Column, Mapping[str, UserValues]]) -> dict[Column, list[Cell]]:
    """Compare every row of every column with the best of its column; p values are corrected over all of them (Holm).

    A row is told apart from the best only where the corrected p is below 0.05, the interval of the difference leaves
    nought out, and ranks and mean agree on the direction. The best is the highest mean, the first among equals. It was
    chosen by the values it is tested on, which makes p somewhat too small where many rows are close to each other.
    """
    best = {column: max(rows, key=lambda label: rows[label].by_user.mean()) for column, rows in columns.items() if rows}
    tests: dict[tuple[Column, str], PairedTest] = {}
    for column, rows in columns.items():
        for label, row in rows.items():
            first = rows[best[column]]
            if label != best[column] and row.asked == first.asked:
                tests[column, label] = paired_test(row.by_user, first.by_user)
    corrected = dict(zip(tests, holm([test.p for test in tests.values()]), strict=True))
    return {
        column: [
            _cell(label, row, best[column], tests.get((column, label)), corrected.get((column, label)))
            for label, row in rows.items()
        ]
        for column, rows in columns.items()
    }


def paired_test(ours: FloatArray, theirs: FloatArray) -> PairedTest:
    """Ours minus theirs, [users] each, the same users in the same order. Without any difference p is 1."""
    difference = np.round(ours - theirs, _DECIMALS)
    low, high = bootstrap_interval(difference)
    p, rank_effect = _signed_ranks(difference)
    effect = float(difference.mean() / difference.std(ddof=1)) if np.ptp(difference) > 0 else None
    if not difference.any():
        effect = 0.0
    return PairedTest(float(difference.mean()), low, high, p, effect, rank_effect, len(difference))


def holm(p: Sequence[float]) -> list[float]:
    """Holm's correction: in rising order p_(i) times (m - i + 1), never falling, at most 1. Order is kept."""
    adjusted, reached = [0.0] * len(p), 0.0
    for place, index in enumerate(sorted(range(len(p)), key=lambda i: p[i])):
        reached = max(reached, min(1.0, p[index] * (len(p) - place)))
        adjusted[index] = reached
    return adjusted


def _signed_ranks(difference: FloatArray) -> tuple[float, float]:
    """P of Wilcoxon's test (users without a difference left out), and the rank-biserial correlation."""
    moved = difference[difference != 0]
    if not len(moved):
        return 1.0, 0.0
    from scipy.stats import rankdata, wilcoxon  # noqa: PLC0415 - slow to import

    ranks = rankdata(np.abs(moved))
    effect = float((ranks * np.sign(moved)).sum() / ranks.sum())
    return _exact_p(ranks, moved > 0) if len(moved) <= _FEW else float(wilcoxon(moved).pvalue), effect


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


def _cell(label: str, row: UserValues, best: str, test: PairedTest | None, p_holm: float | None) -> Cell:
    values = row.by_user
    low, high = bootstrap_interval(values)
    by_seed = row.values.mean(axis=1)
    spread = float(by_seed.std(ddof=1)) if len(by_seed) > 1 else None
    mark = Mark.BEST if label == best else _mark(test, p_holm)
    return Cell(label, float(values.mean()), spread, low, high, len(by_seed), len(values), mark, test, p_holm)


def _mark(test: PairedTest | None, p_holm: float | None) -> Mark:
    if test is None or p_holm is None:
        return Mark.UNPAIRED
    apart = p_holm < LEVEL and test.high < 0 and test.rank_effect < 0
    return Mark.WORSE if apart else Mark.LEVEL
