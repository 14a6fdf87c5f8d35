"""Comparisons audit every pair of data and protocol once, keep it in the run folders, and mark their tables."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ownview.cli.main import entry
from ownview.data.splitting.splits import Split
from ownview.evaluation.comparison import Mark
from ownview.evaluation.findings import Finding, by_rule
from ownview.evaluation.named_protocols import PAPER, custom
from ownview.evaluation.probes import audit
from ownview.evaluation.protocol import Protocol
from ownview.runs.findings import audits
from ownview.runs.findings.audits import findings_of
from ownview.runs.run import Run, open_run
from ownview.runs.table import Comparison
from tests.outcome import Outcome


def _write_data(path: Path, seed: int = 0, users: int = 40) -> None:
    random = np.random.default_rng(seed)
    rows = [
        f"{u},{i},{86_400 * t}" for u in range(users) for t, i in enumerate(random.choice(160, size=12, replace=False))
    ]
    path.write_text("\n".join(["user,item,timestamp", *rows]) + "\n", encoding="utf-8")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two models under two protocols, compared on the command line: the data, the runs and the table."""
    place = tmp_path_factory.mktemp("compared")
    _write_data(place / "data.csv")
    arguments = ("compare", "popularity", "fedmf", "--data", "data.csv", "--protocol", "honest", "--protocol", "paper")
    with pytest.MonkeyPatch.context() as patch, (place / "table.json").open("w", encoding="utf-8") as table:
        patch.chdir(place)
        patch.setattr(sys, "argv", ["ownview", *arguments, "--rounds", "2", "--out", "out", "--json"])
        with redirect_stdout(table), pytest.raises(SystemExit, match="0"):
            entry()
    return place


