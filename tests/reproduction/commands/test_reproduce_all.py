"""`python -m reproduction run --all` as a person types it, on a slice: small data under a paper's name."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from reproduction.ledger.record import read_record
from reproduction.ledger.uploads import settings_asked_for

from ownview.runs.files.folder import RunFolder
from tests.outcome import Outcome, signalled
from tests.reproduction.worlds import store_world

SLICE = ("run", "--all", "--data", "ml-100k", "--data-dir", "store", "--jobs", "1")
BOOKS = ("run", "--all", "--stage", "unseen", "--seeds", "1", "--data-dir", "store", "--jobs", "1")


@pytest.fixture(autouse=True)
def _world(own_folder: Path) -> None:
    store_world(own_folder / "store", "ml-100k")


def runs_in(path: str) -> dict[str, Any]:
    return dict(read_record(Path(path)).runs)


def test_a_quick_look_goes_on_where_it_was_stopped_and_runs_nothing_twice(reproduction: Callable[..., Outcome]) -> None:
    arguments = (*SLICE, "--quick", "--part", "5/80", "--out", "mine")
    with signalled(signal.SIGINT, RunFolder, "append_round", 5):
        stopped = reproduction(*arguments)
    assert stopped.code == 128 + signal.SIGINT
    assert "stopped with 1 of " in stopped.err
    assert len(runs_in("mine/quick/ledger.json")) == 1, "recorded as soon as it had finished"
    outcome = reproduction(*arguments)
    assert (outcome.code, outcome.err) == (0, "")
    found = runs_in("mine/quick/ledger.json")
    assert f"{len(found)} of {len(found)} runs finished" in outcome.words
    assert "SHORTENED: 3 rounds instead of the papers'. This reproduces nothing." in outcome.words
    assert all(one["rounds"] <= 3 for one in found.values())
    before = Path("mine/quick/ledger.json").stat().st_mtime_ns
    assert reproduction(*arguments).code == 0
    assert Path("mine/quick/ledger.json").stat().st_mtime_ns == before
    summary = json.loads(reproduction(*arguments, "--json").out)
    assert summary["runs"] == {"asked_for": len(found), "finished": len(found)}


def test_parts_of_several_machines_are_put_together(reproduction: Callable[..., Outcome]) -> None:
    plan = json.loads(reproduction(*BOOKS, "--list", "--json").out)
    first, second = (one["run"] for one in plan["runs"][:2])
    for machine, part in (("a", "1/16"), ("b", "2/16")):
        outcome = reproduction(*BOOKS, "--part", part, "--out", machine, "--lean")
        assert (outcome.code, outcome.err) == (0, "")
        assert not list(Path(machine, "runs").iterdir()), "folders go once their runs are recorded"
    arguments = (*BOOKS, "--gather", "--record", "results", "--take", "a/ledger.json", "--take", "b/ledger.json")
    outcome = reproduction(*arguments, "--out", "c")
    assert outcome.code == 0
    assert "2 of 16 runs finished" in outcome.words
    assert "0 of 1083 published figures have been run" in outcome.words
    assert set(runs_in("results/ledger.json")) == {first, second}
    written = json.loads(Path("results/ledger.json").read_text())
    assert len(written["figures"]) == 1083
    assert "ml-1m" in written["data_not_found"]
    # What is recorded is not run again, wherever the folders are.
    assert reproduction(*BOOKS, "--part", "1/16", "--record", "results", "--out", "d").code == 0
    assert not Path("d/runs").exists()


def test_what_does_not_fit_or_takes_too_long_is_told(reproduction: Callable[..., Outcome]) -> None:
    outcome = reproduction(*BOOKS, "--part", "16/16", "--memory", "1kb", "--out", "small", "--json")
    assert outcome.code == 3
    assert "1 of 1 runs failed; small/ledger.json says which and why" in outcome.err
    (left,) = json.loads(outcome.out)["left"]
    assert left["kind"] == "too large"
    assert "standing values need" in left["reason"]
    assert reproduction(*BOOKS, "--part", "1/16", "--out", "small").code == 0, "tells how long work takes"
    outcome = reproduction(*BOOKS, "--part", "16/16", "--out", "small", "--longest", "0.0000001")
    assert outcome.code == 0
    assert "hours on cpu, by what like runs took" in outcome.words
    (noted,) = read_record(Path("small/ledger.json")).left.values()
    assert (noted["run"], noted["kind"], noted["seconds"] > 0) == (left["run"], "too large", True)


def test_the_plan_can_be_seen(reproduction: Callable[..., Outcome]) -> None:
    stages = {one["stage"]: one for one in json.loads(reproduction(*SLICE, "--list", "--json").out)["stages"]}
    assert stages["main"]["runs"] > stages["twins"]["runs"] > 0
    assert stages["unseen"]["runs"] == 0, "--data leaves the books out"
    assert stages["main"]["seconds_left_one_by_one"] is None
    table = reproduction(*SLICE, "--list").words
    assert "main tables as their papers measured, seed 0" in table
    assert "not known yet" in table
    one = json.loads(reproduction("run", "FedEM", *SLICE[1:], "--list", "--json").out)
    assert len(one["runs"]) < sum(stage["runs"] for stage in stages.values())
    assert not Path("runs").exists()


@pytest.mark.parametrize(
    ("arguments", "facts"),
    [
        ("--all --part 3/2", ["--part 3/2: expected K/N"]),
        ("--all --stage mane", ["--stage mane: no such stage", "main"]),
        ("--all --data ml100k", ["--data ml100k", "ml-100k"]),
        ("--all --table 1", ["--table: with --all, name the paper whose table it is"]),
        ("--all --attack --device gpu", ["gpu"]),
        ("--all --attack --quick", ["--quick: not with --attack"]),
        ("--all --attack --data ml-10k", ["did you mean 'ml-100k'?"]),
        ("plgc --all --attack", ["no row with noise on uploads among these"]),
        ("pfedrec --noise", ["--noise: only with --all"]),
        ("--all --quick --record results", ["--record: not with --quick or --rounds"]),
        ("--all --take nothing.json", ["nothing.json: cannot be read as JSON"]),
        ("pfedrec --part 1/2", ["--part: only with --all"]),
        ("pfedrec --lean", ["--lean: only with --all"]),
    ],
)
def test_bad_input_is_one_line(arguments: str, facts: list[str], reproduction: Callable[..., Outcome]) -> None:
    outcome = reproduction("run", *arguments.split(), "--data-dir", "store")
    assert outcome.code == 2
    assert outcome.err.count("\n") == 1
    for fact in facts:
        assert fact in outcome.err
    assert not Path("runs").exists()


def test_one_upload_of_every_row_with_noise_is_attacked_once(reproduction: Callable[..., Outcome]) -> None:
    arguments = (
        "run", "pfedrec", "--all", "--table", "7", "--attack", "--data-dir", "store", "--record", "results",
    )  # fmt: skip
    listed = reproduction(*arguments, "--list")
    assert "0 of 6 uploads attacked" in listed.words
    small = reproduction(*arguments, "--memory", "1kb")
    assert (small.code, "6 of 6 uploads could not be attacked: pfedrec on ml-100k: " in small.err) == (3, True)
    assert not Path("results").exists()
    outcome = reproduction(*arguments)
    assert (outcome.code, "6 of 6 uploads attacked" in outcome.words) == (0, True)
    written = json.loads(Path("results/uploads.json").read_text())
    found = {one["privacy"]: one for one in written["attacks"]}
    assert set(found) == {"none", *(f"laplace:0.{number}" for number in range(1, 6))}
    assert found["none"]["values"]["precision"] > 0.9
    assert found["none"]["values"]["clients"] == 16
    assert all(one["provenance"]["data"]["fingerprint"] for one in found.values())
    assert all("epsilon_of_median_user" in one for privacy, one in found.items() if privacy != "none")
    assert {one["row"] for one in found.values()} <= settings_asked_for()
    before = Path("results/uploads.json").stat().st_mtime_ns
    assert reproduction(*arguments).code == 0
    assert Path("results/uploads.json").stat().st_mtime_ns == before, "nothing is attacked twice"
    second = json.loads(reproduction(*arguments, "--rounds", "2", "--json").out)
    assert [one["round"] for one in second["attacks"]] == [2] * 6
    assert len(json.loads(Path("results/uploads.json").read_text())["attacks"]) == 12


def test_a_record_of_another_format_is_refused(reproduction: Callable[..., Outcome]) -> None:
    Path("results").mkdir()
    Path("results/uploads.json").write_text('{"format": 9}')
    outcome = reproduction("run", "--all", "--attack", "--data-dir", "store", "--record", "results")
    assert (outcome.code, "format 9, expected 1" in outcome.err) == (2, True)
