"""Commands about a model in use, as they are typed: `compare --online LOG`, `audit --since DAY`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np

from ownview.serve.arms import ImpressionLog
from tests.outcome import Outcome


def test_two_models_are_compared_by_what_was_chosen(ownview: Callable[..., Outcome], tmp_path: Path) -> None:
    log = ImpressionLog(tmp_path / "log")
    log.begun(0.5)
    for place in range(80):
        name = log.shown("ab"[place % 2], place // 2, "v1")  # type: ignore[arg-type]
        if place % 8 in (0, 1, 3):  # 1 list of 4 of model a, 2 of 4 of model b
            log.chosen(name)
    log.close()
    outcome = ownview("compare", "--online", str(tmp_path / "log"), "--json")
    assert outcome.code == 0, outcome.err
    found = json.loads(outcome.out)
    assert (found["a"]["lists"], found["a"]["hits"], found["b"]["hits"]) == (40, 10, 20)
    assert found["difference"]["value"] == 0.25
    read = ownview("compare", "--online", str(tmp_path / "log"))
    assert read.code == 0, read.err
    assert "v1" in read.words
    both = ownview("compare", "popularity", "--online", str(tmp_path / "log"))
    assert (both.code, both.err.count("\n")) == (2, 1)
    gone = ownview("compare", "--online", str(tmp_path / "none"))
    assert (gone.code, gone.err.count("\n")) == (2, 1)


def test_what_changed_since_a_day_is_told(ownview: Callable[..., Outcome], own_folder: Path) -> None:
    chance, begin = np.random.default_rng(0), 1_704_067_200  # 2024-01-01
    rows = [
        f"u{user},{int(chance.integers(0, 20)) + 30 * (day >= 60)},{begin + 86_400 * day + user}"
        for day in range(120)
        for user in range(0, 40, 1 if day >= 60 else 2)
    ]
    (own_folder / "shop.csv").write_text("user,item,timestamp\n" + "\n".join(rows) + "\n")
    outcome = ownview("audit", "shop.csv", "--since", "2024-03-01", "--json")
    assert outcome.code == 0, outcome.err
    found = json.loads(outcome.out)
    assert found["since"] == "2024-03-01"
    assert [one["fires"] for one in found["findings"]][:2] == [True, True], "other items, and twice the activity"
    read = ownview("audit", "shop.csv", "--since", "2024-03-01")
    assert read.code == 0, read.err
    wrong = ownview("audit", "shop.csv", "--since", "yesterday")
    assert (wrong.code, wrong.err.count("\n")) == (2, 1)
    assert "expected a day such as 2024-11-01" in wrong.err
