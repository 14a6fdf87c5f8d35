"""Runs with workers that are cut off in mid-round go on with as many workers, with fewer, or with none."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from ownview.cluster.workers import Workers as AtWorkers
from ownview.engine.machine import Workers
from ownview.round.conduct import Round, Uploads
from ownview.runs.experiment import Experiment
from ownview.runs.run import resume, run
from tests.apart import killed

pytestmark = pytest.mark.xdist_group("workers")  # two test processes would start Ray twice
ROUNDS = 4
TEAMS = {"none": None, "one": 1, "two": 2}


class CutError(Exception):
    """Stands for whatever ends a process in mid-round."""


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path, chance = tmp_path_factory.mktemp("data") / "world.csv", random.Random(1)
    rows = [f"u{user},i{item},{place}" for user in range(16) for place, item in enumerate(chance.sample(range(40), 8))]
    path.write_text("\n".join(["user,item,timestamp", *rows]) + "\n", encoding="utf-8")
    return path


def _experiment(world: Path) -> Experiment:
    given = {"method": "pfedrec", "settings": {"embedding_size": 4}, "federation": {"clients": "0.5"}, "device": "cpu"}
    return Experiment.from_dict({**given, "data": str(world), "rounds": ROUNDS})


def _assert_same_model(found: Path, expected: Path) -> None:
    models = [load_file(folder / "model.safetensors") for folder in (found, expected)]
    assert models[0].keys() == models[1].keys()
    for name, value in models[1].items():
        assert torch.allclose(models[0][name].double(), value.double(), atol=1e-4), name
    assert len((found / "rounds.jsonl").read_text(encoding="utf-8").splitlines()) == ROUNDS


def test_cut_off_in_mid_round_and_resumed_by_others(
    two: Workers, world: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Workers have trained and summed the third round; the server has not combined it."""
    expected, cut = tmp_path / "whole", tmp_path / "cut"
    run(_experiment(world), out=expected)
    ask = AtWorkers.ask

    def cut_off(where: AtWorkers, going: Round) -> Uploads:
        yield from ask(where, going)
        if going.number == 3:
            raise CutError

    monkeypatch.setattr(AtWorkers, "ask", cut_off)
    with pytest.raises(CutError):
        run(_experiment(world), out=cut, workers=two)
    monkeypatch.undo()
    assert (cut / "checkpoint.safetensors").exists()
    for name, count in TEAMS.items():
        again = tmp_path / name
        shutil.copytree(cut, again)
        resume(again, workers=None if count is None else Workers(count))
        _assert_same_model(again, expected)


@pytest.mark.slow
def test_killed_for_good_in_mid_round_and_resumed_by_others(two: Workers, world: Path, tmp_path: Path) -> None:
    """The process that runs the experiment dies with all its workers; shards that it left behind disturb nobody."""
    expected, cut, shards = tmp_path / "whole", tmp_path / "cut", tmp_path / "shards"
    experiment = _experiment(world)
    run(experiment, out=expected)
    config = tmp_path / "experiment.toml"
    config.write_text(experiment.to_toml(), encoding="utf-8")
    killed(
        AtWorkers, "_summed", 3,
        "run", "--config", config, "--out", cut, "--workers", "2", "--shards", shards,
    )  # fmt: skip
    assert len((cut / "rounds.jsonl").read_text(encoding="utf-8").splitlines()) == 2
    assert list(shards.iterdir())
    for name, count in TEAMS.items():
        again = tmp_path / name
        shutil.copytree(cut, again)
        resume(again, workers=None if count is None else Workers(count, folder=shards))
        _assert_same_model(again, expected)
