"""What changed since a day: items, activity, and how often the same model hits.

The time since then is compared with as long a time before it (half of what there is where that is less). A model is
fitted on what came before each of the two and asked for everybody's first new item in it, so that both hit rates answer
one question; the older model is asked about the later time, too: what it loses is what an update is worth.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime

import numpy as np
import torch

from ownview.base.errors import DataError, SettingError
from ownview.base.randomness import derive
from ownview.baselines.ease import EASE
from ownview.baselines.popularity import Popularity
from ownview.data.dates import EARLIEST, LATEST, in_utc
from ownview.data.interactions import FloatArray, IntArray, Interactions
from ownview.data.sittings import DAY
from ownview.data.splitting.causal_splits import global_time
from ownview.data.splitting.splits import RowMask
from ownview.evaluation.findings import Finding
from ownview.evaluation.metrics import hit_rate
from ownview.evaluation.named_protocols import HONEST_TIME
from ownview.evaluation.ranking import Ranker, rankers
from ownview.evaluation.statistics import mean_interval
from ownview.evaluation.time_probes import Fitted

SOLVED = 4000
"""Items up to which EASE^R takes seconds; popularity is asked beyond."""

_SHUFFLES = 20
_NEW_SHARE, _ACTIVITY = 0.05, 1.25
"""Of interactions with items that are new; by which factor activity must differ: before a change is worth a word."""
_FEWEST = 30
"""People who must be asked in each time before their hit rates are compared."""
_SCORE_BYTES = 256 * 10**6


def moment_of(text: str) -> int:
    """Seconds since 1970 of a day or a time in UTC, such as 2024-11-01 or 2024-11-01T12:00."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise SettingError(
            f"--since {text}: expected a day such as 2024-11-01, or a time such as 2024-11-01T12:00"
        ) from None
    return int(found.replace(tzinfo=found.tzinfo or UTC).timestamp())


