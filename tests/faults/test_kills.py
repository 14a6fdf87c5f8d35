"""Commands killed for good at a random write: they go on, and end as if nothing had been.

The moment is the n-th time that a file or folder is made, written, renamed or removed, so a seed means the same moment
on every machine.
"""

from __future__ import annotations

import json
import random
import shutil
import signal
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from safetensors.torch import load_file

from tests.apart import Apart, killed_at_moment
from tests.faults.conftest import write_world
from tests.outcome import Outcome

SUITE = """rounds = 2
data = ["world.csv"]
[[rows]]
method = "popularity"
[[rows]]
method = "fedmf"
settings = { embedding_size = 4, local_epochs = 1 }
"""
SMALL = ("--rounds", "3", "--set", "embedding_size=4", "--set", "local_epochs=1")


class Work(NamedTuple):
    """begin: the command; go_on: the same, or how it says that it goes on, once `made` is there."""

    begin: tuple[str, ...]
    go_on: tuple[str, ...]
    made: str
    keeps: tuple[str, ...]


_RUN = ("users.csv", "model.safetensors", "result.json")
_FIT = ("fit", "fedmf", "--data", "world.csv", *SMALL, "--out", "f")
_COMPARE = ("compare", "popularity", "fedmf", "--data", "world.csv", *SMALL, "--resume", "c")
_TUNE = ("tune", "fedease", "--data", "world.csv", "--trials", "3", "--resume", "t")
_START = ("start", "world.csv", "--method", "popularity", "--method", "fedease", "--out", "s")
WORKS = {
    "run": Work(
        ("run", "fedmf", "--data", "world.csv", *SMALL, "--out", "r"), ("run", "--resume", "r"), "r/experiment.toml",
        tuple(f"r/{name}" for name in _RUN),
    ),
    "fit": Work(_FIT, ("fit", "--resume", "f"), "f/experiment.toml", ("f/model.safetensors", "f/result.json")),
    "compare": Work(_COMPARE, _COMPARE, "", tuple(f"c/fedmf-honest-seed0/{name}" for name in _RUN)),
    "bench": Work(("bench", "suite.toml", "--jobs", "1"), ("bench", "suite.toml", "--jobs", "1"), "",
                  ("runs/bench/suite/results.json",)),
    "tune": Work(_TUNE, _TUNE, "", ("t/best.toml", "t/trials.jsonl")),
    "start": Work(_START, _START, "", ("s/lists.csv", "s/comparison/fedease/users.csv", "s/model/model.safetensors")),
}  # fmt: skip


def plain(path: Path) -> object:
    """What a file says, without durations, memory and the folder it was made in."""
    if path.suffix == ".safetensors":
        return {name: value.tolist() for name, value in load_file(path).items()}
    if path.suffix == ".jsonl":
        return [_timeless(json.loads(line)) for line in path.read_text().splitlines()]
    return _timeless(json.loads(path.read_text())) if path.suffix == ".json" else path.read_text()


def _timeless(value: Any) -> Any:
    if isinstance(value, dict):
        left = ("seconds", "peak_memory_bytes", "cost", "provenance", "settings_from")
        return {name: _timeless(inner) for name, inner in value.items() if name not in left}
    return [_timeless(inner) for inner in value] if isinstance(value, list) else value


def process(work: Work, kill_at: int) -> tuple[int, str]:
    """A command in a process of its own; its code and what it wrote to stderr."""
    one = Apart(*work.begin, environment={"OWNVIEW_PROGRESS": "off"}, within=partial(killed_at_moment, kill_at))
    return one.wait(), one.said()


class Whole(NamedTuple):
    """What comes out where no signal kills a command, how many moments it has, and the folder it works in."""

    files: dict[str, object]
    moments: int
    folder: Path


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Whole]:
    """By command; made when it is asked for."""
    found: dict[str, Whole] = {}

    def of(name: str) -> Whole:
        if name not in found:
            folder = tmp_path_factory.mktemp(name)
            with pytest.MonkeyPatch.context() as patch:
                patch.chdir(folder)
                _furnish()
                code, output = process(WORKS[name], 0)
                assert code == 0, output
                files = {file: plain(Path(file)) for file in WORKS[name].keeps}
            found[name] = Whole(files, int(output.rpartition("moments ")[2]), folder)
        return found[name]

    return of


def _furnish() -> None:
    """This folder with the data and the suite alone: names of folders are in what some commands write."""
    for path in Path().iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    write_world(Path("world.csv"))
    Path("suite.toml").write_text(SUITE)


@pytest.fixture
def kill(
    whole: Callable[[str], Whole], ownview: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch
) -> Callable[[str, int], None]:
    """Kill a command at a moment that its seed draws, go on, and hold what comes out against the whole."""
    monkeypatch.delenv("OWNVIEW_DATA", raising=False)

    def check(name: str, seed: int) -> None:
        work, (expected, moments, folder) = WORKS[name], whole(name)
        monkeypatch.chdir(folder)
        _furnish()
        moment = random.Random(f"{name} {seed}").randint(1, moments)
        code, output = process(work, moment)
        assert code == -signal.SIGKILL, f"moment {moment} of {moments}: {output}"
        begun = bool(work.made) and Path(work.made).exists()
        outcome = ownview(*(work.go_on if begun else work.begin))
        assert outcome.code == 0, f"moment {moment} of {moments}: {outcome.err}"
        for file, content in expected.items():
            assert plain(Path(file)) == content, f"moment {moment} of {moments}: {file}"

    return check


@pytest.mark.parametrize("name", WORKS)
def test_a_command_that_was_killed_goes_on(name: str, kill: Callable[[str, int], None]) -> None:
    for seed in range(2 if name in ("run", "compare", "bench", "start") else 1):
        kill(name, seed)


@pytest.mark.slow
@pytest.mark.parametrize("name", WORKS)
def test_a_hundred_kills(name: str, kill: Callable[[str, int], None]) -> None:
    for seed in range(1, 17):
        kill(name, seed)
