"""What a run keeps of its recommendations: lists of everybody, and some users whom a reader can judge by eye."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ownview.data.datasets.catalog import load
from ownview.evaluation.metrics import coverage
from ownview.evaluation.named_protocols import HONEST, PAPER
from ownview.evaluation.protocol import Protocol
from ownview.runs.experiment import Experiment
from ownview.runs.run import Run, run
from ownview.runs.summaries.sample_lists import SAMPLES
from tests.reports.worlds import HOSTILE, ITEMS, USERS, write_world


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_world(tmp_path_factory.mktemp("data") / "world.csv")


def finished(world: Path, folder: Path, method: str = "fedmf", protocol: Protocol = HONEST, seed: int = 0) -> Run:
    settings = {} if method == "popularity" else {"embedding_size": 4, "local_epochs": 1}
    watch = () if method == "popularity" else ("u3", "u4")
    asked = Experiment(
        method=method, data=str(world), protocol=protocol, rounds=2, seed=seed, settings=settings, watch=watch
    )
    return run(asked, out=folder)


def test_the_lists_are_those_that_recommend_gives(world: Path, tmp_path: Path) -> None:
    done = finished(world, tmp_path / "run")
    tensors, about = done.folder.read_tensors("recommended")
    data = load(str(world))
    assert tensors["lists"].shape == (USERS, 10)
    for sample in about["samples"][:4]:
        expected = [one.title for one in done.recommend(sample["user"])]
        kept = tensors["lists"][sample["row"]].tolist()
        assert [about["titles"][str(item)] for item in kept] == expected == [data.title(item) for item in kept]
    assert coverage(tensors["lists"].numpy().astype(np.int64), ITEMS + 1) == done.metrics["coverage@10"]


def test_popularity_counts_training_rows(world: Path, tmp_path: Path) -> None:
    done = finished(world, tmp_path / "run")
    tensors, _ = done.folder.read_tensors("recommended")
    data = load(str(world))
    assert int(tensors["popularity"].sum()) == len(data) - 2 * USERS
    hostile = data.items.tolist().index(HOSTILE)
    assert int(tensors["popularity"][hostile]) == USERS  # the earliest of everybody's, so never held out


def test_histories_are_in_time_order_and_hold_nothing_held_out(world: Path, tmp_path: Path) -> None:
    _, about = finished(world, tmp_path / "run").folder.read_tensors("recommended")
    data = load(str(world))
    for sample in about["samples"]:
        rows = data.of(data.position_of_user(sample["user"]))
        assert data.timestamp is not None
        when = dict(zip(data.item[rows].tolist(), data.timestamp[rows].tolist(), strict=True))
        times = [when[item] for item in sample["history"]]
        assert times == sorted(times)
        [validation], [test] = sample["validation"], sample["test"]
        assert {*sample["history"], validation, test} == set(when)
        assert len(sample["history"]) == len(when) - 2
        assert max(times) <= when[validation] <= when[test]


def test_watched_users_come_first_and_the_others_are_the_same_in_every_run(world: Path, tmp_path: Path) -> None:
    made = [
        finished(world, tmp_path / "one"),
        finished(world, tmp_path / "two", "popularity"),
        finished(world, tmp_path / "three", protocol=PAPER, seed=5),
    ]
    users = [[sample["user"] for sample in one.folder.read_tensors("recommended")[1]["samples"]] for one in made]
    assert users[0][:2] == users[2][:2] == ["u3", "u4"]
    assert len(users[1]) == SAMPLES
    assert set(users[0]) == set(users[2]) == set(users[1]) | {"u3", "u4"}


def test_watched_clients_tell_what_their_tables_are(world: Path, tmp_path: Path) -> None:
    done = finished(world, tmp_path / "run", "fedrap")
    tensors, about = done.folder.read_tensors("watched")
    assert about["users"] == ["u3", "u4"]
    assert about["positions"] == [load(str(world)).position_of_user(user) for user in about["users"]]
    assert about["roles"] == {"own": "local", "common": "global"}
    merged = tensors["u3.own"] + tensors["u3.common"]
    assert np.allclose(tensors["u3.merged"].numpy(), merged.numpy())


def test_every_table_a_watched_client_received_is_global(world: Path, tmp_path: Path) -> None:
    _, about = finished(world, tmp_path / "run", "gpfedrec").folder.read_tensors("watched")
    assert about["roles"] == {"items": "local", "guide": "global", "mean": "global"}
