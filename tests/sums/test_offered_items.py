"""`ownview update MODEL --items FILE`: items that nobody has taken yet are offered, and nothing is trained."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from ownview.runs.run import open_run
from tests.outcome import Outcome

TASTES = ("dragons", "robots", "gardens")
FIT = {
    "fedease": (),
    "popularity": (),
    "fedmf": ("--rounds", "3", "--set", "embedding_size=4"),
    "fedsasrec": ("--rounds", "2", "--set", "embedding_size=8", "--set", "length=6"),
}
"""A closed form, one that gives everybody the same, shared item vectors, and a network over sequences."""


@pytest.fixture(autouse=True)
def _shop(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    draw = np.random.default_rng(5)
    rows = ["user,item,timestamp"]
    for user in range(30):
        mine = [item for item in range(36) if item % 3 == user % 3]
        rows += [f"u{user},i{item},{1000 * k}" for k, item in enumerate(draw.permutation(mine)[:8].tolist())]
    Path("rows.csv").write_text("\n".join(rows) + "\n")
    items = [f"i{item},Tale of {TASTES[item % 3]} number {item}" for item in range(36)]
    Path("items.csv").write_text("\n".join(["item,title", *items]) + "\n")
    new = [f"n{kind},More {taste} of late" for kind, taste in enumerate(TASTES)]
    Path("new.csv").write_text("\n".join(["item,title", *new]) + "\n")


def _fitted(ownview: Callable[..., Outcome], method: str) -> dict[str, bytes]:
    imported = ownview("data", "import", "rows.csv", "--name", "shop", "--items", "items.csv", "--data-dir", "data")
    assert imported.code == 0, imported.err
    fit = ownview("fit", method, "--data", "shop", "--data-dir", "data", "--out", "model", *FIT[method])
    assert fit.code == 0, fit.err
    return {path.name: path.read_bytes() for path in Path("model").glob("*.safetensors")}


@pytest.mark.parametrize("method", FIT)
def test_new_items_are_offered_by_every_kind_of_model_and_marked(method: str, ownview: Callable[..., Outcome]) -> None:
    before = _fitted(ownview, method)
    plain = {one.item: one.score for one in open_run("model").recommend("u0", 100)}
    done = ownview("update", "model", "--items", "new.csv", "--json")
    assert done.code == 0, done.err
    changed = json.loads(done.out)
    assert changed["what"] == "3 items that nobody has taken yet are offered"
    assert changed["how"] == "by their text; nothing was trained"
    assert before == {path.name: path.read_bytes() for path in Path("model").glob("*.safetensors")}
    lists = open_run("model").recommend("u0", 100)
    assert {one.item for one in lists if one.new} == {"n0", "n1", "n2"}
    assert {one.item: one.score for one in lists if not one.new} == plain
    shown = ownview("recommend", "model", "--user", "u0", "-k", "40")
    assert shown.words.count("(new)") == 3
    if method == "fedease":
        score = {one.item: one.score for one in lists if one.new}
        assert max(score, key=lambda item: score[item]) == "n0", "u0 has dragons alone"


def test_a_page_and_an_export_offer_them_too(ownview: Callable[..., Outcome]) -> None:
    _fitted(ownview, "fedease")
    assert ownview("update", "model", "--items", "new.csv").code == 0
    assert ownview("page", "model", "-o", "page.html").code == 0
    assert "More dragons of late (new)" in Path("page.html").read_text(encoding="utf-8")
    assert ownview("export", "model", "-o", "device").code == 0
    assert "n2,More gardens of late (new)" in Path("device/items.csv").read_text(encoding="utf-8")


def test_items_are_added_up_and_go_where_they_are_taken(ownview: Callable[..., Outcome]) -> None:
    _fitted(ownview, "fedease")
    assert ownview("update", "model", "--items", "new.csv").code == 0
    Path("more.csv").write_text("item,title\nn3,Robots in gardens\nn0,said twice\n")
    assert "4 items" in ownview("update", "model", "--items", "more.csv").words
    again = ownview("update", "model", "--items", "more.csv")
    assert (again.code, again.err.count("\n")) == (2, 1)
    assert "names no item that" in again.err
    Path("today.csv").write_text("user,item,timestamp\nu0,n0,90000\nu3,n0,90001\n")
    assert ownview("update", "model", "today.csv", "--items", "new.csv").code == 0
    new = {one.item for one in open_run("model").recommend("u5", 100) if one.new}
    assert new == {"n1", "n2", "n3"}
    for one in ("n1", "n2", "n3"):
        Path("today.csv").write_text(f"user,item,timestamp\nu0,{one},95000\nu3,{one},95001\n")
        assert ownview("update", "model", "today.csv").code == 0
    assert not Path("model/new_items.csv").exists()
    taken = open_run("model").recommend("u5", 100)
    assert not [one for one in taken if one.new]
    assert "Robots in gardens" in {one.title for one in taken}, "its text stays when it is taken"


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("update", "model"), "found no file; expected one of new rows, or --items FILE"),
        (("update", "model", "--items", "nowhere.csv"), "nowhere.csv"),
        (("update", "model", "--items", "rows.csv"), "names no item that"),
        (("update", "nowhere", "--items", "new.csv"), "no such run folder"),
    ],
)
def test_what_is_wrong_is_one_line_and_changes_nothing(
    words: tuple[str, ...], expected: str, ownview: Callable[..., Outcome]
) -> None:
    _fitted(ownview, "fedease")
    before = sorted(path.name for path in Path("model").iterdir())
    done = ownview(*words)
    assert (done.code, done.err.count("\n")) == (2, 1), done.err
    assert expected in done.err
    assert sorted(path.name for path in Path("model").iterdir()) == before
