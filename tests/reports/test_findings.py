"""Sentences on top of the page: from the protocol's rules, from a run's own audit, from one next to the runs."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from ownview.reports.gather import gather, render
from ownview.runs.findings.audits import findings_of
from ownview.runs.findings.exposure import exposures
from ownview.runs.run import open_run


def _copied(run: Path, to: Path) -> Path:
    """A run moved with what lies beside it: it names its data by a relative path."""
    shutil.copytree(run, to)
    shutil.copy(run.parent.parent / "world.csv", to.parent.parent / "world.csv")
    return to


def found_in(*folders: Path) -> dict[str, dict[str, Any]]:
    (protocol,) = gather(folders)["datasets"][0]["protocols"]
    return {one["probe"]: one for one in protocol["findings"]}


def test_the_leak_follows_from_the_protocol(runs: Path) -> None:
    paper, honest = found_in(runs / "popularity-paper")["leak"], found_in(runs / "popularity-honest")["leak"]
    assert paper["fires"]
    assert "never serve as training negatives" in paper["sentence"]
    assert not honest["fires"]
    assert paper["source"] == honest["source"] == "protocol"


def test_a_round_chosen_on_test_is_marked(runs: Path) -> None:
    assert found_in(runs / "chosen-on-test")["selection"]["fires"]
    assert not found_in(runs / "popularity-paper")["selection"]["fires"]


def test_findings_of_a_comparison_replace_the_rules(runs: Path, tmp_path: Path) -> None:
    copy = _copied(runs / "popularity-paper", tmp_path / "runs" / "popularity")
    assert "no audit.json" in " ".join(gather([copy])["about"]["missing"])
    findings_of([open_run(copy)], probe=True)
    found = found_in(copy)
    assert found["leak"]["fires"]
    assert "HR@10" in found["leak"]["sentence"]
    assert {"duplicates", "time"} <= set(found)
    assert {one["source"] for one in found.values()} == {"audit.json"}
    assert "no audit.json" not in " ".join(gather([copy])["about"]["missing"])


def test_an_audit_of_other_data_is_left_alone(runs: Path, tmp_path: Path) -> None:
    copy = _copied(runs / "popularity-paper", tmp_path / "runs" / "popularity")
    findings_of([open_run(copy)], probe=True)
    written = json.loads((copy / "audit.json").read_text())
    (copy / "audit.json").write_text(json.dumps({**written, "data": "another fingerprint"}))
    assert found_in(copy)["leak"]["source"] == "protocol"


def test_findings_that_fire_come_first(runs: Path) -> None:
    (protocol,) = gather([runs / "popularity-paper"])["datasets"][0]["protocols"]
    fires = [one["fires"] for one in protocol["findings"]]
    assert fires == sorted(fires, reverse=True)
    assert fires[0]


def test_what_one_upload_gives_away_stands_on_the_page_where_a_comparison_looked(runs: Path, tmp_path: Path) -> None:
    federated = next(path.parent for path in sorted(runs.glob("*/cost.json")))
    copy = _copied(federated, tmp_path / "runs" / "one")
    assert gather([copy])["datasets"][0]["attacks"] == []
    label = open_run(copy).experiment.label()
    finding = exposures([open_run(copy)], probe=True)[label]
    (shown,) = gather([copy])["datasets"][0]["attacks"]
    assert (shown["sentence"], shown["fires"], shown["privacy"]) == (finding.sentence, finding.fires, "none")
    assert finding.sentence in render(gather([copy]))
