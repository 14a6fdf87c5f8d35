"""A start plans by cost: what does not fit the time or the memory is made smaller or left out, and it is said."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from ownview.cli.display.work import Work
from ownview.data.interactions import Interactions
from ownview.data.splitting.splits import Split
from ownview.evaluation.named_protocols import HONEST
from ownview.start.costs import Speed, cost_of
from ownview.start.folder import StartFolder
from ownview.start.suited import Allowance, Selection, suited

TWO_CORES = Speed(factor=2e10, single=5e10, product=6e10, elements=1e9)
"""About what two cores do that nobody else works on."""


def world(users: int, items: int, rows: int) -> Split:
    draw = np.random.default_rng(0)
    user = np.concatenate([np.repeat(np.arange(users), 3), draw.integers(0, users, rows - 3 * users)])
    item = draw.permutation(np.concatenate([np.arange(items), draw.integers(0, items, rows - items)]))
    return HONEST.prepare(Interactions.from_rows("made", user, item, timestamp=np.arange(rows) * 50_000), None)


@pytest.fixture(scope="module")
def shop() -> Split:
    return world(6_000, 9_000, 50_000)


def chosen(split: Split, minutes: float, memory: float = 8e9, speed: Speed = TWO_CORES) -> dict[str, object]:
    found = suited(split, Allowance(60 * minutes, memory, speed))
    return {one.method: one.settings.get("rank", one.rounds) for one in found.methods}


def test_more_time_has_room_for_more(shop: Split) -> None:
    plans = [chosen(shop, minutes) for minutes in (0.5, 5, 60, 600)]
    assert all(set(less) <= set(more) for less, more in pairwise(plans))
    assert "popularity" in plans[0]
    assert "fedease" not in plans[0]
    assert {"fedease", "ease", "fednext", "pfedrec"} <= set(plans[-1])
    assert plans[-1]["fednext"] == 512


def test_the_plan_stays_within_its_budget(shop: Split) -> None:
    for minutes in (1, 5, 15, 60):
        found = suited(shop, Allowance(60 * minutes, 8e9, TWO_CORES))
        seconds = [one.seconds for one in found.methods]
        assert sum(seconds) + max(seconds) <= 60 * minutes
        for one in found.methods:
            assert one.seconds == cost_of(one.method, one.settings, one.rounds, one.measured, shop, TWO_CORES).seconds


def test_a_slower_machine_takes_smaller_forms_and_says_so(shop: Split) -> None:
    slow = replace(TWO_CORES, factor=1e9, single=2e9, product=3e9, elements=3e8)
    found = suited(shop, Allowance(900, 8e9, slow))
    fast = chosen(shop, 15)
    assert {one.method for one in found.methods} < set(fast)
    reasons = " ".join(found.left_out)
    for name in set(fast) - {one.method for one in found.methods}:
        assert f"{name}: would take about" in reasons
    assert "--minutes" in reasons


def test_what_does_not_fit_the_memory_is_left_out(shop: Split) -> None:
    found = suited(shop, Allowance(36_000, 4e8, TWO_CORES))
    assert "fedease" not in {one.method for one in found.methods}
    assert any("fedease: would hold 1.3 GB (9,000 items), more than there is" in line for line in found.left_out)


def test_a_plan_is_kept_and_read_again(shop: Split, tmp_path: Path) -> None:
    folder = StartFolder(tmp_path, tmp_path / "shop.csv", {}, None)
    plan = suited(shop, Allowance(900, 8e9, TWO_CORES))
    folder.keep_plan({"methods": [], "minutes": 15.0}, plan)
    assert folder.planned({"methods": [], "minutes": 15.0}) == plan
    assert Selection.of(plan.to_dict()) == plan
    assert folder.planned({"methods": [], "minutes": 60.0}) is None


def test_time_left_is_told_by_work_and_moves_inside_a_part() -> None:
    now = [0.0]
    work = Work({"small": 10.0, "large": 100.0, "last": 10.0}, clock=lambda: now[0])
    assert work.seconds_left() == 120
    work.begin("small")
    now[0] = 20.0  # everything takes twice as long as expected
    work.begin("large")
    assert work.seconds_left() == pytest.approx(220)
    now[0] = 120.0
    assert work.seconds_left() == pytest.approx(120)
    assert work.line() == "2 of 3 (large, 1 min 40 s so far), about 2 min 00 s left"
    now[0] = 320.0
    assert work.seconds_left() == pytest.approx(20 + 75), "what is late is expected to be a quarter later"
    work.expect("last", 50.0)
    assert work.seconds_left() == pytest.approx(50 + 75), "seconds that were measured here are not scaled"
    work.begin("last")
    work.end()
    assert work.now is None


def test_speed_is_measured_and_not_assumed() -> None:
    speed = Speed.measured()
    assert min(speed.factor, speed.product, speed.elements) > 0
    assert Speed.measured() == speed, "once in a process"