@dataclass(frozen=True)
class Windows:
    """Two times of one length.

    Args:
        begin: of the earlier one.
        since: its end, and the begin of the later one.
        end: the last row's time.
    """

    begin: int
    since: int
    end: int

    @classmethod
    def of(cls, data: Interactions, since: int) -> Windows:
        """The later one ends with the data.

        Raises:
            DataError: the data has no clock, or nothing lies on one side of the day.
        """
        if data.timestamp is None or not data.clock or not EARLIEST <= int(data.timestamp.max()) < LATEST:
            raise DataError(f"{data.name}: --since needs times, and this data has none that a clock could show")
        first, end = int(data.timestamp.min()), int(data.timestamp.max())
        if not first < since <= end:
            raise DataError(
                f"{data.name}: --since {in_utc(since)}: expected a time after {in_utc(first)} and not after "
                f"{in_utc(end)}"
            )
        return cls(max((first + since) // 2, 2 * since - end - 1), since, end)


def drift(data: Interactions, since: int) -> list[Finding]:
    """Drift of the data, which has times."""
    windows = Windows.of(data, since)
    assert data.timestamp is not None
    earlier = (data.timestamp >= windows.begin) & (data.timestamp < since)
    later = data.timestamp >= since
    if not earlier.any():
        raise DataError(f"{data.name}: nothing happened between {in_utc(windows.begin)} and {in_utc(since)}")
    return [
        _items(data, earlier, later, data.timestamp < since),
        _activity(data, earlier, later, windows),
        _hits(data, windows),
    ]


def _items(data: Interactions, earlier: RowMask, later: RowMask, before: RowMask) -> Finding:
    """New items, items that went, and how far the shares of items moved, beside what chance alone would move them."""
    met = np.zeros(data.num_items, dtype=bool)
    met[data.item[before]] = True
    now = np.bincount(data.item[later], minlength=data.num_items)
    then = np.bincount(data.item[earlier], minlength=data.num_items)
    new, gone = int(((now > 0) & ~met).sum()), int(((then > 0) & (now == 0)).sum())
    share = float(now[~met].sum() / now.sum())
    moved = _distance(then, now)
    pool, chance = np.concatenate([data.item[earlier], data.item[later]]), np.random.default_rng(derive(0, "drift"))
    shuffled = []
    for _ in range(_SHUFFLES):
        mixed = chance.permutation(pool)
        parts = (mixed[: int(earlier.sum())], mixed[int(earlier.sum()) :])
        shuffled.append(_distance(*(np.bincount(part, minlength=data.num_items) for part in parts)))
    by_chance = float(np.mean(shuffled))
    sentence = (
        f"{new:,} items are new and take {100 * share:.1f} % of interactions; {gone:,} that were taken before are not "
        f"any more; {100 * moved:.1f} % of interactions moved to other items, {100 * by_chance:.1f} % by chance alone"
    )
    values: dict[str, float | str] = {
        "new_items": new, "share_of_new": share, "gone_items": gone, "moved": moved, "moved_by_chance": by_chance,
    }  # fmt: skip
    return Finding("items", share > _NEW_SHARE or moved > max(shuffled), sentence, values)


def _distance(left: IntArray, right: IntArray) -> float:
    """Total variation between two distributions of items."""
    return float(np.abs(left / left.sum() - right / right.sum()).sum() / 2)


def _activity(data: Interactions, earlier: RowMask, later: RowMask, windows: Windows) -> Finding:
    assert data.timestamp is not None
    user = data.user
    began = np.full(data.num_users, np.iinfo(np.int64).max)
    np.minimum.at(began, user, data.timestamp)
    rates, people, each = [], [], []
    for rows, seconds in ((earlier, windows.since - windows.begin), (later, windows.end - windows.since + 1)):
        rates.append(float(rows.sum()) * DAY / seconds)
        people.append(len(np.unique(user[rows])))
        each.append(float(rows.sum()) / people[-1])
    fresh = float((began[np.unique(user[later])] >= windows.since).mean())
    sentence = (
        f"{rates[1]:,.1f} interactions a day, {rates[0]:,.1f} before; {people[1]:,} people took part, {people[0]:,} "
        f"before, {100 * fresh:.1f} % of them new; {each[1]:.1f} interactions a person, {each[0]:.1f} before"
    )
    values: dict[str, float | str] = {
        "a_day_before": rates[0], "a_day": rates[1], "people_before": people[0], "people": people[1],
        "new_people": fresh, "each_before": each[0], "each": each[1],
    }  # fmt: skip
    ratio = max(rates[1] / rates[0], rates[0] / rates[1])
    return Finding("activity", ratio > _ACTIVITY, sentence, values)


def _hits(data: Interactions, windows: Windows) -> Finding:
    """HR@10 before; since then, by a model of that day; and by the older model."""
    old = global_time(data, first=windows.begin, second=windows.since, ties="file", seed=0, knows_validation=True)
    new = global_time(data, first=windows.since, second=windows.end + 1, ties="file", seed=0)
    new = replace(new, test=new.validation)  # nothing lies behind the last row
    name = EASE.title if data.num_items <= SOLVED else Popularity.title
    found = {}
    for split, stages in ((old, {"before": 0, "older_model": 1}), (new, {"since": 0})):
        asked = rankers(HONEST_TIME, split, 0, torch.device("cpu"), _SCORE_BYTES)
        model = EASE() if data.num_items <= SOLVED else Popularity()
        learned = model.fit(split, split.training_items(), 0)
        for what, stage in stages.items():
            found[what] = _rates(Fitted(model, learned, asked[stage].question.known), asked[stage])
    low, high = {}, {}
    for what, rates in found.items():
        low[what], high[what] = mean_interval(rates)
    hits = {
        what: f"{rates.mean():.3f} ({low[what]:.3f} to {high[what]:.3f}, {len(rates):,} people)"
        for what, rates in found.items()
    }
    sentence = (
        f"HR@10 of {name} for the first new item of the time: {hits['since']} since then, {hits['before']} before; a "
        f"model that was not updated on that day has {hits['older_model']}"
    )
    values: dict[str, float | str] = {"model": name}
    for what, rates in found.items():
        values |= {what: float(rates.mean()), f"{what}_low": low[what], f"{what}_high": high[what]}
    if min(len(rates) for rates in found.values()) < _FEWEST:
        return Finding("hit rate", False, f"{sentence}; too few to compare", values)
    apart = low["since"] > high["before"] or high["since"] < low["before"]
    return Finding("hit rate", apart, sentence, values)


def _rates(model: Fitted, ranker: Ranker) -> FloatArray:
    return hit_rate(ranker.rank(model), 10)
