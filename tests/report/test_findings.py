"""Sentences on top of the page: from the protocol's rules, from a run's own audit, from one next to the runs."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from ownview.report.gather import gather


def found_in(*folders: Path) -> dict[str, dict[str, Any]]:
    (protocol,) = gather(folders)["datasets"][0]["protocols"]
    return {one["probe"]: one for one in protocol["findings"]}


def test_the_leak_follows_from_the_protocol(runs: Path) -> None:
    paper, honest = found_in(runs / "fedrap-paper")["leak"], found_in(runs / "fedrap-honest")["leak"]
    assert paper["fires"]
    assert "never drawn as training negatives" in paper["sentence"]
    assert not honest["fires"]
    assert paper["source"] == honest["source"] == "protocol"


def test_a_round_chosen_on_test_is_marked(runs: Path) -> None:
    assert found_in(runs / "chosen-on-test")["selection"]["fires"]
    assert not found_in(runs / "fedrap-paper")["selection"]["fires"]


def test_a_runs_own_findings_are_taken(runs: Path) -> None:
    found = found_in(runs / "fedrap-honest")
    assert found["duplicates"] == {
        "probe": "duplicates",
        "fires": False,
        "sentence": "no held-out pair stands in training",
        "source": "audit.json",
    }
    assert "latest timestamp" in found["time"]["sentence"]


def test_a_measured_leak_next_to_the_runs_replaces_the_rule(runs: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(runs / "fedrap-paper", tmp_path / "fedrap")
    measured = {"probe": "leak", "fires": True, "sentence": "HR@10 0.900 by nothing", "values": {}}
    for protocol in ("paper", "honest"):
        written = {"data": "world", "protocol": protocol, "findings": [{**measured, "fires": protocol == "paper"}]}
        (tmp_path / f"audit-{protocol}.json").write_text(json.dumps(written))
    found = found_in(copy)
    assert found["leak"]["sentence"] == "HR@10 0.900 by nothing"
    assert found["leak"]["fires"]
    assert found["leak"]["source"] == "audit-paper.json"
    assert not any("no audit" in text for text in gather([copy])["about"]["missing"])


def test_an_audit_of_other_data_is_left_alone(runs: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(runs / "fedrap-paper", tmp_path / "fedrap")
    other = {"data": "elsewhere", "protocol": "paper", "findings": [{"probe": "leak", "fires": False, "sentence": "x"}]}
    (tmp_path / "audit.json").write_text(json.dumps(other))
    assert found_in(copy)["leak"]["source"] == "protocol"


def test_findings_that_fire_come_first(runs: Path) -> None:
    (protocol,) = gather([runs / "fedrap-paper"])["datasets"][0]["protocols"]
    fires = [one["fires"] for one in protocol["findings"]]
    assert fires == sorted(fires, reverse=True)
    assert fires[0]
