"""Which item a person means, and what they are told where it is none or several."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from ownview.base.errors import DataError
from ownview.data import Interactions
from ownview.data.matching import ItemNames
from ownview.data.persons import newcomer
from tests.shop import shop


@pytest.fixture(scope="module")
def names() -> ItemNames:
    return ItemNames(shop())


def item(names: ItemNames, given: str) -> str:
    return str(names.data.items[names.find(given).position])


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("i3", "i3"),
        (" id:i3 ", "i3"),
        ("id:1984", "1984"),
        ("Dune (Dune Chronicles #1) — Frank Herbert", "i0"),
        ("dune", "i0"),
        ("DUNE  messiah", "i1"),
        ("The Matrix", "i3"),
        ("matrix", "i3"),
        ("Runaway Bunny", "1984"),
        ("austen emma", "i4"),
        ("les mise\u0301rables", "i6"),
        ("Tome 9", "i9"),
    ],
)
def test_items_are_found_by_id_by_title_and_by_words_of_it(names: ItemNames, given: str, expected: str) -> None:
    assert item(names, given) == expected


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("Duen", r"no item of shop is called 'Duen'; did you mean 'Dune \(.*' \(id i0\)"),
        ("qqqqqqqq", "no item of shop is called 'qqqqqqqq', and no title is like it; write a title or an id"),
        ("emma", r"'emma' may be 'Emma — .*' \(id i[45]\) or 'Emma — .*' \(id i[45]\); write more of the title"),
        ("tome", r"'tome' may be .* or one of 13 others; write more of the title, or id: and its id"),
        ("1984", "'1984' is the id of 'The Runaway Bunny — .*' and the title of item i2: write id:1984 or id:i2"),
        ("id:i99", r"'id:i99': shop has no item with this id; did you mean i\d"),
        ("!!!", "no item of shop is called '!!!'"),
    ],
)
def test_what_is_none_or_several_is_refused_with_the_nearest(names: ItemNames, given: str, words: str) -> None:
    with pytest.raises(DataError, match=f"^history: {words}"):
        names.find(given)


def test_without_titles_there_are_ids() -> None:
    plain = ItemNames(shop(titles=False))
    assert item(plain, "1984") == "1984"
    with pytest.raises(DataError, match="no item of shop is called 'dune'; it has no titles, so write ids"):
        plain.find("dune")


def test_a_history_is_read_from_text_lists_and_files(names: ItemNames, tmp_path: Path) -> None:
    data = names.data
    said = newcomer("dune; id:i9;; dune ;tome 8", names)
    assert [data.items[one.position] for one in said.history] == ["i0", "i9", "i8"]
    assert [one.given for one in said.history] == ["dune", "id:i9", "tome 8"]
    assert said.times is None
    assert newcomer(["dune", "i9", "tome 8"], names).history[2] == said.history[2]
    assert repr(said) == "Newcomer(Dune (Dune Chronicles #1) — Frank Herbert; Tome 9; Tome 8)"
    path = tmp_path / "me.csv"
    path.write_text("title,when,timestamp\nTome 9,x,700\nDune,x,300\ntome 8,x,700\nDune,x,900\n")
    read = newcomer(path, names)
    assert [data.items[one.position] for one in read.history] == ["i0", "i9", "i8"]
    assert read.times is not None
    assert read.times.tolist() == [300, 700, 700]
    path.write_text("item\n1984\ni0\n")
    assert [data.items[one.position] for one in newcomer(path, names).history] == ["1984", "i0"], "an id is an id here"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("what\ndune\n", "me.csv: line 1: no item or title column; found what; expected item,timestamp"),
        ("item\ndune\nDuen\n", "me.csv: line 3: history: no item of shop is called 'Duen'; did you mean"),
        ("user,item\na,dune\nb,i9\n", "me.csv: column user: found a, b; expected one person"),
        ("item,timestamp\ndune,soon\n", "me.csv: line 2, column 'timestamp': timestamp 'soon'"),
        ("item\n", "me.csv: line 1: only a header"),
    ],
)
def test_files_that_are_no_history_are_refused_by_line(names: ItemNames, tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "me.csv").write_text(text)
    with pytest.raises(DataError, match=f"^{re.escape(str(tmp_path))}/{words}"):
        newcomer(tmp_path / "me.csv", names)


@pytest.mark.parametrize("said", ["", " ; ;", []])
def test_an_empty_history_is_refused(names: ItemNames, said: str | list[str]) -> None:
    with pytest.raises(DataError, match=r"^history: is empty; expected titles or ids of items"):
        newcomer(said, names)


def test_titles_that_are_alike_in_brackets_only_are_told_apart() -> None:
    ids = np.array(["a", "b"], dtype=object)
    names = ItemNames(Interactions.from_rows("two", ids, ids, titles={"a": "It (1990)", "b": "It (2017)"}))
    assert names.find("it (2017)").position == 1
    with pytest.raises(DataError, match="'it' may be 'It \\(1990\\)' \\(id a\\) or 'It \\(2017\\)' \\(id b\\)"):
        names.find("it")


def test_every_item_has_a_name_that_finds_it(names: ItemNames) -> None:
    for position in range(len(names.data.items)):
        name = names.name_of(position)
        assert name is not None
        assert names.find(name).position == position
    emma = names.find("id:i4").position
    assert names.name_of(emma) == names.data.title(emma), "whole titles differ by their authors"


@pytest.mark.parametrize(
    ("ids", "titles", "expected"),
    [
        (["a", "b"], ["Same", "Same"], "id:a"),
        (["a", "b"], ["One; two", "Other"], "id:a"),
        (["a;1", "b"], ["Its title", "Other"], "Its title"),
        (["a;1", "b"], None, None),
        (["7", "8"], ["8", "7"], "id:7"),
    ],
)
def test_a_title_that_is_not_enough_gives_way_to_the_id(
    ids: list[str], titles: list[str] | None, expected: str | None
) -> None:
    users, items = np.array(["u", "u"], dtype=object), np.array(ids, dtype=object)
    by_item = None if titles is None else dict(zip(ids, titles, strict=True))
    assert ItemNames(Interactions.from_rows("two", users, items, titles=by_item)).name_of(0) == expected
