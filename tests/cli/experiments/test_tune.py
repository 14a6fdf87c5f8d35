"""`ownview tune` as a person types it."""

from __future__ import annotations

import json
import re
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ownview.cli.main import entry
from ownview.studies.tuning.trials import TuningFolder
from tests.apart import killed
from tests.outcome import Outcome, signalled
from tests.studies.worlds import write_world

SMALL = ("--rounds", "4", "--trials", "7", "--set", "embedding_size=4", "--search", "local_epochs=1,3")
TUNE = ("tune", "fedmf", "--data", "world.csv", *SMALL)
FOLDER = "runs/tune-fedmf-world-honest-seed0"


@pytest.fixture(autouse=True)
def _world(own_folder: Path) -> None:
    write_world(own_folder / "world.csv")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a tuning that nothing interrupted."""
    place = tmp_path_factory.mktemp("whole")
    write_world(place / "world.csv")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        patch.setenv("XDG_CACHE_HOME", str(place / "cache"))
        patch.setattr(sys, "argv", ["ownview", *TUNE])
        with pytest.raises(SystemExit, match="0"):
            entry()
    return place / FOLDER


def trials(folder: str) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in Path(folder, "trials.jsonl").read_text().splitlines()]
    return [{name: value for name, value in line.items() if name != "seconds"} for line in lines]


def test_a_tuning_ends_in_a_table_and_a_file_that_run_takes(ownview: Callable[..., Outcome]) -> None:
    outcome = ownview(*TUNE)
    assert (outcome.code, outcome.err) == (0, "")
    assert "7 trials of at most 4 rounds, on validation; test was not looked at" in outcome.words
    best = max((one for one in trials(FOLDER) if one["state"] == "complete"), key=lambda one: one["value"])
    assert re.search(
        rf"^ +{best['number']} +{best['value']:.4f} +{best['round']} +complete +negatives=", outcome.out, re.M
    )
    assert outcome.out.endswith(
        f"Beside its defaults, three seeds: ownview bench {FOLDER}/suite.toml\n"
        f"Best: trial {best['number']}. Run it with:\n  ownview run --config {FOLDER}/best.toml\n"
    )
    ran = json.loads(ownview("run", "--config", f"{FOLDER}/best.toml", "--json").out)
    assert ran["validation"]["NDCG@10"] == pytest.approx(best["value"], abs=1e-12)
    assert ran["settings"]["embedding_size"] == 4
    assert str(ran["settings"]["local_epochs"]) == best["settings"]["local_epochs"]


def test_json_has_the_best_and_all_trials_and_no_test_figure(ownview: Callable[..., Outcome]) -> None:
    outcome = ownview(*TUNE, "--metric", "HR@10", "--seed", "3", "--out", "here", "--json")
    assert (outcome.code, outcome.err) == (0, "")
    found = json.loads(outcome.out)
    assert (found["metric"], found["measured_on"], found["seed"], found["folder"]) == ("HR@10", "validation", 3, "here")
    assert len(found["trials"]) == 7
    assert found["best"] in found["trials"]
    assert found["search"]["learning_rate"] == "0.001:0.3:log"
    assert "embedding_size" not in found["search"]
    assert "test" not in outcome.out
    assert "test" not in Path("here/trials.jsonl").read_text()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_stopped_or_killed_the_same_command_goes_on(
    ownview: Callable[..., Outcome], number: signal.Signals, whole: Path
) -> None:
    if number == signal.SIGKILL:
        killed(TuningFolder, "append", 2, *TUNE)
    else:
        with signalled(number, TuningFolder, "append", times=2):
            stopped = ownview(*TUNE)
        message = f"ownview: stopped with 2 of 7 trials finished in {FOLDER}; the same command goes on\n"
        assert stopped == Outcome(128 + number, "", message)
    assert len(trials(FOLDER)) == 2
    assert not Path(FOLDER, "best.toml").exists()
    assert ownview(*TUNE).code == 0
    assert trials(FOLDER) == trials(str(whole))
    best = (whole / "best.toml").read_text().replace(str(whole.parents[1]), str(Path.cwd()))
    assert Path(FOLDER, "best.toml").read_text() == best


@pytest.mark.parametrize(
    ("arguments", "facts"),
    [
        (("fedfm",), ["unknown method 'fedfm'", "did you mean 'fedmf'"]),
        (("popularity",), ["popularity has no setting left to search"]),
        (("fedmf", "--trials", "0"), ["--trials 0", "at least 1"]),
        (("fedmf", "--rounds", "0"), ["rounds=0", "at least 1"]),
        (("fedmf", "--metric", "NDGC@10"), ["--metric NDGC@10", "NDCG@10, HR@10"]),
        (("fedmf", "--pruner", "medium"), ["--pruner medium", "median, halving, none", "did you mean 'median'"]),
        (("fedmf", "--protocol", "onest"), ["unknown protocol 'onest'", "did you mean 'honest'"]),
        (("fedmf", "--protocol", "peeking.toml"), ["protocol peeking has selection='test'", "expected selection="]),
        (("fedmf", "--search", "rate=0:1"), ["--search rate=0:1", "no"]),
        (("fedmf", "--search", "learning_rate=3:1"), ["--search learning_rate=3:1", "low end below the high end"]),
        (("fedmf", "--search", "learning_rate=-1:1"), ["learning_rate=-1.0", "above 0"]),
        (("fedmf", "--set", "learning_rate=x"), ["learning_rate='x'", "expected a number above 0"]),
        (("fedmf", "--set", "rho=1"), ["--set rho=1", "has a setting 'rho'"]),
        (("fedmf", "--set", "negatives=3", "--search", "negatives"), ["negatives is also pinned by --set"]),
        (("fedmf", "--plugin", "plcg"), ["unknown plug-in 'plcg'", "did you mean 'plgc'"]),
        (("fedmf", "--data", "nowhere.csv"), ["nowhere.csv"]),
    ],
)  # fmt: skip
def test_bad_input_is_one_line(ownview: Callable[..., Outcome], arguments: tuple[str, ...], facts: list[str]) -> None:
    Path("peeking.toml").write_text('base = "honest"\nselection = "test"\n')
    data = () if "--data" in arguments else ("--data", "world.csv")
    outcome = ownview("tune", *arguments, *data)
    assert outcome.code == 2, outcome
    assert outcome.out == ""
    assert re.fullmatch(r"ownview: \S[^\n]*\S\n", outcome.err), outcome.err
    for fact in facts:
        assert fact in outcome.err
    assert not Path("runs").exists()


def test_without_optuna_the_way_to_it_is_said(ownview: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "optuna", None)  # what Python does with a package that is not there
    outcome = ownview(*TUNE)
    assert (outcome.code, outcome.out) == (2, "")
    assert 'ownview tune needs Optuna, which is not installed: pip install -e ".[tune]" (in a clone' in outcome.err
    assert outcome.err.count("\n") == 1
    assert not Path("runs").exists()


def test_methods_are_listed_with_their_spaces(ownview: Callable[..., Outcome]) -> None:
    found = json.loads(ownview("ls", "methods", "--json").out)
    fedmf = next(one for one in found["methods"] if one["name"] == "fedmf")
    assert fedmf["settings"]["learning_rate"]["search"] == {"low": 0.001, "high": 0.3, "log": True}
    assert fedmf["settings"]["embedding_size"]["search"] == {"choices": [8, 16, 32, 64]}
    assert fedmf["settings"]["batch_size"]["search"] is None
    assert found["federation"]["server_optimizer"]["search"] == {"choices": ["plain", "momentum", "adam"]}
