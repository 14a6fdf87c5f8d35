"""`ownview bench` as a person types it, on small data and a suite that takes seconds."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import re
import shutil
import signal
import time
from collections.abc import Callable
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np
import pytest

from ownview.cli.display.progress import Forecast
from ownview.evaluation.statistics import mean_interval
from ownview.runs.files.folder import RunFolder
from ownview.studies.bench.suite import parse, plan
from tests.apart import Apart, killed
from tests.outcome import Outcome, signalled
from tests.reproduction.worlds import store_world
from tests.studies.suites import two_methods

TINY = two_methods("ml-100k", rounds=4, seeds=2)
BENCH = ("bench", "tiny.toml", "--data-dir", "store")


@pytest.fixture(autouse=True)
def _world(own_folder: Path) -> None:
    store_world(own_folder / "store", "ml-100k")
    Path("tiny.toml").write_text(TINY)


def results(folder: str) -> dict[str, Any]:
    return dict(json.loads(Path(folder, "results.json").read_text()))


def written(folder: str | Path) -> dict[str, bytes]:
    """Names of all files, and the bytes of those that no two starts may differ in."""
    same = ("results.json", "results.md", "experiment.toml", "model.safetensors", "users.csv", "provenance.json")
    every = sorted(path for path in Path(folder).rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() if path.name in same else b"" for path in every}


def test_a_suite_becomes_one_table_and_two_files(ownview: Callable[..., Outcome]) -> None:
    outcome = ownview(*BENCH, "--jobs", "1")
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out.endswith("results.json, results.md and every run are in runs/bench/tiny\n")
    found = results("runs/bench/tiny")
    assert (found["suite"], found["title"], found["failures"]) == ("tiny", "Tiny", [])
    assert list(found["protocols"]) == ["honest", "paper"]
    assert len(found["runs"]) == len(list(Path("runs/bench/tiny/runs").iterdir())) == 8

    mine = [one for one in found["runs"] if (one["method"], one["protocol"]) == ("fedmf (small)", "paper")]
    assert [one["seed"] for one in mine] == [0, 1]
    for one in mine:
        run = json.loads(Path("runs/bench/tiny/runs", one["run"], "result.json").read_text())
        assert (one["test"], one["interval_95"]) == (run["test"], run["interval_95"])
        assert (one["chosen_round"], one["rounds"], one["ranked_among"]) == (run["chosen_round"], 4, 100)
        assert one["experiment"]["settings"]["embedding_size"] == 4
        assert one["experiment"]["settings"]["negatives"] == 4, "defaults are written out"
        known = one["provenance"]
        assert {"revision", "packages", "python"} <= set(known)
        assert known["machine"]["cores"] == os.cpu_count()
        assert len(known["data"]["fingerprint"]) > 10
    hr = [one["test"]["HR@10"] for one in mine]
    users = [RunFolder(Path("runs/bench/tiny/runs", one["run"])).read_users()["HR@10"] for one in mine]
    low, high = mean_interval(np.array(users, dtype=float).mean(axis=0))
    cell = f"{mean(hr):.3f} ({low:.3f} to {high:.3f})"
    text = Path("runs/bench/tiny/results.md").read_text()
    (row,) = [line for line in text.splitlines() if line.startswith("| fedmf (small)")]
    assert re.sub(" [▲≈○]+", "", row.split(" | ")[3]) == cell
    assert re.search(rf"fedmf \(small\),? .*{mean(hr):.3f}", outcome.out)


def test_rows_are_compared_in_more_measures_and_with_a_row_of_their_own(ownview: Callable[..., Outcome]) -> None:
    text = TINY.replace("seeds = 2", 'seeds = 1\nmetrics = ["NDCG@5", "recall@20"]').replace(
        '["honest", "paper"]', '["honest"]'
    )
    Path("tiny.toml").write_text(text.replace('method = "fedmf"', 'method = "fedmf"\nbeside = "popularity"'))
    outcome = ownview(*BENCH, "--jobs", "1")
    assert outcome.code == 0, outcome.err
    found = results("runs/bench/tiny")
    cells = {(one["method"], one["metric"]): one for one in found["comparison"]}
    rows, measures = ("popularity", "fedmf (small)"), ("HR@10", "NDCG@10", "NDCG@5")
    assert set(cells) == {(row, metric) for row in rows for metric in measures}, "recall is of several right answers"
    note = "not compared in recall@20: ml-100k, honest: not every run has measured it"
    assert note in outcome.out
    assert f"- {note}" in Path("runs/bench/tiny/results.md").read_text()
    users = {}
    for one in found["runs"]:
        table = RunFolder(Path("runs/bench/tiny/runs", one["run"])).read_users()
        users[one["method"]] = np.array(table["NDCG@5"], dtype=float)
        assert cells[one["method"], "NDCG@5"]["mean"] == pytest.approx(one["test"]["NDCG@5"])
    beside = cells["fedmf (small)", "NDCG@5"]["beside"]
    assert beside["label"] == "popularity"
    assert beside["test"]["difference"] == pytest.approx((users["fedmf (small)"] - users["popularity"]).mean())
    assert 0 < beside["p_corrected"] <= 1
    assert "beside" not in cells["popularity", "NDCG@5"]


def test_finished_runs_are_taken_as_they_are(ownview: Callable[..., Outcome]) -> None:
    assert ownview(*BENCH, "--jobs", "1", "--seeds", "1").code == 0
    before = {path: path.stat().st_mtime_ns for path in Path("runs/bench/tiny/runs").glob("*/*")}
    again = ownview(*BENCH, "--jobs", "1", "--json")
    found = json.loads(again.out)
    assert found == {**results("runs/bench/tiny"), "folder": "runs/bench/tiny"}
    assert {one["seed"] for one in found["runs"]} == {0, 1}
    assert {path: path.stat().st_mtime_ns for path in before} == before


def test_parts_of_a_suite(ownview: Callable[..., Outcome]) -> None:
    listed = json.loads(ownview(*BENCH, "--list", "--json", "--method", "fedmf (small)", "--rounds", "2").out)["runs"]
    assert [(one["method"], one["protocol"], one["seed"], one["rounds"]) for one in listed] == [
        ("fedmf (small)", protocol, seed, 2) for seed in (0, 1) for protocol in ("honest", "paper")
    ]
    by_method = json.loads(ownview(*BENCH, "--list", "--json", "--method", "fedmf").out)["runs"]
    assert [one["method"] for one in by_method] == ["fedmf (small)"] * 4
    under = json.loads(ownview(*BENCH, "--list", "--json", "--protocol", "paper").out)["runs"]
    assert {one["protocol"] for one in under} == {"paper"}
    assert not any(one["finished"] for one in listed)
    lines = ownview(*BENCH, "--list", "--method", "fedmf (small)", "--rounds", "2").out.splitlines()
    assert [line.split()[-1] for line in lines[1:]] == [one["run"].rpartition("-")[2] for one in listed]
    assert all(line.startswith("fedmf (small)") and len(line.rstrip()) <= 80 for line in lines[1:])


BLENDED = """
title = "Blended"
rounds = 2
seeds = 2
protocols = ["honest", "paper"]
data = ["ml-100k"]

