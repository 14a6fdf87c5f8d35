"""Presets: every file is sound, what is typed wins, and the run writes down what came of it."""

from __future__ import annotations

import json
import signal
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from ownview.base.errors import SettingError
from ownview.config.presets.loading import DEFAULT, preset, presets
from ownview.federation.options import FederationOptions
from ownview.registry import MODELS
from ownview.runs.experiment import Experiment
from ownview.runs.files.folder import RunFolder
from tests.outcome import Outcome, signalled
from tests.studies.worlds import write_world


@pytest.fixture(autouse=True)
def _world(own_folder: Path) -> None:
    write_world(own_folder / "world.csv")


def test_every_preset_is_a_sound_experiment_and_every_name_has_a_default() -> None:
    every = presets()
    assert {(one.method, one.name, one.data) for one in every} >= {
        ("fedmf", "tuned", data) for data in ("ml-100k", "filmtrust", "goodbooks", DEFAULT)
    }
    for one in every:
        assert one.method in MODELS
        Experiment.from_dict(one.experiment()).model()
        assert len(one.about) > 20
        assert (one.method, one.name, DEFAULT) in {(other.method, other.name, other.data) for other in every}


def test_data_without_a_preset_of_its_own_gets_the_default() -> None:
    assert preset("fedmf", "tuned", "ml-100k").data == "ml-100k"
    assert preset("FedMF", "tuned", "ratings.csv").data == DEFAULT


@pytest.mark.parametrize(
    ("method", "name", "reason"),
    [
        ("fedmf", "tund", r"--preset tund: fedmf has no preset of that name; did you mean 'tuned'\?"),
        ("fedmf", "zzz", "--preset zzz: fedmf has no preset of that name; choose from .*tuned"),
        ("local-only", "tuned", "--preset tuned: local-only has no presets; these have: .*fedmf"),
    ],
)
def test_a_preset_that_is_not_there_is_refused(method: str, name: str, reason: str) -> None:
    with pytest.raises(SettingError, match=f"^{reason}"):
        preset(method, name, "goodbooks")


def test_a_run_takes_the_preset_and_what_is_typed_wins(ownview: Callable[..., Outcome]) -> None:
    typed = ("--set", "embedding_size=3", "--set", "server_learning_rate=0.25", "--rounds", "2")
    assert ownview("run", "fedmf", "--data", "world.csv", "--preset", "tuned", *typed, "--out", "one").code == 0
    written = tomllib.loads(Path("one/experiment.toml").read_text())
    found = preset("fedmf", "tuned", "world.csv")
    assert (written["settings"]["embedding_size"], written["federation"]["server_learning_rate"]) == (3, 0.25)
    assert written["rounds"] == 2
    for name, value in {**found.settings, "embedding_size": 3}.items():
        assert written["settings"][name] == value
    for name, value in {**FederationOptions().plain(), **found.federation, "server_learning_rate": 0.25}.items():
        assert written["federation"][name] == value


def test_the_preset_of_the_data_is_taken_and_brings_its_rounds(ownview: Callable[..., Outcome]) -> None:
    found = preset("fedmf", "tuned", "goodbooks")
    with signalled(signal.SIGINT, RunFolder, "append_round", times=1):  # one round is enough to see what was taken
        outcome = ownview("run", "fedmf", "--preset", "tuned", "--set", "clients=1", "--out", "mine")
    assert outcome.code == 130, outcome.err
    written = tomllib.loads(Path("mine/experiment.toml").read_text())
    assert (written["data"], written["rounds"]) == ("goodbooks", found.rounds)
    assert written["settings"].items() >= dict(found.settings).items()


@pytest.mark.parametrize(
    ("arguments", "fact"),
    [
        (("fedmf", "--preset", "tund"), "did you mean 'tuned'"),
        (("--config", "some.toml", "--preset", "tuned"), "--preset tuned: not with --config"),
        (("--preset", "tuned"), "name a method"),
        (("--resume", "one", "--preset", "tuned"), "--preset: not with --resume"),
    ],
)
def test_bad_combinations_are_one_line(ownview: Callable[..., Outcome], arguments: tuple[str, ...], fact: str) -> None:
    outcome = ownview("run", *arguments)
    assert (outcome.code, outcome.out) == (2, "")
    assert fact in outcome.err
    assert outcome.err.count("\n") == 1


def test_presets_are_listed(ownview: Callable[..., Outcome]) -> None:
    outcome = ownview("ls", "presets")
    assert outcome.code == 0
    assert "tuned" in outcome.out
    assert "ml-100k" in outcome.out
    listed = json.loads(ownview("ls", "presets", "--json").out)["presets"]
    one = next(one for one in listed if (one["method"], one["data"]) == ("fedmf", "ml-100k"))
    assert one["settings"] == dict(preset("fedmf", "tuned", "ml-100k").settings)
