"""Recommending and fitting, as a person types it: lists for everybody and for a new person, models without figures."""

from __future__ import annotations

import csv
import gzip
import json
import re
import signal
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from ownview.runs.files.folder import RunFolder
from tests.outcome import Outcome, signalled
from tests.shop import TITLES, USERS, shop

QUICK = ("--set", "embedding_size=4", "--set", "local_epochs=1")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of datasets that has the shop, with titles."""
    place = tmp_path_factory.mktemp("store") / "shop"
    place.mkdir()
    data = shop()
    assert data.timestamp is not None
    names = zip(data.users[data.user], data.items[data.item], data.timestamp, strict=True)
    rows = "user,item,timestamp\n" + "".join(f"{user},{item},{when}\n" for user, item, when in names)
    (place / "interactions.csv.gz").write_bytes(gzip.compress(rows.encode()))
    titles = {item: TITLES.get(item, f"Tome {item[1:]}") for item in data.items.tolist()}
    with gzip.open(place / "items.csv.gz", "wt", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([("item", "title"), *titles.items()])
    return place.parent


@pytest.fixture(autouse=True)
def _store(own_folder: Path, monkeypatch: pytest.MonkeyPatch, store: Path) -> None:
    monkeypatch.setenv("OWNVIEW_DATA", str(store))
    monkeypatch.setenv("COLUMNS", "200")


@pytest.fixture
def fitted(ownview: Callable[..., Outcome]) -> Path:
    assert ownview("fit", "fedease", "--data", "shop", "--out", "model").code == 0
    return Path("model")


@pytest.mark.parametrize("name", ["lists.parquet", "lists.csv"])
def test_lists_for_everybody_go_into_a_file(fitted: Path, name: str, ownview: Callable[..., Outcome]) -> None:
    outcome = ownview("recommend", fitted, "--all", "-k", "3", "-o", name)
    assert outcome == Outcome(0, f"{name}: 48 rows, lists of up to 3 items for 16 users\n", "")
    frame = (pl.read_parquet if name.endswith("parquet") else pl.read_csv)(name)
    assert frame.columns == ["user", "rank", "item", "title", "score"]
    mine = json.loads(ownview("recommend", fitted, "--user", "u5", "-k", "3", "--json").out)["recommendations"]
    assert frame.filter(pl.col("user") == "u5")["item"].to_list() == [one["item"] for one in mine]
    again = ownview("recommend", fitted, "--all", "-o", name)
    assert (again.code, again.out) == (2, "")
    assert f"{name}: already exists; choose another -o, or overwrite it with --force" in again.err
    forced = ownview("recommend", fitted, "--all", "-o", name, "--force", "--json")
    assert json.loads(forced.out)["rows"] == USERS * 10
    assert sorted(path.name for path in Path().glob("*lists*")) == [name]


def test_somebody_new_by_titles_sees_what_was_understood(fitted: Path, ownview: Callable[..., Outcome]) -> None:
    asked = ("recommend", fitted, "--history", "dune; tome 9; id:1984", "-k", "3")
    shown = ownview(*asked)
    assert (shown.code, shown.err) == (0, "")
    lines = [line.rstrip() for line in shown.out.splitlines()]
    assert lines[:4] == [
        "from 3 items, oldest first:",
        "  Dune (Dune Chronicles #1) — Frank Herbert  (dune)",
        "  Tome 9  (tome 9)",
        "  The Runaway Bunny — Margaret Wise Brown  (id:1984)",
    ]
    assert lines[4] == "fedease for a new person of shop (trained on everything)"
    found = json.loads(ownview(*asked, "--json").out)
    assert [one["given"] for one in found["history"]] == ["dune", "tome 9", "id:1984"]
    assert len(found["recommendations"]) == 3
    Path("me.csv").write_text("title,timestamp\nTome 9,200\nDune,100\nThe Runaway Bunny,300\n")
    read = json.loads(ownview("recommend", fitted, "--new-user", "me.csv", "-k", "3", "--json").out)
    assert read["recommendations"] == found["recommendations"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "found neither; expected one of --user ID, --all, --history TITLES, --new-user FILE"),
        (("--user", "u1", "--all"), "found --user and --all; expected one of"),
        (("--all",), "--all: give a file for the lists, such as -o lists.parquet"),
        (("--user", "u1", "-o", "x.csv"), "-o: goes with --all"),
        (("--all", "-o", "lists.txt"), "lists.txt: ends in .txt; expected .parquet or .csv"),
        (("--all", "-o", "lists"), "lists: has no ending; expected .parquet or .csv"),
        (("--history", "Duen"), "history: no item of shop is called 'Duen'; did you mean 'Dune (Dune Chronicles #1)"),
        (("--history", ""), "history: is empty"),
        (("--new-user", "none.csv"), "none.csv"),
    ],
)
def test_what_cannot_be_answered_is_one_line(
    fitted: Path, arguments: tuple[str, ...], message: str, ownview: Callable[..., Outcome]
) -> None:
    outcome = ownview("recommend", fitted, *arguments)
    assert (outcome.code, outcome.out) == (2, "")
    assert message in outcome.err
    assert outcome.err.count("\n") == 1
    assert {path.name for path in Path().iterdir()} <= {"model", "cache"}


def test_who_has_everything_is_told_that_nothing_is_left(fitted: Path, ownview: Callable[..., Outcome]) -> None:
    Path("all.csv").write_text("item\n" + "".join(f"{item}\n" for item in shop().items.tolist()))
    assert "nothing is left to recommend" in ownview("recommend", fitted, "--new-user", "all.csv").out


def test_fit_says_what_it_is_and_others_take_it_for_that(fitted: Path, ownview: Callable[..., Outcome]) -> None:
    assert ownview("run", "popularity", "--data", "shop", "--out", "runs/measured").code == 0
    shown = ownview("fit", "--like", "runs/measured", "--out", "runs/fitted")
    assert (shown.code, shown.err) == (0, "")
    assert shown.out.startswith("popularity on shop, seed 0, 1 round: trained on everything: nothing was held out")
    assert re.search(r"settings and rounds as in \.\./measured, where round 1 was chosen on validation", shown.out)
    assert "use it: ownview recommend runs/fitted --user ID" in shown.out
    listed = {one["name"]: one for one in json.loads(ownview("ls", "runs", "--json").out)["runs"]}
    assert listed["fitted"]["HR@10"] == "no figure"
    assert listed["measured"]["HR@10"] >= 0
    assert "no test figure" in ownview("watch", "runs/fitted", "--once").out
    report = ownview("report", "runs", "-o", "report.html")
    assert report.code == 0
    assert "note: runs/fitted is left out: trained on everything" in report.out
    alone = ownview("report", "runs/fitted", "-o", "other.html")
    assert (alone.code, Path("other.html").exists()) == (2, False)
    assert "no test figure; expected measured runs" in alone.err
    assert "no test figure" in ownview("run", "--resume", "runs/fitted").out


def test_fit_refuses_in_one_line(fitted: Path, ownview: Callable[..., Outcome]) -> None:
    for arguments, message in (
        (("pfedrec", "--data", "shop"), "pfedrec trains round by round, and here nothing is held out"),
        (("--like", fitted), "is itself trained on everything and chose no round"),
        ((), "name a method"),
        (("fedmf", "--like", fitted, "--rounds", "3"), "--rounds: not with --like"),
        (("--resume", fitted, "--seed", "3"), "--seed: not with --resume"),
    ):
        outcome = ownview("fit", *arguments)
        assert (outcome.code, outcome.out, outcome.err.count("\n")) == (2, "", 1), arguments
        assert message in outcome.err
    assert not Path("runs").exists()


def test_fit_goes_on_after_it_was_stopped(ownview: Callable[..., Outcome]) -> None:
    arguments = ("fit", "fedmf", "--data", "shop", "--rounds", "3", *QUICK)
    assert ownview(*arguments, "--out", "whole").code == 0
    with signalled(signal.SIGINT, RunFolder, "append_round", 1):
        stopped = ownview(*arguments, "--out", "stopped")
    assert stopped.code == 128 + signal.SIGINT
    assert ownview("fit", "--resume", "stopped", "--json").code == 0
    assert Path("whole/model.safetensors").read_bytes() == Path("stopped/model.safetensors").read_bytes()


def test_a_model_by_user_refuses_somebody_new_in_one_line(ownview: Callable[..., Outcome]) -> None:
    assert ownview("fit", "mf", "--data", "shop", "--rounds", "1", "--out", "model").code == 0
    outcome = ownview("recommend", "model", "--history", "dune")
    assert (outcome.code, outcome.out) == (2, "")
    assert "mf learns values for every user and has none for users that never took part; take a model" in outcome.err
