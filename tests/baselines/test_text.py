"""Text at home, against values worked out by hand."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch

from ownview import Interactions, Text
from ownview.base.errors import DataError, SettingError
from ownview.base.items.item_table import MOST_COLUMNS, ItemTable
from ownview.base.items.item_text import term_vectors
from ownview.baselines.parts.central import Asked
from ownview.data.datasets.storage import store
from ownview.data.reading.readers import read
from ownview.data.splitting.splits import Split, leave_one_out
from ownview.parts.text.likeness import nearest_by_text


def _split(titles: dict[int, str] | None) -> Split:
    users, items = np.repeat([0, 1], 4), np.array([0, 1, 2, 3, 3, 2, 1, 0])
    about = None if titles is None else {"title": titles}
    data = Interactions.from_rows("shelf", users, items, timestamp=np.arange(8), about=about)
    return leave_one_out(data, ties="hash", untimed="random", seed=0)


def test_cosines_are_those_worked_by_hand() -> None:
    """Of four items two have 'red', two 'blue' and three 'bird': weights log 2, log 2 and log 4/3."""
    vectors = term_vectors(ItemTable({"title": ("red bird", "red fox", "blue bird", "blue bird")}))
    kernel = (vectors @ vectors.T).toarray()
    color, bird = math.log(2) ** 2, math.log(4 / 3) ** 2
    pair = color  # 'blue bird' as a pair, of two items
    assert kernel[0, 1] == pytest.approx(color / (math.sqrt(color + bird) * math.sqrt(color)))
    assert kernel[0, 2] == pytest.approx(bird / (math.sqrt(color + bird) * math.sqrt(color + bird + pair)))
    assert kernel[2, 3] == pytest.approx(1)
    assert kernel[1, 2] == 0


def test_makers_are_entries_years_are_decades_and_numbers_say_nothing() -> None:
    table = ItemTable(
        {
            "maker": ("Ann Lee", "Ann Lee, Bo Ray", "Bo Ray", "Ann Lee"),
            "year": ("1991", "1999", "2004", "2003"),
            "price": ("9.5", "9.5", "9.5", "1.0"),
        }
    )
    vectors = term_vectors(table)
    assert vectors.shape[1] == 4  # two makers, two decades
    weights = [2 * math.log(4 / 3), 2 * math.log(4 / 2), 0.5 * math.log(4 / 2)]
    ann, bo, decade = weights
    both = ann * ann + decade * decade
    first, second = math.hypot(ann, decade), math.sqrt(ann**2 + bo**2 + decade**2)
    assert (vectors[0] @ vectors[1].T).toarray()[0, 0] == pytest.approx(both / (first * second))


def test_nearest_keeps_the_largest_and_never_the_item_itself() -> None:
    vectors = term_vectors(ItemTable({"title": ("red bird", "red fox", "blue bird", "blue bird")}))
    rows = nearest_by_text(vectors, 1)
    assert rows.offsets.tolist() == [0, 1, 2, 3, 4]
    assert rows.columns.tolist() == [1, 0, 3, 2]


def test_scores_fade_with_steps_and_equal_the_portable_form() -> None:
    split = _split({0: "red bird", 1: "red fox", 2: "blue bird", 3: "blue bird"})
    model = Text(recency=2.0)
    learned = model.fit(split, split.train, 0)
    asked = Asked(torch.tensor([0, 1]), split.test.known)
    scores = model.scores(learned, asked).double()
    vectors = term_vectors(split.data.about) if split.data.about is not None else None
    assert vectors is not None
    kernel = torch.from_numpy((vectors @ vectors.T).toarray()).fill_diagonal_(0)
    expected = kernel[1] + math.exp(-1 / 2) * kernel[0]  # user 0 knows item 0, then item 1
    torch.testing.assert_close(scores[0], expected, rtol=1e-6, atol=1e-6)
    for user in (0, 1):
        history = split.test.known.items.of(user)
        portable = model.portable(learned)
        assert hasattr(portable, "scores")
        torch.testing.assert_close(portable.scores(history), scores[user], rtol=1e-5, atol=1e-6)


def test_data_without_text_is_refused_in_one_line() -> None:
    nothing: tuple[dict[int, str] | None, ...] = (None, {})
    for titles in nothing:
        with pytest.raises(SettingError, match="nothing is known of the items of shelf but their ids"):
            Text().require(_split(titles))


def test_items_that_nothing_is_said_of_score_nothing() -> None:
    split = _split({0: "red bird", 1: "red fox", 2: "blue bird"})
    learned = Text().fit(split, split.train, 0)
    scores = Text().scores(learned, Asked(torch.tensor([0, 1]), split.test.known))
    assert torch.isfinite(scores).all()
    assert scores[:, 3].tolist() == [0, 0]


def test_columns_about_items_survive_storing(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("user,item\n" + "".join(f"u,{i}\n" for i in (1, 2, 3)))
    (tmp_path / "items.csv").write_text("item,title,creator,kind\n1,One,Ann,a|b\n2,Two,,a\n9,Nine,Bo,b\n")
    data = read(tmp_path / "rows.csv", name="small", titles=tmp_path / "items.csv")
    file = store(data, "small", tmp_path, {})
    again = read(file, name="small", titles=file.with_name("items.csv.gz"))
    for one in (data, again):
        assert one.about is not None
        assert dict(one.about.columns) == {
            "title": ("One", "Two", ""),
            "creator": ("Ann", "", ""),
            "kind": ("a|b", "a", ""),
        }
        assert one.titles == ("One — Ann", "Two", "3")


def test_a_table_of_too_many_columns_and_two_of_one_name_are_refused(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("user,item\nu,1\nv,1\n")
    wide = tmp_path / "items.csv"
    wide.write_text(
        "item,title," + ",".join(f"c{i}" for i in range(MOST_COLUMNS)) + "\n1,x" + ",y" * MOST_COLUMNS + "\n"
    )
    with pytest.raises(DataError, match=f"{MOST_COLUMNS} columns about items or users at most"):
        read(tmp_path / "rows.csv", titles=wide)
    wide.write_text("item,title,kind,kind\n1,x,a,b\n")
    with pytest.raises(DataError, match="two columns are called 'kind'"):
        read(tmp_path / "rows.csv", titles=wide)


def test_rows_about_unknown_and_repeated_items_are_told_and_a_file_without_any_known_is_refused(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("user,item\nu,1\nv,1\nv,2\n")
    file = tmp_path / "items.csv"
    file.write_text("item,title\n1,one\n1,another\n9,nine\n")
    data = read(tmp_path / "rows.csv", titles=file)
    notes = " ".join(data.reading)
    assert "items.csv: 1 row about an item that stands above; the first with a title counts" in notes
    assert "items.csv: 1 item not in the data, left out" in notes
    assert data.titles == ("one", "2")
    file.write_text("item,title\nx,one\ny,two\n")
    with pytest.raises(DataError, match=r"names none of the 2 items, such as 1; found 'x' in its column of items"):
        read(tmp_path / "rows.csv", titles=file)


def test_a_million_columns_are_refused_before_they_are_read(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("user,item\nu,1\nv,1\n")
    wide = tmp_path / "items.csv"
    wide.write_text("item,title" + ",c" * 10**6 + "\n1,x" + ",y" * 10**6 + "\n")
    with pytest.raises(
        DataError, match=r"line 1: 1,000,002 columns; expected 256 columns about items or users at most"
    ):
        read(tmp_path / "rows.csv", titles=wide)
