"""A small world, a run in it that has finished and one that has not; every test breaks a copy."""

from __future__ import annotations

import random
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from ownview.runs.experiment import Experiment
from ownview.runs.run import run
from tests.outcome import Outcome

ROUNDS = 4


class StopError(Exception):
    """Ends a run after some rounds, as a crash would."""


def write_world(path: Path) -> Path:
    """30 users, 60 items, 8 rows a user or a few more."""
    chance = random.Random(1)
    rows = ["user,item,rating,timestamp"]
    for user in range(30):
        chosen = sorted({2 * user % 60, (2 * user + 1) % 60, *chance.sample(range(60), 8)})
        rows += [f"u{user},i{item},3,{chance.randint(0, 5000)}" for item in chosen]
    path.write_text("\n".join(rows) + "\n")
    return path


def experiment(world: Path) -> Experiment:
    return Experiment(method="fedmf", data=str(world), rounds=ROUNDS, settings={"embedding_size": 4, "local_epochs": 1})


@pytest.fixture(scope="session")
def _kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """world.csv, done/ and begun/, whose last checkpoint is of round 2."""
    folder = tmp_path_factory.mktemp("kept")
    world = write_world(folder / "world.csv")
    run(experiment(world), out=folder / "done")

    def on_round(number: int, metrics: dict[str, float]) -> None:
        if number == 3:
            raise StopError

    with pytest.raises(StopError):
        run(experiment(world), out=folder / "begun", on_round=on_round)
    assert (folder / "begun" / "checkpoint.safetensors").is_file()
    return folder


@pytest.fixture(autouse=True)
def here(_kept: Path, own_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of one's own with copies of all that; the runs know their data by its full path."""
    monkeypatch.setenv("COLUMNS", "200")
    for name in ("done", "begun"):
        shutil.copytree(_kept / name, own_folder / name)
    shutil.copy(_kept / "world.csv", own_folder)
    return own_folder


@pytest.fixture
def refused(ownview: Callable[..., Outcome]) -> Callable[..., str]:
    """A command that must end with one line, code 2 and nothing on stdout; the line."""

    def call(*arguments: str | Path, code: int = 2) -> str:
        outcome = ownview(*arguments)
        assert outcome.code == code, outcome
        assert outcome.out == ""
        assert re.fullmatch(r"ownview: \S[^\n\x00-\x1f\x7f-\x9f]*\S\n", outcome.err), outcome.err
        return outcome.err

    return call
