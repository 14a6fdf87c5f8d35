"""The pages of the ledger say what the committed ledger and attacks say."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from reproduction.commands.render_ledger import NOISE_PAGES
from reproduction.ledger.lines import names
from reproduction.ledger.record import read_record, together
from reproduction.ledger.uploads import settings_asked_for

from ownview.studies.bench.results import write_document
from tests.outcome import Outcome
from tests.reproduction.committed import MACHINE, ROOT, copy_of_committed

STALE = "not what results says; run: python -m reproduction render"


@pytest.fixture
def copy(own_folder: Path) -> Path:
    """Records and pages as they are committed, to be spoilt."""
    return copy_of_committed(own_folder, ("docs/ledger.md", *NOISE_PAGES))


def test_the_committed_pages_are_in_step(copy: Path, reproduction: Callable[..., Outcome]) -> None:
    outcome = reproduction("render", "--check")
    assert (outcome.code, outcome.err) == (0, "")


def test_the_committed_ledger_is_in_step_with_its_runs(copy: Path, reproduction: Callable[..., Outcome]) -> None:
    record = read_record(ROOT / "results" / "ledger.json")
    for one in record.runs.values():
        known = one["provenance"]
        assert known["revision"], one["run"]
        assert "+" not in known["revision"], f"{one['run']}: made from a changed source tree"
        assert known["machine"].keys() - {"engine"} == MACHINE, "no host names"
    assert together([record], names()).runs.keys() == record.runs.keys(), "the ledger asks for them all"
    path = copy / "results" / "ledger.json"
    before = path.read_text(encoding="utf-8")
    path.write_text(before.replace('"verdict": "within .03"', '"verdict": "higher"', 1), encoding="utf-8")
    assert path.read_text(encoding="utf-8") != before
    assert reproduction("render", "--check").err == f"reproduction: results/ledger.json: {STALE}\n"
    assert reproduction("render").code == 0
    assert path.read_text(encoding="utf-8") == before
    (copy / "docs" / "pictures" / "ledger-here.svg").write_text("<svg/>")
    assert "docs/pictures/ledger-here.svg" in reproduction("render", "--check").err


def test_the_committed_attacks_are_in_step_with_their_pages(copy: Path, reproduction: Callable[..., Outcome]) -> None:
    path = copy / "results" / "uploads.json"
    values = json.loads(path.read_text(encoding="utf-8"))
    assert {one["row"] for one in values["attacks"]} <= settings_asked_for(), "none is left of a setting that changed"
    for one in values["attacks"]:
        known = one["provenance"]
        assert known["revision"], one["row"]
        assert "+" not in known["revision"], f"{one['row']}: made from a changed source tree"
        assert known["machine"].keys() - {"engine"} == MACHINE, "no host names"
    one = next(one for one in values["attacks"] if (one["method"], one["privacy"]) == ("pfedrec", "laplace:0.1"))
    one["values"]["AUC"] = 0.123
    write_document(path, values)
    wrong = reproduction("render", "--check").err
    assert "docs/methods/pfedrec.md" in wrong
    assert wrong.endswith(f": {STALE}\n")
