"""Yardsticks by hand: two users, five items, two sittings."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
import torch

from ownview.base.errors import SettingError
from ownview.baselines.markov import Markov
from ownview.baselines.parts.central import Asked, OneShot
from ownview.baselines.recent_popularity import RecentPopularity
from ownview.baselines.sitting_counts import LaterSittings, SittingStarts
from ownview.data.interactions import Interactions
from ownview.data.questions import Question
from ownview.data.ragged import Ragged
from ownview.data.splitting.splits import Split, distinct
from ownview.data.timeline import Timeline

DAY = 86_400


def split_of(rows: Sequence[tuple[str, str, float]], *, timed: bool = True) -> Split:
    """All rows train; days are times."""
    user, item, day = zip(*rows, strict=True)
    times = np.array([round(one * DAY) for one in day], dtype=np.int64) if timed else None
    data = Interactions.from_rows("rows", np.array(user), np.array(item), timestamp=times)
    train = Ragged.from_pairs(data.user, data.item, data.num_users)
    stamps = None if data.timestamp is None else train.with_values(data.timestamp.copy())
    line = Timeline(train, stamps, None if stamps is None else torch.full((data.num_users,), round(100 * DAY)))
    question = Question(train, line, distinct(train))
    return Split(data, train, line, question, question, "times" if timed else "none")


ROWS = [
    ("a", "p", 1), ("a", "q", 1.1), ("a", "r", 5), ("a", "s", 5.2), ("a", "p2", 99),
    ("b", "p", 2), ("b", "r", 9), ("b", "q", 9.1), ("b", "s", 9.2), ("b", "p2", 9.3),
]  # fmt: skip


def scored(model: OneShot, split: Split, now: Sequence[float] | None = None) -> dict[str, dict[str, float]]:
    line = split.timeline
    if now is not None:
        line = Timeline(line.items, line.times, torch.tensor([round(one * DAY) for one in now]))
    learned = model.fit(split, split.training_items(), 0)
    found = model.scores(learned, Asked(torch.arange(split.num_users), line))
    return {
        str(user): dict(zip(split.data.items.tolist(), found[k].tolist(), strict=True))
        for k, user in enumerate(split.data.users.tolist())
    }


def test_sittings_after_a_pause_begin_with() -> None:
    counts = scored(SittingStarts(), split_of(ROWS))["a"]
    assert counts == {"p": 0, "q": 0, "r": 2, "s": 0, "p2": 1}  # a on days 5 and 99, b on day 9


def test_later_sittings_hold_each_over_the_root_of_its_length() -> None:
    counts = scored(LaterSittings(), split_of(ROWS))["b"]
    half, quarter = 0.5**0.5, 0.25**0.5
    expected = {"p": 0, "q": quarter, "r": half + quarter, "s": half + quarter, "p2": 1 + quarter}
    assert counts == pytest.approx(expected, rel=1e-6)


def test_a_longer_pause_makes_fewer_sittings() -> None:
    assert scored(SittingStarts(pause_days=5), split_of(ROWS))["a"] == {"p": 0, "q": 0, "r": 1, "s": 0, "p2": 1}


def test_recent_are_the_whole_days_before_the_clock() -> None:
    found = scored(RecentPopularity(days=5), split_of(ROWS), now=[10.0, 9.9])
    assert found["a"] == {"p": 0, "q": 1, "r": 2, "s": 2, "p2": 1}  # days 5 to 9
    assert found["b"] == {"p": 0, "q": 0, "r": 1, "s": 1, "p2": 0}  # days 4 to 8
    assert not any(scored(RecentPopularity(days=5), split_of(ROWS), now=[0.0, 60.0])["a"].values())


def test_successors_of_the_last_item_and_popularity_behind_them() -> None:
    rows = [("a", "p", 1), ("a", "q", 2), ("a", "p3", 3), ("b", "p", 1), ("b", "q", 2), ("c", "q", 1), ("c", "p", 2)]
    found = scored(Markov(), split_of(rows))
    row = 1 / 8  # of 7 rows
    assert found["b"] == pytest.approx({"p": 1 + 3 * row, "q": 3 * row, "p3": 1 + row})  # after q came p3 and p
    assert found["c"] == pytest.approx({"p": 3 * row, "q": 2 + 3 * row, "p3": row})
    assert found["a"] == pytest.approx({"p": 3 * row, "q": 3 * row, "p3": row}), "nothing came after p3"


@pytest.mark.parametrize("model", [SittingStarts(), LaterSittings(), RecentPopularity(), Markov()])
def test_data_without_times_is_refused_in_one_line(model: OneShot) -> None:
    with pytest.raises(SettingError, match=f"{model.name} .*expected .*times"):
        model.require(split_of(ROWS, timed=False))
