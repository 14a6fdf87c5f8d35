"""What is asked of the same data twice is split once; other data, another question or a file is split anew."""

from __future__ import annotations

import gc
from dataclasses import replace
from pathlib import Path
from weakref import ref

import numpy as np
import pytest
import torch

from ownview.base.items.item_table import ItemTable
from ownview.data.interactions import Interactions
from ownview.data.splitting.splits import Split
from ownview.evaluation import last_splits
from ownview.evaluation.last_splits import LastSplits
from ownview.evaluation.named_protocols import HONEST, on_everything
from ownview.evaluation.protocol import Protocol

OTHER = replace(HONEST, moment="asked")


def made(time: int = 0) -> Interactions:
    """Five users with six items each, made anew by every call."""
    user, place = np.repeat(np.arange(5), 6), np.tile(np.arange(6), 5)
    return Interactions.from_rows("made", user, (user + place) % 8, (place + 1).astype(np.float64), place * 10 + time)


def same(one: Split, other: Split) -> bool:
    lists = [
        (one.train, other.train), (one.timeline.items, other.timeline.items),
        (one.test.relevant, other.test.relevant), (one.test.hidden, other.test.hidden),
        (one.validation.known.items, other.validation.known.items),
    ]  # fmt: skip
    equal = all(torch.equal(a.values, b.values) and torch.equal(a.offsets, b.offsets) for a, b in lists)
    return equal and (one.notes, one.order) == (other.notes, other.order)


@pytest.mark.parametrize("protocol", [HONEST, on_everything(HONEST)])
def test_data_that_was_read_twice_is_split_once(protocol: Protocol) -> None:
    splits = LastSplits()
    first = splits.of(protocol, made())
    assert splits.of(protocol, made()) is first
    assert same(first, protocol.prepare(made()))


def test_another_question_filter_or_value_is_another_split() -> None:
    splits, data = LastSplits(), made()
    first = splits.of(HONEST, data)
    titles = tuple("abcdefgh")
    others = [
        splits.of(replace(HONEST, split_seed=1), data),
        splits.of(OTHER, data),
        splits.of(HONEST, data, 5),
        splits.of(HONEST, made(time=1)),
        *(
            splits.of(HONEST, one)
            for one in (
                replace(data, name="other"), replace(data, clock=False), replace(data, rating=None),
                replace(data, quantity=np.ones(len(data))), replace(data, titles=titles),
                replace(data, about=ItemTable({"title": titles})), replace(data, users=data.users.astype(object)),
                replace(data, about_users=ItemTable({"town": tuple("vwxyz")})),
            )
        ),
    ]  # fmt: skip
    assert all(one is not first for one in others)
    assert len({id(one) for one in others}) == len(others)
    assert splits.of(HONEST, data) is first, "it is still held"


def test_the_last_one_is_kept_and_others_while_they_are_in_use() -> None:
    splits, data = LastSplits(), made()
    first, held = ref(splits.of(HONEST, data)), splits.of(OTHER, data)
    last = ref(splits.of(replace(HONEST, split_seed=1), data))
    gc.collect()
    assert first() is None
    assert splits.of(replace(HONEST, split_seed=1), data) is last()
    assert splits.of(OTHER, data) is held


def test_large_ones_go_with_those_who_asked_for_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(last_splits, "MOST_ROWS", 1)
    splits, data = LastSplits(), made()
    split = splits.of(HONEST, data)
    assert splits.of(HONEST, data) is split
    gone = ref(split)
    del split
    gc.collect()
    assert gone() is None


def test_a_split_of_files_is_read_each_time(tmp_path: Path) -> None:
    file = tmp_path / "new.csv"
    protocol = Protocol(name="new", split="new-items", new_by="file", new_file=str(file))
    assert protocol.reads_files
    assert Protocol(name="files", split="files", split_folder=str(tmp_path)).reads_files
    assert not replace(protocol, new_by="draw", new_file="").reads_files
    splits, data = LastSplits(), made()
    file.write_text("item,part\n7,test\n6,validation\n")
    first = splits.of(protocol, data)
    file.write_text("item,part\n5,test\n6,validation\n")
    new = [set(split.data.items[-2:].tolist()) for split in (first, splits.of(protocol, data))]
    assert new == [{6, 7}, {5, 6}]
