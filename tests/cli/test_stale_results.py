"""Results follow the files they are made of: an edit is never answered with the figures of before."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.faults.conftest import write_world
from tests.outcome import Outcome

METHOD = """
from dataclasses import dataclass
from typing import ClassVar

from ownview import FedEASE


@dataclass(frozen=True)
class Mine(FedEASE):
    name: ClassVar[str] = "mine"
"""
SUITE = "rounds = 1\nprotocols = ['honest']\ndata = ['sent/world.csv']\n[[rows]]\nmethod = 'methods/mine.py'\n"
BENCH = ("bench", "suite.toml", "--trust", "--jobs", "1", "--out", "benched", "--json")


@pytest.fixture(autouse=True)
def _here(own_folder: Path) -> None:
    for folder in ("sent", "methods"):
        (own_folder / folder).mkdir()
    write_world(own_folder / "sent/world.csv")
    (own_folder / "methods/mine.py").write_text(METHOD, encoding="utf-8")
    (own_folder / "suite.toml").write_text(SUITE, encoding="utf-8")


def _runs(outcome: Outcome) -> list[str]:
    assert outcome.code == 0, outcome
    return [one["run"] for one in json.loads(outcome.out)["runs"]]


def _edit(file: str) -> None:
    path = Path(file)
    path.write_text(path.read_text(encoding="utf-8") + "\n# edited\n", encoding="utf-8")


def test_a_suite_runs_an_edited_method_again(ownview: Callable[..., Outcome]) -> None:
    before = _runs(ownview(*BENCH))
    assert _runs(ownview(*BENCH)) == before, "nothing has changed, and nothing is run again"
    _edit("methods/mine.py")
    assert _runs(ownview(*BENCH)) != before


def test_a_suite_runs_again_where_a_file_that_the_method_imports_was_edited(
    ownview: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("methods/own_parts.py").write_text("HALF = 0.5\n", encoding="utf-8")
    Path("methods/mine.py").write_text("import own_parts\n" + METHOD, encoding="utf-8")
    monkeypatch.syspath_prepend("methods")
    before = _runs(ownview(*BENCH))
    _edit("methods/own_parts.py")
    assert _runs(ownview(*BENCH)) != before


def test_a_suite_runs_again_where_a_part_of_a_blend_was_edited(ownview: Callable[..., Outcome]) -> None:
    blend = "method = 'blend'\nsettings = { parts = ['fedease', 'methods/mine.py'] }\n"
    Path("suite.toml").write_text(SUITE.partition("method =")[0] + blend, encoding="utf-8")
    before = _runs(ownview(*BENCH))
    _edit("methods/mine.py")
    assert _runs(ownview(*BENCH)) != before


def test_a_suite_runs_again_where_the_file_of_ratings_was_edited(ownview: Callable[..., Outcome]) -> None:
    before = _runs(ownview(*BENCH))
    world = Path("sent/world.csv")
    world.write_text(world.read_text(encoding="utf-8") + "u1,i59,3,9999\n", encoding="utf-8")
    assert _runs(ownview(*BENCH)) != before


@pytest.mark.parametrize("file", ["methods/mine.py", "sent/world.csv"])
def test_a_comparison_does_not_go_on_with_old_figures(file: str, ownview: Callable[..., Outcome]) -> None:
    asked = ("compare", "methods/mine.py", "popularity", "--data", "sent/world.csv", "--out", "both")
    assert ownview(*asked).code == 0
    assert ownview(*asked, "--resume", "both").code == 0, "nothing has changed"
    if file.endswith(".py"):
        _edit(file)
    else:
        Path(file).write_text(Path(file).read_text(encoding="utf-8") + "u1,i59,3,9999\n", encoding="utf-8")
    refused = ownview(*asked, "--resume", "both")
    assert (refused.code, refused.out) == (2, "")
    assert f"{Path(file).resolve()} has changed since the run was made" in refused.err


def test_a_finished_run_is_not_taken_for_an_edited_method(ownview: Callable[..., Outcome]) -> None:
    assert ownview("run", "methods/mine.py", "--data", "sent/world.csv", "--out", "run").code == 0
    _edit("methods/mine.py")
    assert "has changed" in ownview("run", "methods/mine.py", "--resume", "run").err
    assert ownview("run", "--resume", "run").code == 0, (
        "the folder's own result, which is asked for by the folder alone"
    )


def test_paths_in_a_suite_begin_at_its_file(ownview: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch) -> None:
    """From the suite's folder it ended with "data not found: world.csv", from elsewhere with "no such file"."""
    Path("protocol.toml").write_text("base = 'honest'\nmin_interactions = 5\n", encoding="utf-8")
    Path("suite.toml").write_text(SUITE.replace("'honest'", "'protocol.toml'"), encoding="utf-8")
    here = Path.cwd()
    beside = _runs(ownview(*BENCH))
    monkeypatch.chdir("sent")
    listed = ownview("bench", here / "suite.toml", "--trust", "--list", "--json", "--data", "world.csv")
    assert _runs(listed) == beside
    shutil.move(here / "sent/world.csv", here / "sent/other.csv")
    missing = ownview("bench", here / "suite.toml", "--trust")
    assert (missing.code, missing.out) == (2, "")
    assert f"data not found: {here}/sent/world.csv: no such file" in missing.err


def test_two_files_of_one_name_are_refused(ownview: Callable[..., Outcome]) -> None:
    shutil.copy("sent/world.csv", "methods/world.csv")
    Path("suite.toml").write_text(SUITE.replace("['sent/world.csv']", "['sent/world.csv', 'methods/world.csv']"))
    refused = ownview("bench", "suite.toml", "--trust", "--list")
    assert refused.code == 2
    assert "two of data are called 'world.csv'" in refused.err
