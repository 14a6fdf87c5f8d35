"""Nothing held out: every row trains, everybody is asked, and at which moment."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from ownview.base.errors import SettingError
from ownview.data import Interactions
from ownview.evaluation.named_protocols import HONEST, NEXT_SITTING, PAPER, on_everything, protocol
from ownview.evaluation.protocol import Protocol
from tests.shop import USERS, shop

DAY = 86_400


def test_every_row_trains_and_is_known() -> None:
    data = shop()
    split = on_everything().prepare(data, papers_filter=20)
    assert split.num_users == USERS, "the papers' filter drops nobody here"
    assert len(split.train.values) == len(split.timeline.items.values) == len(data)
    assert split.validation is split.test
    question = split.test
    assert question.open
    assert question.users.tolist() == list(range(USERS))
    assert int(question.relevant.lengths.sum()) == 0
    for user in range(USERS):
        assert question.hidden.of(user).tolist() == sorted(set(data.item[data.of(user)].tolist()))
        assert question.known.items.of(user).tolist() == data.item[data.of(user)].tolist(), "hours apart, in row order"
    assert question.known.now is not None
    assert torch.equal(question.known.now, question.known.last)


def test_who_has_one_item_is_kept_unless_the_protocol_says_how_many() -> None:
    data = Interactions.from_rows("few", np.array(["a", "b", "b"], object), np.array([1, 1, 2]))
    split = on_everything().prepare(data)
    assert split.num_users == 2
    assert not any("held-out" in note for note in split.notes)
    assert on_everything(replace(HONEST, name="two", min_interactions=2)).prepare(data).num_users == 1


def test_repeats_are_as_in_the_protocol_it_is_like() -> None:
    data = Interactions.from_rows("twice", np.array(["a", "a", "b"], object), np.array([1, 1, 2]))
    assert len(on_everything(HONEST).prepare(data).train.values) == 2
    assert len(on_everything(PAPER).prepare(data).train.values) == 3


def test_like_next_sitting_people_are_asked_later() -> None:
    split = on_everything(NEXT_SITTING).prepare(shop())
    now, last = split.test.known.now, split.test.known.last
    assert now is not None
    assert torch.equal(now, last + DAY), "everything lies within a day of the end"
    assert int(split.timeline.now[0]) == int(last.max())  # type: ignore[index]


def test_it_is_no_protocol_to_measure_by(tmp_path: Path) -> None:
    assert not on_everything().measured
    assert HONEST.measured
    path = tmp_path / "all.toml"
    path.write_text('split = "everything"\nselection = "last"\n')
    with pytest.raises(SettingError, match="split=everything holds nothing out and measures nothing; use: ownview fit"):
        protocol(str(path))
    with pytest.raises(SettingError, match="nothing is held out to choose a round or to rank by"):
        Protocol(name="x", split="everything")
    with pytest.raises(SettingError, match="moment=later: split leave-one-out asks for held-out items"):
        Protocol(name="x", moment="later")
