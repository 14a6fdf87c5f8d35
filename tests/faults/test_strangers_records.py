"""Records of a stranger with values of another kind, or nested without end, are refused in one line.

Each case ended with a traceback before: found by changing values of records at random.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.outcome import Outcome

TUNE = ("tune", "fedmf", "--data", "world.csv", "--trials", "1", "--rounds", "1", "--out", "tuning")
BENCH = ("bench", "suite.toml", "--record", "record", "--out", "benched", "--jobs", "1")
START = ("start", "world.csv", "--method", "fedease", "--out", "started")
DEEP = "[" * 100_000


def _with(file: Path, name: str, value: Any) -> None:
    values = json.loads(file.read_text(encoding="utf-8"))
    file.write_text(json.dumps({**values, name: value}) + "\n", encoding="utf-8")


def test_a_tuning(here: Path, ownview: Callable[..., Outcome], refused: Callable[..., str]) -> None:
    assert ownview(*TUNE).code == 0
    question, trials = here / "tuning/question.json", here / "tuning/trials.jsonl"
    sound = question.read_text(encoding="utf-8")
    _with(question, "experiment", 0.5)
    assert "this tuning began with experiment=0.5" in refused(*TUNE)
    question.write_text(DEEP, encoding="utf-8")
    assert "is damaged" in refused(*TUNE)
    question.write_text(sound, encoding="utf-8")
    for change in (lambda: _with(trials, "settings", True), lambda: trials.write_text(DEEP + "\n", encoding="utf-8")):
        change()
        assert ownview(*TUNE).code == 0, "a trial that cannot be read is made again"


def test_a_start(here: Path, ownview: Callable[..., Outcome], refused: Callable[..., str]) -> None:
    assert ownview(*START).code == 0
    record = here / "started/start.json"
    _with(record, "reading", 7)
    assert "reading is '7', expected a list" in refused(*START)
    record.write_text(DEEP, encoding="utf-8")
    assert "is damaged" in refused(*START)


@pytest.mark.parametrize("name", ["runs", "comparison", "failures", "protocols"])
def test_a_record_of_results(
    name: str, here: Path, ownview: Callable[..., Outcome], refused: Callable[..., str]
) -> None:
    suite = f"rounds = 1\ndata = ['{here}/world.csv']\n[[rows]]\nmethod = 'fedease'\n"
    Path("suite.toml").write_text(suite, encoding="utf-8")
    assert ownview(*BENCH).code == 0
    _with(here / "record/suite.json", name, [[1]])
    assert "record/suite.json: is damaged" in refused(*BENCH)
    (here / "record/suite.json").write_text(DEEP, encoding="utf-8")
    assert "nested too deeply" in refused(*BENCH)


@pytest.mark.parametrize("file", ["audit.json", "attack.json"])
def test_findings_that_are_damaged_are_made_anew(file: str, here: Path, ownview: Callable[..., Outcome]) -> None:
    asked = ("compare", "fedease", "popularity", "--data", "world.csv", "--out", "both")
    assert ownview(*asked).code == 0
    path = here / "both/fedease-honest-seed0" / file
    values = json.loads(path.read_text(encoding="utf-8"))
    for one in values["findings"] if "findings" in values else [values["finding"]]:
        one["values"] = [[1]]
    path.write_text(json.dumps(values), encoding="utf-8")
    assert ownview(*asked, "--resume", "both").code == 0
    assert ownview("report", "both", "-o", "new.html").code == 0
