"""`python -m reproduction run` as a person types it, on small data under the papers' names."""

from __future__ import annotations

import json
import re
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ownview.runs.files.folder import RunFolder
from tests.outcome import Outcome, signalled
from tests.reproduction.worlds import store_world

TABLE_1 = ("run", "pfedrec", "--table", "1", "--data", "ml-100k")
PLACE = ("--jobs", "1", "--data-dir", "store")


@pytest.fixture(autouse=True)
def _world(own_folder: Path) -> None:
    store_world(own_folder / "store", "ml-100k")


def report(folder: str) -> dict[str, Any]:
    return dict(json.loads(Path(folder, "report.json").read_text()))


def line(found: dict[str, Any], method: str, data: str = "ml-100k") -> dict[str, Any]:
    (only,) = [one for one in found["lines"] if (one["method"], one["data"]) == (method, data)]
    return dict(only)


def test_a_quick_look_is_marked_everywhere_and_kept_apart(reproduction: Callable[..., Outcome]) -> None:
    outcome = reproduction(*TABLE_1, "--quick", *PLACE)
    assert (outcome.code, outcome.err) == (0, "")
    warning = "QUICK LOOK: 3 rounds and 1 seed only. These figures reproduce nothing."
    assert outcome.words.count(warning) == 2
    assert outcome.out.endswith("report.md, report.json and every run are in runs/reproduce/pfedrec/quick\n")
    assert re.search(r"PFedRec +0\.7162 / 0\.4344 +0\.\d{4} / 0\.\d{4} +-0\.\d{4} / -0\.\d{4} +0\.\d{4} /", outcome.out)
    assert "12 published figures: 12 measured." in outcome.words

    found = report("runs/reproduce/pfedrec/quick")
    assert (found["quick"], found["warning"], found["seeds"]) == (True, warning, [0])
    row = line(found, "PFedRec")
    assert (row["protocol"], row["experiment"]["rounds"], row["experiment"]["settings"]["embedding_size"]) == (
        "paper", 3, 32,
    )  # fmt: skip
    run = Path("runs/reproduce/pfedrec/quick/runs", row["runs"][0])
    result = json.loads((run / "result.json").read_text())
    (hr, _) = row["figures"]
    reached = result["test"]["HR@10"]
    assert hr["here"] == {"mean": reached, "standard_deviation": None, "values": [reached]}
    assert hr["difference"] == pytest.approx(reached - 0.7162)
    assert row["chosen_rounds"] == [result["chosen_round"]]

    text = Path("runs/reproduce/pfedrec/quick/report.md").read_text()
    assert f"> **{warning}**" in text
    assert f"| PFedRec | 0.7162 / 0.4344 | {reached:.4f} / {result['test']['NDCG@10']:.4f} |" in text
    assert "Made by `python -m reproduction run pfedrec --table 1 --data ml-100k --quick --jobs 1` with Ownview" in text
    assert "- `paper`: repeats=keep, " in text
    assert "  - **leak**: under protocol paper held-out items never serve as training negatives" in text
    assert "leak: under protocol paper held-out items never serve" in outcome.words
    assert {name: [one["probe"] for one in findings] for name, findings in found["findings"].items()} == {
        "paper": ["leak"]
    }


def test_seeds_honest_and_json(reproduction: Callable[..., Outcome]) -> None:
    arguments = (*TABLE_1, "--rounds", "2", "--seeds", "2", *PLACE, "--out", "mine")
    outcome = reproduction(*arguments, "--json")
    assert (outcome.code, outcome.err) == (0, "")
    found = json.loads(outcome.out)
    assert found == {**report("mine"), "folder": "mine"}
    assert found["warning"] == "REDUCED: 2 rounds instead of the paper's."
    (hr, _) = line(found, "FedMF")["figures"]
    assert (len(hr["here"]["values"]), len(hr["honest"]["values"])) == (2, 2)
    assert sorted(found["protocols"]) == ["honest", "paper"]
    assert len(list(Path("mine/runs").iterdir())) == 24
    assert " ± " in Path("mine/report.md").read_text()

    before = {path: path.stat().st_mtime_ns for path in Path("mine/runs").glob("*/*")}
    assert json.loads(reproduction(*arguments, "--json").out) == found
    assert {path: path.stat().st_mtime_ns for path in Path("mine/runs").glob("*/*")} == before

    plain = reproduction(*TABLE_1, "--rounds", "2", "--seeds", "1", *PLACE, "--out", "plain", "--no-honest")
    assert plain.code == 0
    assert all(one["honest"] is None for row in report("plain")["lines"] for one in row["figures"])
    assert {path.name for path in Path("plain/runs").iterdir()} < {path.name for path in Path("mine/runs").iterdir()}


