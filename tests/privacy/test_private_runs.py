"""A run under a budget says so: in privacy.json, in its result, on the command line and in tables."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from ownview import FederationOptions
from ownview.runs.experiment import Experiment
from ownview.runs.files.folder import RunFolder
from ownview.runs.run import open_run, run
from ownview.runs.table import Comparison
from ownview.testing.worlds import small_world
from tests.outcome import Outcome


def _run(method: str, privacy: str, out: Path, clients: str = "all") -> RunFolder:
    options = FederationOptions(clients=clients, privacy=privacy)
    asked = Experiment(method=method, data="world", rounds=3, federation=options)
    return run(asked, data=small_world().data, out=out).folder


def test_privacy_json_tells_the_whole_budget(tmp_path: Path) -> None:
    folder = _run("fedease", "central:epsilon=8", tmp_path / "run")
    note = folder.read_note("privacy")
    assert (note["mode"], note["epsilon"], note["delta"], note["rounds"]) == ("central", 8.0, 1e-5, 2)
    assert note["epsilon_composed"] == pytest.approx(8.0, abs=1e-3)
    first, second = note["noise"]
    assert first["multiplier"] / second["multiplier"] == pytest.approx(3.0)
    assert first["epsilon_alone"] < second["epsilon_alone"] < 8
    assert note["divided_by"] == 23
    assert "the number of users" in note["public"]
    assert any("validation" in one for one in note["not_covered"])
    result = folder.read_result()
    assert result["privacy"]["epsilon"] == 8.0
    assert result["notes"][0] == result["privacy"]["headline"] or result["privacy"]["headline"] in result["notes"]


def test_rows_of_other_budgets_are_other_rows_of_a_table(tmp_path: Path) -> None:
    folders = [_run("fedease", f"central:epsilon={e}", tmp_path / str(e)) for e in (1, 8)]
    made = Comparison.of([open_run(folder.path) for folder in folders], {})
    assert made.methods == ("fedease, central epsilon 1", "fedease, central epsilon 8")
    assert any("epsilon 8 and delta 1e-05 for every user" in note for note in made.notes)


def test_a_delta_above_one_over_n_is_noted_and_the_headline_printed(
    ownview: Callable[..., Outcome], tmp_path: Path
) -> None:
    words = ("run", "fedease", "--privacy", "central:epsilon=8,delta=0.01", "--out", tmp_path / "run")
    done = ownview(*words)
    assert (done.code, done.err) == (0, "")
    assert "private: central noise, epsilon 8 and delta 0.01 for every user over 2 rounds" in done.words
    assert "delta 0.01 is above 1 / 1200" in done.words
    assert json.loads((tmp_path / "run" / "privacy.json").read_text())["epsilon"] == 8.0


def test_methods_that_train_share_the_budget_among_their_rounds(tmp_path: Path) -> None:
    note = _run("fedmf", "local:epsilon=50,clip=1", tmp_path / "run", clients="turns:10").read_note("privacy")
    assert note["rounds"] == 3
    assert note["per_user"]["rounds_at_most"] == 1, "three rounds are one pass"
    assert note["epsilon_composed"] == pytest.approx(50.0, abs=1e-3)
