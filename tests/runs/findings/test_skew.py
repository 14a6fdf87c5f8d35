"""How far aggregation drives watched clients off the path they take alone."""

from __future__ import annotations

import itertools
import math
from pathlib import Path

import pytest

from ownview import skew
from ownview.base.errors import SettingError
from ownview.runs.experiment import Experiment
from ownview.runs.run import Run, run
from tests.reports.worlds import write_world

ROUNDS = 4
WATCHED = ("u3", "u4")


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_world(tmp_path_factory.mktemp("data") / "world.csv")


def aggregating(world: Path, start: int | None, watch: tuple[str, ...] = WATCHED) -> Run:
    """From round `start` on, 0 for never; None is the method itself."""
    late = [] if start is None else [{"name": "late-aggregation", "settings": {"start": start}}]
    described = {
        "method": "fedmf", "data": str(world), "rounds": ROUNDS, "plugins": late, "watch": list(watch),
        "settings": {"embedding_size": 4, "optimizer": "sgd", "learning_rate": 1.0},
    }  # fmt: skip
    return run(Experiment.from_dict(described))


def updates(one: Run, user: str) -> list[list[float]]:
    path = [line["watched"][user]["user"] for line in one.rounds]
    return [[b - a for a, b in zip(*pair, strict=True)] for pair in itertools.pairwise(path)]


def test_it_is_the_length_of_the_difference_over_the_length_alone(world: Path) -> None:
    together, alone = aggregating(world, None), aggregating(world, 0)
    found = skew(together, alone)
    assert set(found) == set(WATCHED)
    for user in WATCHED:
        pairs = list(zip(updates(together, user), updates(alone, user), strict=True))
        assert found[user] == pytest.approx([math.dist(d, e) / math.hypot(*e) for d, e in pairs])
        assert len(pairs) == ROUNDS - 1
        assert min(found[user]) > 0


def test_there_is_none_until_aggregation_starts(world: Path) -> None:
    alone, late = aggregating(world, 0), aggregating(world, 3)
    for path in skew(late, alone).values():
        assert path[0] == 0  # round 2
        assert min(path[1:]) > 0
    assert all(path == [0] * (ROUNDS - 1) for path in skew(alone, alone).values())


def test_runs_that_watch_others_or_nobody_are_refused(world: Path) -> None:
    both = aggregating(world, 0)
    with pytest.raises(SettingError, match="user u4 was not watched; watch the same users in both runs"):
        skew(both, aggregating(world, 0, watch=("u3",)))
    with pytest.raises(SettingError, match="of no client was watched; run it with --watch USER"):
        skew(both, aggregating(world, 0, watch=()))
