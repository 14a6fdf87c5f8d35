"""Methods whose clients send sums, on the command line: the same commands, and what is refused with its reason."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from ownview import FederationOptions
from ownview.runs.experiment import Experiment
from ownview.runs.run import resume, run
from tests.outcome import Outcome

OWN_METHOD = """
from dataclasses import dataclass
from typing import ClassVar

import ownview
from ownview import FedEASE


@dataclass(frozen=True)
class Steep(FedEASE):
    name: ClassVar[str] = "steep"
"""


@pytest.fixture(autouse=True)
def _world(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.chdir(tmp_path)
    chance = random.Random(1)
    text = "user,item,rating,timestamp\n"
    for user in range(20):
        text += "".join(f"u{user},i{item},1,{chance.randint(0, 99)}\n" for item in chance.sample(range(40), 9))
    Path("world.csv").write_text(text)


def test_run_recommend_and_cost(ownview: Callable[..., Outcome]) -> None:
    done = ownview("run", "fedease", "--data", "world.csv", "--out", "run", "--json")
    result = json.loads(done.out)
    assert (result["rounds"], result["chosen_round"]) == (1, 1)
    # Nine items, two of them held out: how many and which, and half of seven by seven pairs; before them the message's
    # heading and the table's.
    up = 16 + (1 + len("pairs") + 12) + 4 * (1 + 7) + 7 * 8 // 2 * 4
    assert result["bytes_up_per_client"] == up
    cost = json.loads(Path("run/cost.json").read_text())
    assert cost["declared"]["bytes_up_per_client"] == up
    assert cost["declared"]["bytes_down_per_client"] == 40 * 40 * 4
    outcome = ownview("recommend", "run", "--user", "u3", "-k", "3", "--json")
    assert len(json.loads(outcome.out)["recommendations"]) == 3


def test_a_watched_client_shows_what_it_has(ownview: Callable[..., Outcome]) -> None:
    done = ownview("run", "fedials", "--data", "world.csv", "--out", "run", "--rounds", "2", "--watch", "u1")
    assert (done.code, done.err) == (0, "")
    lines = [json.loads(line) for line in Path("run/rounds.jsonl").read_text().splitlines()]
    assert [sum(line["watched"]["u1"]["seen"]) for line in lines] == [7, 7]


def test_a_method_of_ones_own(ownview: Callable[..., Outcome]) -> None:
    Path("mine.py").write_text(OWN_METHOD)
    assert ownview("run", "mine.py", "--data", "world.csv", "--out", "run").code == 0


def test_compare_goes_on_where_it_stopped(ownview: Callable[..., Outcome]) -> None:
    line = ("compare", "fedease", "fedials", "fcf", "fedcia", "popularity", "--data", "world.csv", "--rounds", "2",
            "--set", "fit_steps=2")  # fmt: skip
    first = ownview(*line, "--out", "all", "--json")
    assert first.code == 0, first.err
    again = ownview(*line, "--resume", "all", "--json")
    assert json.loads(first.out) == json.loads(again.out)


def test_what_leaves_the_device_is_listed(ownview: Callable[..., Outcome]) -> None:
    methods = {one["name"]: one for one in json.loads(ownview("ls", "methods", "--json").out)["methods"]}
    assert methods["fedcia"]["leaves_the_device"] == "item-item similarity matrix of each client, m x m"
    assert methods["fedease"]["leaves_the_device"] == "pairs of its items, once"
    assert methods["fedease"]["settings"]["regularization"]["default"] == 100.0


@pytest.mark.parametrize(
    ("arguments", "code", "fact"),
    [
        ("--plugin plgc", 2, "plug-in plgc changes tables that clients train and share"),
        ("--set server_optimizer=adam", 2, "federation setting server_optimizer='adam': the server of fedease adds up"),
        ("--memory 1kB", 2, "fewer items"),
        ("--set regularization=0", 2, "regularization"),
    ],
)
def test_refused(arguments: str, code: int, fact: str, ownview: Callable[..., Outcome]) -> None:
    done = ownview("run", "fedease", "--data", "world.csv", "--out", "run", *arguments.split())
    assert done.code == code
    assert fact in " ".join(done.err.split())


@pytest.mark.parametrize(
    ("method", "settings"), [("fedease", {}), ("fedials", {}), ("fcf", {}), ("fedcia", {"fit_steps": 2})]
)
def test_an_interrupted_run_ends_as_if_it_had_not_been(method: str, settings: dict[str, int]) -> None:
    half = FederationOptions(clients="0.5", privacy="laplace:0.01")
    experiment = Experiment(method=method, settings=settings, data="world.csv", rounds=5, federation=half)
    whole = run(experiment, out=Path("whole"))

    class StopError(Exception):
        pass

    def stop(number: int, metrics: dict[str, float]) -> None:
        if number == 3:
            raise StopError

    with pytest.raises(StopError):
        run(experiment, out=Path("cut"), on_round=stop)
    gone_on = resume(Path("cut"))
    assert gone_on.result["test"] == whole.result["test"]
    assert [line["validation"] for line in gone_on.rounds] == [line["validation"] for line in whole.rounds]
