"""Items that nobody has taken yet, in lists, pages and exports, from a file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from ownview import Experiment, Interactions
from ownview.base.errors import DataError, SettingError
from ownview.data.unseen_items import with_untaken
from ownview.evaluation.named_protocols import on_everything
from ownview.pages.export import export
from ownview.pages.offered import first
from ownview.pages.page import page
from ownview.pages.published import Published
from ownview.pages.run_model import RunModel
from ownview.runs.run import Run, run
from ownview.seam.portable import Linear
from ownview.testing import small_world
from tests.outcome import Outcome

NEW = "item,title\nn1,number 12 once more\n7,number 7 of kind 0\nn2,number 35 once more\n"


@pytest.fixture(scope="module")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> Run:
    experiment = Experiment("fedease", protocol=on_everything(), rounds=1, device="cpu")
    return run(experiment, data=small_world().data, out=tmp_path_factory.mktemp("fit") / "run")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "new.csv").write_text(NEW)
    return tmp_path / "new.csv"


def test_items_of_a_file_stand_behind_those_of_the_data(file: Path) -> None:
    data = small_world().data
    more = with_untaken(data, file)
    assert more.items[data.num_items :].tolist() == ["n1", "n2"], "item 7 is no new one"
    assert more.num_users == data.num_users
    assert more.about is not None
    assert more.about.columns["title"][-2:] == ("number 12 once more", "number 35 once more")
    file.write_text("item,title\n7,seven\n")
    with pytest.raises(DataError, match="names no item that small world does not have"):
        with_untaken(data, file)
    file.write_text("id,title\nn1,one\n")
    with pytest.raises(DataError, match=r"new\.csv: line 1: no item column"):
        with_untaken(data, file)


def test_lists_offer_new_items_where_asked_and_mark_them(fitted: Run, file: Path) -> None:
    everything = fitted.recommend(3, 100, new_items=file)
    plain = fitted.recommend(3, 100)
    assert {one.item for one in everything} - {one.item for one in plain} == {"n1", "n2"}
    assert [one for one in everything if not one.new] == plain, "scores of the others stay what they are"
    like = {one.title: one.score for one in everything}
    taken = fitted.loaded().split.num_items
    assert [one.item for one in everything if one.new] == [one.item for one in everything if str(one.item)[0] == "n"]
    assert taken + 2 == fitted.loaded(None, file).split.num_items
    assert like["number 12 once more"] != like["number 35 once more"]


def test_ids_of_what_is_published_are_listed_once(fitted: Run, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A list of all ids for each of them takes seconds where there are many."""
    published = Published(RunModel.of(fitted, new_items=file), min_people=8)
    every, listed = published.model.ids, list[RunModel]()

    def ids(model: RunModel) -> list[Any]:
        listed.append(model)
        return every

    monkeypatch.setattr(RunModel, "ids", property(ids))
    assert 2 < len(published.left.kept) < len(every)
    assert published.ids == [every[item] for item in [*published.left.kept.tolist(), len(every) - 2, len(every) - 1]]
    assert len(listed) == 1


def test_a_page_and_an_export_hold_new_items_and_what_is_published_decides_them(
    fitted: Run, file: Path, tmp_path: Path
) -> None:
    published = Published(RunModel.of(fitted, new_items=file), min_people=1)
    form = published.offered
    assert isinstance(form, Linear)
    history = torch.tensor([0, 3, 5])
    recommender = fitted.loaded(None, file)
    assert form.scores(history).shape == (recommender.split.num_items,)
    alone = first(form, recommender.split.num_items - 2)
    torch.testing.assert_close(alone.scores(history), published.form.scores(history))
    done = page(fitted, tmp_path / "page.html", min_people=1, new_items=file)
    text = done.path.read_text(encoding="utf-8")
    assert "number 12 once more (new)" in text
    assert "number 12 once more" not in page(fitted, tmp_path / "plain.html", min_people=1).path.read_text()
    folder = export(fitted, tmp_path / "device", min_people=1, new_items=file).path
    assert (folder / "items.csv").read_text().splitlines()[-1] == "n2,number 35 once more (new)"
    assert json.loads((folder / "model.json").read_text())["format"] == 1


def test_left_out_items_play_no_part_in_new_ones(fitted: Run, file: Path) -> None:
    published = Published(RunModel.of(fitted, new_items=file), min_people=8)
    assert 0 < len(published.left.kept) < fitted.loaded().split.num_items
    form = published.offered
    assert isinstance(form, Linear)
    changed = RunModel.of(fitted, new_items=file)
    weights = changed.form.terms[0].weights  # type: ignore[union-attr]
    assert isinstance(weights, torch.Tensor)
    gone = np.setdiff1d(np.arange(len(weights)), published.left.kept)
    assert len(published.ids) == len(published.left.kept) + 2
    assert not set(published.ids) & set(fitted.loaded().split.data.items[gone].tolist())
    assert form.scores(torch.tensor([0])).shape == (len(published.ids),)


def test_data_without_text_is_refused(tmp_path: Path, file: Path) -> None:
    data = Interactions.from_rows("bare", np.repeat(np.arange(9), 4), np.arange(36) % 7)
    file.write_text("item,title\nn1,\n")
    bare = run(Experiment("fedease", protocol=on_everything(), rounds=1, device="cpu"), data=data, out=tmp_path / "run")
    with pytest.raises(SettingError, match="nothing is but their ids"):
        bare.recommend(3, new_items=file)


def test_on_the_command_line(ownview: object, tmp_path: Path, file: Path) -> None:
    assert callable(ownview)
    file.write_text("item,title,creator\nx1,The Hobbit retold,J.R.R. Tolkien\n")
    made: Outcome = ownview("fit", "fedease", "--data", "goodbooks", "--out", str(tmp_path / "fit"))
    assert made.code == 0
    asked = ("recommend", str(tmp_path / "fit"), "--history", "The Hobbit", "-k", "300", "--new-items", str(file))
    done: Outcome = ownview(*asked)
    assert "The Hobbit retold" in done.out
    assert "(new)" in done.out
    missing: Outcome = ownview(*asked[:-1], str(tmp_path / "nowhere.csv"))
    assert missing.code == 2
