"""Splits with items that nobody has taken, on rows that can be counted by hand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from ownview import Interactions
from ownview.base.errors import DataError, SettingError
from ownview.data.ragged import Ragged
from ownview.data.splitting.new_items import drawn_items, late_items, listed_items, never_drawn
from ownview.data.splitting.splits import Split
from ownview.evaluation.named_protocols import NEW_AMONG_ALL, NEW_ITEMS
from ownview.evaluation.protocol import Protocol
from ownview.evaluation.ranking import rankers
from ownview.testing import small_world

HOW = {"ties": "hash", "untimed": "random", "seed": 0, "among_new": True}


def _data() -> Interactions:
    """Three users; items a to f, e and f first appear at time 6 and later."""
    rows = [("x", "a", 1), ("x", "b", 2), ("x", "e", 6), ("y", "b", 3), ("y", "c", 4), ("y", "f", 8), ("z", "f", 7)]
    users, items, times = zip(*rows, strict=True)
    about = {"title": {one: f"item {one}" for one in "abcdef"}}
    return Interactions.from_rows(
        "rows", np.array(users, object), np.array(items, object), timestamp=np.array(times), about=about
    )


def _ids(split: Split, lists: Ragged) -> dict[str, list[str]]:
    items = split.data.items
    return {str(user): sorted(items[lists.of(k).numpy()].tolist()) for k, user in enumerate(split.data.users.tolist())}


def test_listed_items_train_nobody_stand_last_and_are_asked_for(tmp_path: Path) -> None:
    file = tmp_path / "new.csv"
    file.write_text("item,part\na,validation\nf,test\nunheard,test\n")
    split = listed_items(_data(), str(file), **HOW)  # type: ignore[arg-type]
    assert split.num_new == 2
    assert split.data.items.tolist() == ["b", "e", "c", "a", "f"]
    assert _ids(split, split.train) == {"x": ["b", "e"], "y": ["b", "c"]}  # z has nothing but a new item
    assert _ids(split, split.validation.relevant) == {"x": ["a"], "y": []}
    assert _ids(split, split.test.relevant) == {"x": [], "y": ["f"]}
    assert split.test.among is not None
    assert split.test.among.tolist() == [4]
    assert "1 user with nothing but new items dropped" in split.notes


def test_late_items_are_those_that_first_appear_after_the_cut() -> None:
    split = late_items(_data(), first=4, second=6, ties="hash", seed=0, among_new=False)
    assert split.data.items[-2:].tolist() == ["e", "f"]
    assert _ids(split, split.train) == {"x": ["a", "b"], "y": ["b", "c"]}
    assert _ids(split, split.test.relevant) == {"x": ["e"], "y": ["f"]}
    assert split.test.among is None
    assert split.earlier is not None
    assert _ids(split.earlier, split.validation.relevant) == {"x": [], "y": ["c"]}
    assert "f" not in split.earlier.data.items.tolist(), "what comes after the second cut must not be seen"


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_draw_is_of_the_share_and_parts_nothing_else(seed: int) -> None:
    data = small_world(seed=seed).data
    split = drawn_items(data, share=0.2, ties="hash", untimed="random", seed=seed, among_new=True)
    assert split.num_new == int(0.2 * data.num_items)
    old = split.num_items - split.num_new
    assert int(split.train.values.max()) < old <= int(split.test.relevant.values.min())
    assert len(split.train.values) + len(split.test.relevant.values) == len(split.data)
    assert split.earlier is not None
    tested = set(split.data.items[old:].tolist())
    assert not tested & set(split.earlier.data.items.tolist()), "validation must not know of the items of test"
    again = drawn_items(data, share=0.2, ties="hash", untimed="random", seed=seed, among_new=True)
    assert again.data.fingerprint() == split.data.fingerprint()


def test_new_items_are_never_drawn_as_negatives() -> None:
    lists = Ragged(torch.tensor([0, 2, 2, 3]), torch.tensor([0, 3, 1]))
    found = never_drawn(lists, num_items=6, num_new=2)
    assert [found.of(user).tolist() for user in range(3)] == [[0, 3, 4, 5], [4, 5], [1, 4, 5]]
    assert never_drawn(lists, 6, 0) is lists
    split = NEW_ITEMS.prepare(small_world().data)
    excluded = NEW_ITEMS.training_exclusions(split)
    for user in range(split.num_users):
        assert set(range(split.num_items - split.num_new, split.num_items)) <= set(excluded.of(user).tolist())


@pytest.mark.parametrize("protocol", [NEW_ITEMS, NEW_AMONG_ALL])
def test_candidates_are_new_items_or_all(protocol: Protocol) -> None:
    class Descending:
        def scores(self, users: torch.Tensor, items: torch.Tensor | None) -> torch.Tensor:
            return -torch.arange(split.num_items, dtype=torch.float64).expand(len(users), -1)

    split = protocol.prepare(small_world().data)
    _, test = rankers(protocol, split, 0, torch.device("cpu"), 10**8)
    first = test.top(Descending(), 1)[:, 0]
    if protocol is NEW_ITEMS:
        assert set(first.tolist()) == {split.num_items - split.num_new}
        assert set(test.rank(Descending()).candidates.tolist()) == {split.num_new}
    else:
        assert int(first.max()) < split.num_items - split.num_new


def test_bad_settings_and_files_are_refused_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="expected a file with new_by=file alone"):
        replace(NEW_ITEMS, name="mine", new_file="new.csv")
    with pytest.raises(SettingError, match="ranks all items; expected 0"):
        replace(NEW_ITEMS, name="mine", candidates=9)
    file = tmp_path / "new.csv"
    for text, message in {
        "item,kind\na,test\n": "found item, kind; expected columns item and part",
        "item,part\na,tset\n": "line 2: part 'tset'; expected validation or test",
        "item,part\na,test\n": "no item of rows has part validation",
    }.items():
        file.write_text(text)
        with pytest.raises(DataError, match=message):
            listed_items(_data(), str(file), **HOW)  # type: ignore[arg-type]
    with pytest.raises(DataError, match=r"lies in no folder with a file new_items\.csv\.gz"):
        listed_items(_data(), "", **HOW)  # type: ignore[arg-type]
    with pytest.raises(DataError, match="no item first appears after the cut"):
        late_items(_data(), first=4, second=9, ties="hash", seed=0, among_new=True)
    with pytest.raises(DataError, match=r"is less than one; expected more items"):
        drawn_items(_data(), share=0.1, **HOW)  # type: ignore[arg-type]