def test_absent_data_is_said_row_by_row_and_the_rest_goes_on(reproduction: Callable[..., Outcome]) -> None:
    outcome = reproduction("run", "PFedRec", "--table", "2", "--quick", "--no-honest", *PLACE)
    assert outcome.code == 0
    assert "FedMF+DualPer (ml-1m: get it with: ownview data fetch ml-1m)" in outcome.words
    found = report("runs/reproduce/pfedrec/quick")
    assert line(found, "FedMF+DualPer")["status"] == "measured"
    assert line(found, "FedMF+DualPer", "ml-1m")["status"] == "data not found"


def test_nothing_to_run_is_an_error_that_names_what_is_missing(reproduction: Callable[..., Outcome]) -> None:
    outcome = reproduction("run", "pfedrec", "--table", "1", "--data", "ml-1m", *PLACE)
    assert outcome == Outcome(
        2,
        "",
        "reproduction: nothing of PFedRec can be run here: data not found: ml-1m: get it with: "
        "ownview data fetch ml-1m\n",
    )
    assert not Path("runs").exists()


@pytest.mark.parametrize(
    ("arguments", "facts"),
    [
        ("", ["name a paper: PFedRec, FedRAP, PFedCLR, FedEM, PLGC", "--list"]),
        ("pfedrek", ["unknown paper: 'pfedrek'; did you mean 'pfedrec'?", "choose from PFedRec, FedRAP"]),
        ("pfedrec --table 12", ["unknown table of PFedRec: '12'", "choose from 1, 2 plug-in"]),
        ("pfedrec --data ml100k", ["unknown data of PFedRec: 'ml100k'; did you mean 'ml-100k'?", "amazon-instant"]),
        ("pfedrec --data-dir nowhere", ["nowhere: no such folder of datasets (--data-dir)"]),
    ],
)  # fmt: skip
def test_bad_names(arguments: str, facts: list[str], reproduction: Callable[..., Outcome]) -> None:
    outcome = reproduction("run", *arguments.split())
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err.count("\n") == 1
    assert all(fact in outcome.err for fact in facts), outcome.err


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_a_row_that_fails_does_not_take_the_others_along(jobs: str, reproduction: Callable[..., Outcome]) -> None:
    store_world(Path("store"), "ml-1m", items=40)  # too few for 99 candidates
    outcome = reproduction("run", "pfedrec", "--table", "2", "--quick", *PLACE, "--jobs", jobs)
    assert outcome.code == 3
    assert outcome.err == "reproduction: 3 of 12 runs failed; the report says which and why\n"
    found = report("runs/reproduce/pfedrec/quick")
    assert line(found, "FedMF+DualPer")["status"] == "measured"
    failed = line(found, "FedMF+DualPer", "ml-1m")
    assert failed["status"] == "failed"
    assert "expected at least 99" in failed["reason"]
    assert "FedMF+DualPer (ml-1m: " in outcome.words


def test_a_stopped_reproduction_goes_on_by_the_same_command(reproduction: Callable[..., Outcome]) -> None:
    arguments = (*TABLE_1, "--rounds", "3", "--seeds", "1", *PLACE, "--out", "mine", "--no-honest")
    with signalled(signal.SIGINT, RunFolder, "append_round", times=5):
        stopped = reproduction(*arguments)
    assert stopped == Outcome(130, "", "reproduction: stopped with 1 of 6 runs finished; the same command goes on\n")
    assert reproduction(*arguments).code == 0
    assert line(report("mine"), "PFedRec")["status"] == "measured"


def test_list_tells_papers_and_tables(reproduction: Callable[..., Outcome]) -> None:
    found = json.loads(reproduction("run", "--list", "--json").out)["tables"]
    assert sum(one["figures"] for one in found) == 1083
    assert {one["paper"] for one in found} == {"PFedRec", "FedRAP", "PFedCLR", "FedEM", "PLGC"}
    rows = {(one["paper"], one["table"]): one for one in found}
    assert rows["PFedRec", "1"]["figures"] == 48
    assert all(one["known_methods"] <= one["with_settings"] <= one["figures"] for one in found)
    assert rows["PFedRec", "6 embedding size"]["known_methods"] == 24
    table = reproduction("run", "--list")
    assert "8 full ranking" in table.out
    assert "1083 figures" in table.words
    assert "FedEM" not in reproduction("run", "pfedrec", "--list").out
    one = json.loads(reproduction("run", "fedrap", "--table", "3-4", "--data", "ml-1m", "--list", "--json").out)[
        "tables"
    ]
    assert [(row["table"], row["data"]) for row in one] == [("3-4", ["ml-1m"])]
    assert "name the paper" in reproduction("run", "--table", "1", "--list").err


def test_the_list_of_all_says_what_is_not_counted(reproduction: Callable[..., Outcome]) -> None:
    outcome = reproduction("run", "--all", "--list", *PLACE)
    assert "Runs on data that is not here are not counted: " in outcome.words
    assert "filmtrust" in outcome.words
