"""Lists of any program are measured as a method's own are; those of real packages: tests/others."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import ownview as ov
from ownview.base.errors import OwnviewError
from tests.outcome import Outcome


@pytest.fixture(scope="module")
def popular() -> ov.Run:
    return ov.run("popularity")


@pytest.mark.parametrize("form", ["plain", "lenskit", "recbole"])
def test_a_runs_own_lists_reach_what_the_run_does(popular: ov.Run, form: str, tmp_path: Path) -> None:
    """Lists of 20 say all that HR and NDCG ask for up to 20; only ties inside a list are broken by then."""
    path = tmp_path / ("mine.inter" if form == "recbole" else "mine.parquet")
    ov.write_lists(popular.recommend_many(k=20), path, form)
    read = ov.read_lists(path)
    assert read.columns == ["user", "item", "rank"]
    run = ov.score(path, "goodbooks", out=tmp_path / "run")
    assert run.experiment.method == "mine"
    for name in ("HR@5", "HR@10", "NDCG@10", "NDCG@20"):
        assert run.metrics[name] == pytest.approx(popular.metrics[name], abs=2e-3), "equal counts are in some order now"
    table = ov.compare(["popularity"])
    assert table.runs[0].result["users_ranked"] == run.result["users_ranked"]
    assert run.result["interval_95"]["HR@10"][0] < run.metrics["HR@10"] < run.result["interval_95"]["HR@10"][1]


def test_places_are_counted_by_hand(tmp_path: Path) -> None:
    """Four users whose last item is held out, at places 1 and 2, behind the list, and hidden ones are left out."""
    users, items = np.repeat(list("abcd"), 4), ["p", "q", "r", "s"] * 4
    data = ov.Interactions.from_rows("tiny", users, items, timestamp=np.tile([1, 2, 3, 4], 4))
    extra = ov.Interactions.from_rows(
        "tiny", [*users, *"eeee"], [*items, "t", "u", "v", "p"], timestamp=[*np.tile([1, 2, 3, 4], 4), 1, 2, 3, 4]
    )
    assert data.num_items == 4
    lists = {"a": ["s", "t"], "b": ["t", "s"], "c": ["t", "u"], "d": ["p", "s"], "e": ["p", "q"]}
    rows = [(user, item, rank) for user, own in lists.items() for rank, item in enumerate(own, start=1)]
    pl.DataFrame(rows, schema=["user", "item", "rank"], orient="row").write_csv(tmp_path / "lists.csv")
    run = ov.score(tmp_path / "lists.csv", extra)
    found = dict(zip(*(run.folder.read_users()[name] for name in ("user", "NDCG@5")), strict=True))
    half = 1 / np.log2(3)
    assert float(found["a"]) == 1
    assert float(found["b"]) == pytest.approx(half)
    assert float(found["d"]) == 1, "the item that is known is no candidate"
    assert float(found["c"]) == pytest.approx((1 / np.log2(4) + 1 / np.log2(5)) / 2), (
        "one of two places behind the list"
    )


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("a.csv", "user,itme,rank\n1,2,3\n", "no column item among user, itme, rank.*'itme'"),
        ("a.csv", "user,item\n1,2\n", "no column score or rank"),
        ("a.csv", "user,item,rank\n1,2,x\n", "row 1 has no user, item, or number"),
        ("a.csv", "user,item,rank\n1,2,1\n1,2,2\n", "item 2 stands twice"),
        ("a.parquet", "PAR1 nonsense", "cannot be read as parquet"),
        ("a.xyz", "", "lists come as .parquet"),
        ("a.csv", "user,item,rank\nnobody,2,1\n", "user nobody is none of goodbooks"),
        ("a.csv", "user,item,rank\n1,2,1\n", "no list for|is none of"),
    ],
)
def test_what_is_no_list_is_refused(name: str, text: str, reason: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(OwnviewError, match=reason) as refused:
        ov.score(tmp_path / name, "goodbooks")
    assert "\n" not in str(refused.value)


def test_the_command_measures_and_writes_splits(
    popular: ov.Run, ownview: Callable[..., Outcome], tmp_path: Path
) -> None:
    ov.write_lists(popular.recommend_many(k=20), tmp_path / "mine.parquet")
    done = ownview("score", tmp_path / "mine.parquet", "--name", "theirs", "--out", tmp_path / "run")
    assert done.code == 0, done.err
    assert "theirs" in done.out
    for form, first in (("plain", "user,item"), ("recbole", "user_id:token\titem_id:token")):
        done = ownview("score", "--write-split", tmp_path / form, "--form", form)
        assert done.code == 0, done.err
        train = Path(done.out.split()[0])
        lines = train.read_text().splitlines()
        assert lines[0] == first
        assert len(lines) > 80_000
    assert ownview("score").code == 2
    assert "fedmf is a method" in ownview("score", tmp_path / "mine.parquet", "--name", "fedmf").err


def test_a_run_of_lists_travels_and_is_measured_again(
    popular: ov.Run, ownview: Callable[..., Outcome], tmp_path: Path
) -> None:
    """The folder holds the lists, and no path of the machine; changed ones are named."""
    ov.write_lists(popular.recommend_many(k=20), tmp_path / "here.parquet")
    ov.score(tmp_path / "here.parquet", "goodbooks", name="theirs", out=tmp_path / "run")
    (tmp_path / "here.parquet").unlink()
    (tmp_path / "run").rename(tmp_path / "moved")
    assert str(tmp_path) not in (tmp_path / "moved" / "experiment.toml").read_text()
    done = ownview("verify", tmp_path / "moved", "--again")
    assert done.code == 0, done.out + done.err
    assert "lists in measured_lists.parquet: SHA-256" in done.out
    assert "run once more, every figure of every user is the same" in done.out
    read = pl.read_parquet(tmp_path / "moved" / "measured_lists.parquet")
    read.filter(pl.col("rank") > 1).write_parquet(tmp_path / "moved" / "measured_lists.parquet")
    changed = ownview("verify", tmp_path / "moved", "--again")
    assert changed.code == 1
    assert "measured_lists.parquet has changed" in changed.out
    assert "not what it says: files, method, again" in changed.err
    (tmp_path / "moved" / "measured_lists.parquet").unlink()
    assert "its lists (measured_lists.parquet or the like) are not there" in ownview("verify", tmp_path / "moved").out


def test_lists_that_are_written_into_a_run_are_no_part_of_it(ownview: Callable[..., Outcome], tmp_path: Path) -> None:
    run = ov.run("popularity", out=tmp_path / "run").folder.path
    assert ownview("recommend", run, "--all", "-o", run / "lists.csv").code == 0
    done = ownview("verify", run)
    assert done.code == 0, done.out + done.err