@pytest.fixture
def compared(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Run]:
    """A copy of the runs, with a copy of the data that a test may change."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    for path in Path("out").glob("*/experiment.toml"):
        path.write_text(path.read_text(encoding="utf-8").replace(str(made), str(tmp_path)), encoding="utf-8")
    return [open_run(path.parent) for path in sorted(Path("out").glob("*/result.json"))]


def _count_audits(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    asked: list[str] = []

    def counted(split: Split, protocol: Protocol, **options: Any) -> list[Finding]:
        asked.append(protocol.name)
        return audit(split, protocol, **options)

    monkeypatch.setattr(audits, "audit", counted)
    return asked


def test_the_table_as_json_carries_findings_and_marks(compared: list[Run], tmp_path: Path) -> None:
    table = json.loads((tmp_path / "table.json").read_text(encoding="utf-8"))
    fires = {name: {f["probe"] for f in found if f["fires"]} for name, found in table["findings"].items()}
    assert fires == {"honest": {"new-items"}, "paper": {"leak", "new-items"}}
    assert {(row["protocol"], frozenset(row["warnings"])) for row in table["results"]} == {
        ("honest", frozenset({"new-items"})),
        ("paper", frozenset({"leak", "new-items"})),
    }
    assert {row["mark"] for row in table["results"]} <= {"best", "not told apart", "worse"}
    for row in table["results"]:
        assert (row["against_best"] is None) == (row["mark"] == "best")
        assert row["users"] == 40
        if row["against_best"]:
            assert 0 < row["p_corrected"] <= 1
            assert (row["mark"] == "worse") == (row["p_corrected"] < 0.05)


def test_kept_findings_are_used_and_not_made_again(compared: list[Run], monkeypatch: pytest.MonkeyPatch) -> None:
    asked = _count_audits(monkeypatch)
    before = findings_of(compared, probe=True)
    assert asked == []
    for run in compared:
        (run.folder.path / "audit.json").unlink()
    after = findings_of(compared, probe=True)
    assert sorted(asked) == ["honest", "paper"], "four runs, two pairs of data and protocol"
    assert after == before
    assert all((run.folder.path / "audit.json").is_file() for run in compared)


@pytest.mark.parametrize("content", ["{", '{"probes": 1}', "[]"])
def test_old_and_damaged_findings_are_made_again(
    compared: list[Run], content: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = findings_of(compared)
    for run in compared:
        (run.folder.path / "audit.json").write_text(content, encoding="utf-8")
    asked = _count_audits(monkeypatch)
    assert findings_of(compared, probe=True) == before
    assert sorted(asked) == ["honest", "paper"]


def test_without_the_data_the_folders_tell_and_then_the_rules(
    compared: list[Run], ownview: Callable[..., Outcome]
) -> None:
    measured = findings_of(compared)
    Path("data.csv").unlink()
    assert findings_of(compared, probe=True) == measured
    for run in compared:
        (run.folder.path / "audit.json").unlink()
    findings = findings_of(compared, probe=True)
    assert {name: [f.probe for f in found if f.fires] for name, found in findings.items()} == {
        "honest": [],
        "paper": ["leak"],
    }
    assert "not measured on this data" in findings["paper"][0].sentence
    assert not (compared[0].folder.path / "audit.json").exists()
    assert [f.probe for f in Comparison.of(compared).warnings("paper")] == ["leak"]


def test_changed_data_is_not_taken_for_the_run_s(compared: list[Run]) -> None:
    for run in compared:
        (run.folder.path / "audit.json").unlink()
    _write_data(Path("data.csv"), seed=1)
    assert findings_of(compared, probe=True)["paper"] == tuple(by_rule(PAPER))


def test_rules() -> None:
    found = by_rule(custom({"base": "paper", "selection": "test", "negatives_avoid": "training"}, "x"))
    assert {one.probe: one.fires for one in found} == {"leak": False, "selection": True}
    assert Finding.of(found[0].to_dict()) == found[0]


def test_warnings_stand_above_the_table(compared: list[Run], ownview: Callable[..., Outcome]) -> None:
    arguments = ("compare", "popularity", "fedmf", "--data", "data.csv", "--protocol", "honest", "--protocol", "paper")
    done = ownview(*arguments, "--rounds", "2", "--resume", "out")
    assert done.code == 0, done.err
    words = " ".join(done.out.split())
    assert "! paper, leak: under protocol paper a model that learns nothing scores HR@10" in words
    assert words.index("a model that learns nothing") < words.index("2 rounds, 1 seed")
    assert "paper !" in done.out
    assert "! honest, new-items:" in words
    assert "! honest, leak:" not in words
    assert (
        "≈: cannot be told apart from the column's best, ▲ (signs of the paired differences flipped by person" in words
    )


def test_rows_with_other_users_are_not_paired_and_the_table_says_so(
    compared: list[Run], ownview: Callable[..., Outcome]
) -> None:
    """Popularity's run is kept, the data changes, FedMF is run on what is there now."""
    _write_data(Path("data.csv"), seed=1)
    done = ownview("run", "fedmf", "--data", "data.csv", "--rounds", "2", "--out", "other")
    assert done.code == 0, done.err
    comparison = Comparison.of([open_run(Path("out/popularity-honest-seed0")), open_run(Path("other"))])
    assert {cell.mark for cell in comparison.cells.values()} == {Mark.BEST, Mark.UNPAIRED}
    assert any("it is not compared with it" in note for note in comparison.notes)


def test_seeds_that_ranked_different_users_are_not_paired(compared: list[Run], ownview: Callable[..., Outcome]) -> None:
    _write_data(Path("data.csv"), seed=1)
    done = ownview("run", "popularity", "--data", "data.csv", "--seed", "1", "--out", "other", "--json")
    assert done.code == 0, done.err
    runs = [open_run(Path("out/popularity-honest-seed0")), open_run(Path("other"))]
    comparison = Comparison.of(runs)
    cell = comparison.cells["popularity", "honest", "HR@10"]
    assert cell.mark is Mark.UNPAIRED
    assert cell.mean == pytest.approx(np.mean([run.metrics["HR@10"] for run in runs]))
    assert any("not compared" in note for note in comparison.notes)
    json.dumps(comparison.to_dict(), allow_nan=False)


def test_means_and_intervals_are_those_of_the_runs(compared: list[Run]) -> None:
    comparison = Comparison.of(compared)
    for run in compared:
        cell = comparison.cells[run.experiment.label(), run.experiment.protocol.name, "NDCG@10"]
        assert cell.mean == pytest.approx(run.metrics["NDCG@10"])
        assert [cell.low, cell.high] == pytest.approx(run.result["interval_95"]["NDCG@10"])
