"""What changed since a day, on worlds in which it is known."""

from __future__ import annotations

import numpy as np
import pytest

from ownview.base.errors import DataError, SettingError
from ownview.data.interactions import Interactions
from ownview.evaluation.drift import Windows, drift, moment_of

DAY = 86_400
START = moment_of("2024-01-01")


def _world(days: int = 120, users: int = 80, turn: int | None = None, seed: int = 0) -> Interactions:
    """Everybody walks along a ring of items; from day `turn` on new items take half of everything, twice as often."""
    chance = np.random.default_rng(seed)
    rows: list[tuple[int, int, int]] = []
    place = chance.integers(0, 60, users)
    for day in range(days):
        later = turn is not None and day >= turn
        for user in np.flatnonzero(chance.random(users) < (0.6 if later else 0.3)).tolist():
            place[user] = (place[user] + 1) % 60
            item = 60 + int(chance.integers(0, 30)) if later and chance.random() < 0.5 else int(place[user])
            rows.append((user, item, START + day * DAY + int(chance.integers(0, DAY))))
    who, what, when = (np.array(column) for column in zip(*rows, strict=True))
    return Interactions.from_rows("ring", who, what, timestamp=when)


def test_a_world_that_stays_the_same_says_nothing() -> None:
    items, activity, hits = drift(_world(), moment_of("2024-03-01"))
    assert not activity.fires
    assert not hits.fires
    assert items.values["share_of_new"] == 0


def test_new_items_and_more_activity_are_said() -> None:
    data = _world(turn=60)
    items, activity, hits = drift(data, START + 60 * DAY)
    assert items.fires
    assert items.values["new_items"] == 30
    assert 0.4 < float(items.values["share_of_new"]) < 0.6
    assert float(items.values["moved"]) > 2 * float(items.values["moved_by_chance"])
    assert activity.fires
    assert float(activity.values["a_day"]) / float(activity.values["a_day_before"]) == pytest.approx(2, rel=0.1)
    assert hits.fires
    assert float(hits.values["since"]) < float(hits.values["before"])


def test_the_windows_are_of_one_length_where_there_is_room() -> None:
    data = _world()
    assert data.timestamp is not None
    windows = Windows.of(data, START + 90 * DAY)
    assert windows.since - windows.begin == windows.end - windows.since + 1
    short = Windows.of(data, START + 10 * DAY)
    assert short.begin == (int(data.timestamp.min()) + short.since) // 2


@pytest.mark.parametrize("since", ["2023-01-01", "2030-01-01"])
def test_a_day_outside_the_data_is_one_line(since: str) -> None:
    with pytest.raises(DataError, match="expected a time after 2024-01-01"):
        drift(_world(), moment_of(since))


def test_what_is_no_day_or_has_no_times_is_one_line() -> None:
    with pytest.raises(SettingError, match="expected a day such as 2024-11-01"):
        moment_of("yesterday")
    plain = Interactions.from_rows("plain", np.array([1, 1, 2]), np.array([1, 2, 1]))
    with pytest.raises(DataError, match="--since needs times"):
        drift(plain, START)
