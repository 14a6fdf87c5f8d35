"""A run for which there is not enough memory: one line, and the other runs of a batch go on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import ownview as ov
from ownview.base.failures import NO_MEMORY
from ownview.runs.batch import run_each
from ownview.runs.experiment import Experiment
from tests.outcome import Outcome

GREEDY = """
from dataclasses import dataclass, replace

import torch

from ownview.methods.fedmf import FedMF


@dataclass(frozen=True)
class Greedy(FedMF):
    name = "greedy"

    def client(self, world):
        def loss(p, batch, context):
            return torch.empty(2**60)

        client = super().client(world)
        return replace(client, work=replace(client.training, loss=loss))
"""
GREEDY_ONCE = """
from dataclasses import dataclass
from pathlib import Path

import torch

from ownview.methods.fedmf import FedMF

FAILED = Path(__file__).with_name("failed.txt")


@dataclass(frozen=True)
class GreedyOnce(FedMF):
    name = "greedy-once"

    def loss(self, p, batch, context):
        if context.round == 2 and not FAILED.exists():
            FAILED.touch()
            torch.empty(2**60)
        return super().loss(p, batch, context)
"""
QUICK = ("--rounds", "1", "--set", "embedding_size=4", "--set", "local_epochs=1")


@pytest.fixture
def greedy(here: Path) -> Path:
    path = here / "greedy.py"
    path.write_text(GREEDY)
    return path


@pytest.mark.parametrize("engine", ["vector", "loop"])
def test_one_run_says_what_to_do(engine: str, greedy: Path, ownview: Callable[..., Outcome]) -> None:
    outcome = ownview("run", greedy, "--data", "world.csv", *QUICK, "--engine", engine, "--out", "greedy")
    assert outcome.code == 2
    assert outcome.err.splitlines()[-1] == f"ownview: {NO_MEMORY}"


@pytest.mark.parametrize("jobs", [1, 2])
def test_other_runs_go_on(jobs: int, greedy: Path, here: Path) -> None:
    ov.trust(greedy)
    given = {"data": str(here / "world.csv"), "rounds": 1, "settings": {"embedding_size": 4, "local_epochs": 1}}
    names = (str(greedy), "fedmf", "pfedrec")
    tasks = [(Experiment.from_dict({**given, "method": name}), here / "runs" / Path(name).stem) for name in names]
    failures: dict[Path, str] = {}
    failed = run_each(tasks, jobs=jobs, memory="auto", data_dir=None, on_failure=failures.__setitem__)
    assert failures == {tasks[0][1]: NO_MEMORY}
    assert failed == {tasks[0][1]}
    assert [(folder / "result.json").is_file() for _, folder in tasks] == [False, True, True]


def test_what_lacks_memory_beside_others_goes_on_when_they_are_through(here: Path) -> None:
    path = here / "greedy_once.py"
    path.write_text(GREEDY_ONCE)
    ov.trust(path)
    given = {"data": str(here / "world.csv"), "rounds": 3, "settings": {"embedding_size": 4, "local_epochs": 1}}
    names = (str(path), "fedmf", "pfedrec")
    tasks = [(Experiment.from_dict({**given, "method": name}), here / "runs" / Path(name).stem) for name in names]
    heard: list[tuple[Path, int]] = []
    failed = run_each(
        tasks, jobs=2, memory="auto", data_dir=None, on_round=lambda folder, number, _: heard.append((folder, number))
    )
    assert failed == set()
    assert path.with_name("failed.txt").exists()
    assert [(folder / "result.json").is_file() for _, folder in tasks] == [True, True, True]
    rounds = [number for folder, number in heard if folder == tasks[0][1]]
    assert rounds == [1, 2, 3], "no round twice: it went on from its checkpoint"
    assert heard.index((tasks[0][1], 2)) > max(heard.index((folder, 3)) for _, folder in tasks[1:])