[[rows]]
method = "popularity"
seeds = 1

[[rows]]
method = "fedmf"
protocols = ["honest"]
settings = { embedding_size = 4, local_epochs = 1 }

[[rows]]
name = "both"
blends = ["popularity", "fedmf"]
protocols = ["honest"]
"""


def test_a_row_blends_the_finished_models_of_others(ownview: Callable[..., Outcome]) -> None:
    """Rows may have fewer protocols and seeds than the suite; a blend asked for alone brings what it blends."""
    Path("blended.toml").write_text(BLENDED)
    asked = ("bench", "blended.toml", "--data-dir", "store", "--method", "both", "--jobs", "1")
    outcome = ownview(*asked)
    assert outcome.code == 0, outcome.err
    runs = {(one["method"], one["protocol"], one["seed"]): one for one in results("runs/bench/blended")["runs"]}
    assert set(runs) == {
        ("popularity", "honest", 0), ("popularity", "paper", 0),
        *(("fedmf", "honest", seed) for seed in (0, 1)), *(("both", "honest", seed) for seed in (0, 1)),
    }  # fmt: skip
    for seed in (0, 1):
        parts = runs["both", "honest", seed]["experiment"]["settings"]["parts"]
        folders = [text.rpartition("@")[2] for text in parts]
        assert folders == [runs["popularity", "honest", 0]["run"], runs["fedmf", "honest", seed]["run"]]
    recommended = ownview("recommend", f"runs/bench/blended/runs/{runs['both', 'honest', 1]['run']}", "--user", "u0",
                          "--data-dir", "store")  # fmt: skip
    assert recommended.code == 0, recommended.err


def test_a_row_blends_the_models_of_every_seed(ownview: Callable[..., Outcome]) -> None:
    Path("blended.toml").write_text(BLENDED.replace("seeds = 2", "seeds = 3") + 'seeds = 1\nevery_seed = ["fedmf"]\n')
    asked = ("bench", "blended.toml", "--data-dir", "store", "--method", "both", "--jobs", "1")
    outcome = ownview(*asked)
    assert outcome.code == 0, outcome.err
    every = results("runs/bench/blended")["runs"]
    runs = {(one["method"], one["seed"]): one for one in every if one["protocol"] == "honest"}
    both = runs["both", 0]
    folders = [text.rpartition("@")[2] for text in both["experiment"]["settings"]["parts"]]
    assert folders == [runs["popularity", 0]["run"], *(runs["fedmf", seed]["run"] for seed in range(3))]
    assert all(name in " ".join(both["notes"]) for name in ("popularity", "fedmf no. 1", "fedmf no. 2", "fedmf no. 3"))
    one = json.loads(ownview(*asked, "--seeds", "1", "--list", "--json").out)["runs"]
    assert sorted(run["method"] for run in one) == ["both", "fedmf", "popularity", "popularity"]


def test_a_blend_of_a_row_that_failed_fails_with_its_reason(ownview: Callable[..., Outcome]) -> None:
    text = BLENDED.replace('"fedmf"', '"fednext"').replace("embedding_size = 4, local_epochs = 1", "rank = 1000")
    Path("blended.toml").write_text(text)
    outcome = ownview("bench", "blended.toml", "--data-dir", "store", "--jobs", "1")
    assert outcome.code == 3
    reasons = {one["method"]: one["reason"] for one in results("runs/bench/blended")["failures"]}
    assert "rank=1000" in reasons["fednext"]
    assert reasons["both"] == f"it blends fednext, which failed: {reasons['fednext']}"


def test_the_suites_that_come_with_ownview_are_listed(ownview: Callable[..., Outcome]) -> None:
    found = {one["suite"]: one for one in json.loads(ownview("bench", "--list", "--json").out)["suites"]}
    assert set(found) >= {"quick", "papers", "large"}
    assert {"pfedrec", "fedrap", "pfedclr", "fedem", "fedmf + plgc", "local-only"} <= set(found["papers"]["methods"])
    assert (found["papers"]["seeds"], found["papers"]["protocols"]) == (3, ["honest", "paper"])
    assert "papers: " in ownview("bench", "--list").words


@pytest.mark.parametrize(
    ("change", "arguments", "facts"),
    [
        (("", ""), "--method fedmv", ["--method fedmv: not in suite tiny", "did you mean 'fedmf'?"]),
        (("", ""), "--data ml-1m", ["--data ml-1m: not in suite tiny"]),
        (("", ""), "--record results --rounds 2", ["--rounds: not with --record"]),
        (("", ""), "--data-dir nowhere", ["nowhere: no such folder of datasets (--data-dir)"]),
        (('"fedmf"', '"soon"'), "", ["tiny.toml: this version does not have method 'soon'"]),
        (("popularity", "later"), "", ["method 'later'"]),
        (("local_epochs", "local_epoch"), "", ["local_epoch", "did you mean 'local_epochs'?"]),
        (("seeds = 2", "sedes = 2"), "", ["tiny.toml has no setting 'sedes'; did you mean 'seeds'?"]),
        (("seeds = 2", f"seeds = {'9' * 400}"), "", ["expected a whole number from 1 to 1,000"]),
        (("seeds = 2", "seeds = 0"), "", ["seeds = 0: expected a whole number from 1 to 1,000"]),
        (('"paper"', '"papper"'), "", ["unknown protocol 'papper'; did you mean 'paper'?"]),
        (("seeds = 2", 'seeds = 2\nmetrics = ["recal@20"]'), "", ["metrics: 'recal@20' is not", "'recall@20'?"]),
        (('"paper"]', '"five.toml"]\nmetrics = ["NDCG@20"]'), "", ["metrics: 'NDCG@20' is not", "under five.toml"]),
        (('method = "fedmf"', 'method = "fedmf"\nbeside = "popular"'), "", ["no other row 'popular'", "'popularity'?"]),
        (('["ml-100k"]', '["ml-100k", "ml-1m"]'), "", ["data not found: ml-1m", "fetch ml-1m", "--data ml-100k"]),
        (('["ml-100k"]', '["my-shop"]'), "", ["data not found: my-shop: neither a dataset of that name nor a file"]),
        (('["ml-100k"]', '["sold/last.csv"]'), "", ["data not found: /", "/sold/last.csv: no such file"]),
        (('name = "fedmf (small)"', 'name = "popularity"'), "", ["two rows are called 'popularity'"]),
        (('method = "popularity"', "speed = 3"), "", ["a row has no setting 'speed'"]),
        (('method = "popularity"', 'method = "popularity"\nseeds = 3'), "", ["seeds = 3: expected 1 to 2"]),
        (('method = "popularity"', 'method = "popularity"\nonly = ["ml-100"]'), "", ["the suite has no data 'ml-100'"]),
        (('method = "popularity"', 'method = "popularity"\nprotocols = ["papr"]'), "", ["'papr'", "'paper'"]),
        (('method = "popularity"', 'name = "both"\nblends = ["fedmf"]'), "", ["no row 'fedmf' that trains", "small"]),
        (('method = "fedmf"', 'blends = ["popularity"]\nevery_seed = ["popularty"]'), "", ["every_seed", "popularity"]),
        (("[[rows]]", "[rows"), "", ["tiny.toml: not TOML"]),
        (('method = "fedmf"', 'method = "fedmf"\npreset = "nonesuch"'), "", ["preset", "nonesuch"]),
    ],
)  # fmt: skip
def test_bad_suites_and_names(
    change: tuple[str, str], arguments: str, facts: list[str], ownview: Callable[..., Outcome]
) -> None:
    Path("tiny.toml").write_text(TINY.replace(*change) if change[0] else TINY)
    Path("five.toml").write_text("cutoffs = [5, 10]\n")
    outcome = ownview(*BENCH, *arguments.split())
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err.count("\n") == 1
    assert all(fact in outcome.err for fact in facts), outcome.err
    assert not Path("runs").exists()


@pytest.mark.parametrize("part", [(), ("--data", "amazon-beauty")])
def test_a_suite_without_its_data_says_how_to_get_it(part: tuple[str, ...], ownview: Callable[..., Outcome]) -> None:
    outcome = ownview("bench", "sequential", *part)
    assert (outcome.code, outcome.out, outcome.err.count("\n")) == (2, "", 1)
    assert "data not found: amazon-beauty: see https://" in outcome.err
    assert "ownview data import FILE --name amazon-beauty" in outcome.err
    assert not Path("runs").exists()


def test_a_suite_must_be_named_and_known(ownview: Callable[..., Outcome]) -> None:
    assert (
        "name a suite: best, citeulike, cosines, described, large, papers, private, quick, sequential"
        in ownview("bench").err
    )
    assert ownview("bench", "quik").err == "ownview: unknown suite 'quik'; did you mean 'quick'?\n"
    assert ownview("bench", "none.toml").err == "ownview: none.toml: no such suite file\n"


def test_a_run_that_fails_is_told_and_the_others_stand(ownview: Callable[..., Outcome]) -> None:
    store_world(Path("store"), "ml-1m", items=40)  # too few for 99 candidates
    Path("tiny.toml").write_text(TINY.replace('["ml-100k"]', '["ml-100k", "ml-1m"]').replace("seeds = 2", "seeds = 1"))
    outcome = ownview(*BENCH, "--jobs", "1")
    assert outcome.code == 3
    assert outcome.err == "ownview: 2 of 8 runs failed; runs/bench/tiny/results.md says which and why\n"
    found = results("runs/bench/tiny")
    assert (len(found["runs"]), len(found["failures"])) == (6, 2)
    assert "expected at least 99" in found["failures"][0]["reason"]
    (failure,) = [line for line in Path("runs/bench/tiny/results.md").read_text().splitlines() if "failed:" in line]
    assert failure.startswith("- failed: popularity, fedmf (small), ml-1m, paper, seed 0: "), "one line a reason"
    assert "failed: popularity, fedmf (small), ml-1m, paper, seed 0" in outcome.words


def test_a_record_tells_of_runs_that_failed_until_they_are_made(ownview: Callable[..., Outcome]) -> None:
    store_world(Path("store"), "ml-1m", items=40)
    Path("tiny.toml").write_text(TINY.replace('["ml-100k"]', '["ml-100k", "ml-1m"]').replace("seeds = 2", "seeds = 1"))
    small = (*BENCH, "--jobs", "1", "--method", "popularity", "--record", "kept")
    assert ownview(*small, "--data", "ml-1m").code == 3
    assert ownview(*small, "--data", "ml-100k").code == 0
    first = json.loads(Path("kept/tiny.json").read_text())
    assert ([one["data"] for one in first["failures"]], len(first["runs"])) == (["ml-1m"], 3)
    shutil.rmtree("store/ml-1m")
    store_world(Path("store"), "ml-1m", items=140)
    assert ownview(*small, "--data", "ml-1m").code == 0
    second = json.loads(Path("kept/tiny.json").read_text())
    assert (second["failures"], len(second["runs"])) == ([], 4)


def test_records_are_gathered_in_parts(ownview: Callable[..., Outcome]) -> None:
    whole = (*BENCH, "--jobs", "1", "--record", "results")
    assert ownview(*whole, "--method", "popularity").code == 0
    first = json.loads(Path("results/tiny.json").read_text())
    assert {one["method"] for one in first["runs"]} == {"popularity"}
    assert first["asked_for"] == 8, "two rows, two protocols, two seeds"
    assert ownview(*whole, "--method", "fedmf", "--out", "elsewhere").code == 0
    parts = json.loads(Path("results/tiny.json").read_text())
    assert parts["comparison"] == [], "the two parts were not compared with each other"
    assert ownview(*whole).code == 0
    assert Path("results/tiny.json").read_bytes() == Path("runs/bench/tiny/results.json").read_bytes()
    at_once = json.loads(Path("results/tiny.json").read_text())
    assert len(at_once["comparison"]) == 8, "two rows, two protocols, two metrics"
    assert {**at_once, "comparison": []} == parts
    assert ownview(*whole).code == 0
    assert json.loads(Path("results/tiny.json").read_text()) == at_once, "recorded twice is recorded once"

    Path("tiny.toml").write_text(TINY.replace("embedding_size = 4", "embedding_size = 5"))
    assert ownview(*whole, "--method", "popularity").code == 0
    left = json.loads(Path("results/tiny.json").read_text())["runs"]
    assert {one["method"] for one in left} == {"popularity"}, "what the suite no longer asks for goes"
    assert "give no more --seeds than it has" in ownview(*whole, "--seeds", "3").err


def test_a_stopped_suite_goes_on_by_the_same_command(ownview: Callable[..., Outcome]) -> None:
    arguments = (*BENCH, "--jobs", "1", "--seeds", "1")
    with signalled(signal.SIGINT, RunFolder, "append_round", times=4):
        stopped = ownview(*arguments)
    assert stopped == Outcome(130, "", "ownview: stopped with 2 of 4 runs finished; the same command goes on\n")
    assert ownview(*arguments).code == 0


def test_on_a_terminal_a_board_shows_what_goes_on_and_time_left() -> None:
    terminal, inside = pty.openpty()
    arguments = (*BENCH, "--jobs", "1", "--seeds", "1", "--rounds", "150")
    process = Apart(*arguments, environment={"TERM": "xterm", "LINES": "40"}, err=inside)
    os.close(inside)
    shown = b""
    with contextlib.suppress(OSError):  # how a terminal says that the other side is gone
        while part := os.read(terminal, 65536):
            shown += part
    assert process.wait() == 0
    text = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", shown.decode())
    assert re.search(r"suite tiny: 2 of 4 runs, \d+ s, about \d+ s left", text)
    assert re.search(r"fedmf \(small\) +0\.\d{3} round \d+/150", text)


def test_a_row_is_asked_on_the_data_that_it_names_alone(tmp_path: Path) -> None:
    text = TINY.replace('["ml-100k"]', '["ml-100k", "ml-1m"]')
    text = text.replace('method = "popularity"', 'method = "popularity"\nonly = ["ml-1m"]')
    asked = {(one.row, one.data) for one in plan(parse(text, "tiny", "tiny"), tmp_path)}
    assert asked == {("popularity", "ml-1m"), ("fedmf (small)", "ml-100k"), ("fedmf (small)", "ml-1m")}


def test_time_left_is_that_of_the_rounds_left(tmp_path: Path) -> None:
    planned = plan(parse(TINY, "tiny", "tiny"), tmp_path)
    now = 0.0
    forecast = Forecast(planned, 2, lambda: now)
    assert forecast.seconds_left() is None
    slow = next(one.folder for one in planned if one.row == "fedmf (small)")
    forecast.round_done(slow)
    assert forecast.seconds_left() is None, "the first round of a run counts its start"
    now = 6.0
    forecast.round_done(slow)
    rounds = 4 * 4 - 2 + 4  # fedmf's four runs less two rounds; popularity's four, as slow as far as is known
    assert forecast.seconds_left() == pytest.approx(rounds * 6 / 2)
    now = 8.0
    forecast.round_done(slow)
    assert forecast.seconds_left() == pytest.approx((rounds - 1) * 4 / 2)


def test_killed_at_any_moment_it_ends_with_the_same_files(ownview: Callable[..., Outcome]) -> None:
    """Killed for good after a round, then after a file, then by surprise with two runs at work."""
    assert ownview(*BENCH, "--jobs", "1", "--out", "whole", "--record", "whole").code == 0
    arguments = (*BENCH, "--out", "killed", "--record", "killed", "--jobs")
    killed(RunFolder, "append_round", 3, *arguments, "1")
    killed(Path, "replace", 9, *arguments, "1")
    process = Apart(*arguments, "2")
    begun = set(Path("killed").rglob("*"))
    while process.poll() is None and set(Path("killed").rglob("*")) == begun:
        time.sleep(0.002)
    process.kill()  # where nobody looked in time it is done already, and the files must be the same all the more
    process.wait()
    assert ownview(*arguments, "1").code == 0
    assert written("killed") == written("whole")


def test_what_has_finished_is_put_together_and_compared(ownview: Callable[..., Outcome]) -> None:
    nothing = ownview(*BENCH, "--gather")
    assert nothing.code == 2
    assert nothing.err == "ownview: --gather: none of the 8 runs has finished in runs/bench/tiny\n"
    for method in ("popularity", "fedmf"):
        assert ownview(*BENCH, "--method", method, "--protocol", "honest", "--record", "kept").code == 0
    apart = json.loads(Path("kept/tiny.json").read_text())
    assert len(apart["runs"]) == 4
    assert apart["comparison"] == [], "rows that were recorded at different times"
    assert ownview(*BENCH, "--gather", "--record", "kept").code == 0
    together = json.loads(Path("kept/tiny.json").read_text())
    assert together["runs"] == apart["runs"]
    assert {one["method"] for one in together["comparison"]} == {"popularity", "fedmf (small)"}
    assert len(list(Path("runs/bench/tiny/runs").iterdir())) == 4, "nothing was run"
