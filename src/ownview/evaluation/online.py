"""Two models compared by what people chose: the log of impressions that `ownview serve --against` writes.

A list that was shown hits where something of it was reported as chosen, once or more. Lists of one unit are alike, so
everything is taken over buckets, into which units fall at random: of an arm with n_b lists and c_b hits in bucket b,

    rate = sum c_b / sum n_b,    variance = B / (B - 1) sum (c_b - rate n_b)^2 / (sum n_b)^2

over its B buckets, and the difference of two arms has a t interval with Welch's degrees of freedom.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ownview.base.errors import DataError
from ownview.data.interactions import FloatArray

ARMS = ("a", "b")
LONGEST = 4096
"""Bytes of a line."""
MOST_BUCKETS = 100_000
_FEW = 20
"""Buckets of an arm under which the interval is called rough."""
_UNEVEN = 1e-3
"""Chance under which a split is called uneven."""


@dataclass(frozen=True)
class Rate:
    """Hit rate of one arm.

    Args:
        lists: that were shown.
        hits: of which something was chosen.
        variance: of the rate, over buckets.
        buckets: that had a list.
        models: versions that made the lists.
    """

    lists: int
    hits: int
    variance: float
    buckets: int
    models: tuple[str, ...]

    @property
    def value(self) -> float:
        """Hits of all lists."""
        return self.hits / self.lists


@dataclass(frozen=True)
class Online:
    """Two arms beside each other.

    Args:
        a: the first model's.
        b: the second model's.
        low: of the interval of b's rate minus a's.
        high: of the same.
        level: of the interval.
        uneven: the chance that lists fall on the arms this unevenly, by the split's own share; None where the log does
            not say it.
        strays: choices of lists that are not in the log.
        torn: lines that a process did not finish writing.
    """

    a: Rate
    b: Rate
    low: float
    high: float
    level: float
    uneven: float | None
    strays: int
    torn: int

    @property
    def notes(self) -> list[str]:
        """Warnings for readers."""
        few = min(self.a.buckets, self.b.buckets)
        said = []
        if few < _FEW:
            said.append(f"an arm has lists in {few} buckets alone; under {_FEW} the interval is rough")
        if self.uneven is not None and self.uneven < _UNEVEN:
            said.append(
                f"lists fall on the arms more unevenly than the split says (chance {self.uneven:.1g}): something other "
                "than the models differs, and the comparison should not be believed"
            )
        if self.strays:
            said.append(f"{self.strays:,} choices are of lists that are not in the log; they count for nothing")
        if self.torn:
            said.append(f"{self.torn:,} lines were not written to their end; they count for nothing")
        return said

    def to_dict(self) -> dict[str, Any]:
        """The estimate as plain values."""
        arms = {
            name: {"lists": one.lists, "hits": one.hits, "rate": one.value, "models": list(one.models)}
            for name, one in zip(ARMS, (self.a, self.b), strict=True)
        }
        difference = {"value": self.b.value - self.a.value, "low": self.low, "high": self.high, "level": self.level}
        return {**arms, "difference": difference, "notes": self.notes}


def compared_online(path: Path, level: float = 0.95) -> Online:
    """The comparison of a log.

    Raises:
        DataError: a line is no line of such a log, or an arm has no list; says where.
    """
    counts, versions, share, strays, torn = _read(path)
    for arm, name in enumerate(ARMS):
        if not counts[arm, 0].sum():
            raise DataError(f"{path}: no list was shown by model {name}; expected lists of both")
    rates = [_rate(counts[arm], tuple(sorted(versions[arm]))) for arm in range(2)]
    error = float(np.sqrt(rates[0].variance + rates[1].variance))
    from scipy import stats  # noqa: PLC0415 - slow to import

    steps = [max(one.buckets - 1, 1) for one in rates]
    spread = sum(one.variance**2 / n for one, n in zip(rates, steps, strict=True))
    freedom = error**4 / spread if spread > 0 else 1.0
    reach = float(stats.t.ppf(0.5 + level / 2, freedom)) * error
    difference = rates[1].value - rates[0].value
    uneven = None if share is None else _uneven(counts[:, 0], share)
    return Online(rates[0], rates[1], difference - reach, difference + reach, level, uneven, strays, torn)


def _rate(counts: FloatArray, models: tuple[str, ...]) -> Rate:
    """Rate of an arm with lists and hits [2, B]."""
    lists, hits = counts[:, counts[0] > 0]
    rate, number = hits.sum() / lists.sum(), len(lists)
    residual = float(((hits - rate * lists) ** 2).sum())
    variance = number / (number - 1) * residual / float(lists.sum()) ** 2 if number > 1 else np.inf
    return Rate(int(lists.sum()), int(hits.sum()), variance, number, models)


def _uneven(lists: FloatArray, share: float) -> float:
    """The chance of a share of b's lists, over buckets, that lies this far from the split's; lists [2, B]."""
    from scipy import stats  # noqa: PLC0415

    both = lists.sum(0)
    used = both > 0
    residual = lists[1, used] - share * both[used]
    number = int(used.sum())
    if number < 2 or not residual.any():
        return 1.0
    error = np.sqrt(number / (number - 1) * float(((residual - residual.mean()) ** 2).sum()))
    return float(2 * stats.t.sf(abs(residual.sum()) / error, number - 1)) if error > 0 else 0.0


_Read = tuple[FloatArray, list[set[str]], float | None, int, int]


def _read(path: Path) -> _Read:
    """Lists and hits [2 arms, 2, B], versions by arm, the split's share, choices of unknown lists, torn lines."""
    shown: dict[str, tuple[int, int]] = {}
    chosen: set[str] = set()
    versions: list[set[str]] = [set(), set()]
    shares, torn, most = set[float](), 0, 0
    try:
        with path.open("rb") as lines:
            for number, line in enumerate(iter(lambda: lines.readline(LONGEST + 1), b""), start=1):
                if not line.strip():  # between a line that was cut short and two processes that each ended it
                    continue
                if _torn(line):
                    torn += 1
                    continue
                about = _line(path, number, line)
                if "split" in about:
                    shares.add(about["split"])
                elif "chosen" in about:
                    chosen.add(about["chosen"])
                else:
                    arm = ARMS.index(about["arm"])
                    shown[about["shown"]] = (arm, about["bucket"])
                    versions[arm].add(about["model"])
                    most = max(most, about["bucket"])
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror}; expected a log of ownview serve --log") from error
    counts = np.zeros((2, 2, most + 1))
    for arm, bucket in shown.values():
        counts[arm, 0, bucket] += 1
    for arm, bucket in (shown[one] for one in chosen & shown.keys()):
        counts[arm, 1, bucket] += 1
    share = shares.pop() if len(shares) == 1 else None  # one that changed meanwhile says nothing about all lists
    return counts, versions, share, len(chosen - shown.keys()), torn


def _torn(line: bytes) -> bool:
    """Whether a process did not finish writing a line; another one may stand right behind what it wrote."""
    if len(line) > LONGEST:
        return False
    if not line.endswith(b"\n"):
        return True
    if not line.startswith(b"{"):
        return False
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return True
    return False


def _line(path: Path, number: int, line: bytes) -> dict[str, Any]:
    try:
        about = json.loads(line) if len(line) <= LONGEST else None
    except (ValueError, RecursionError):
        about = None
    kinds: dict[str, dict[str, type | tuple[type, ...]]] = {
        "shown": {"shown": str, "arm": str, "bucket": int, "model": str}, "chosen": {"chosen": str},
        "split": {"split": (int, float)},
    }  # fmt: skip
    if not isinstance(about, dict):
        about = {}
    kind = next((name for name in kinds if name in about), "")
    good = kind and all(isinstance(about.get(name), of) for name, of in kinds[kind].items())
    if not good or (kind == "shown" and (about["arm"] not in ARMS or not 0 <= about["bucket"] < MOST_BUCKETS)):
        raise DataError(f"{path}: line {number}: expected a line of ownview serve --log, with shown, chosen or split")
    return about
