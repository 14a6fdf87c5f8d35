"""A question is known by what it asks: not by being the same object, nor by lists of the same lengths."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from ownview.base.errors import SettingError
from ownview.blends.blend import Blend
from ownview.data import Interactions
from ownview.data.questions import Question
from ownview.data.ragged import Ragged
from ownview.data.splitting.splits import Split
from ownview.data.timeline import Timeline
from ownview.engine.machine import machine
from ownview.evaluation.named_protocols import HONEST, NEXT_SITTING
from ownview.federation.options import FederationOptions
from ownview.registry import build
from ownview.runs.training.trainer import Trainer
from ownview.runs.training.trainers import trainer
from tests.shop import shop


def _sittings() -> Interactions:
    """Twenty people with a sitting of two items every ten days."""
    random, day = np.random.default_rng(0), 86_400
    user = np.repeat(np.arange(20), 16)
    item = np.concatenate([random.choice(40, 16, replace=False) for _ in range(20)])
    time = np.tile(np.repeat(np.arange(8) * 10 * day, 2) + np.tile([0, 60], 8), 20) + user * 3600
    return Interactions.from_rows("sittings", user, item, timestamp=time)


def _trained(name: str, split: Split) -> Trainer:
    made = trainer(build(name, {}), split, HONEST, FederationOptions(), 0, machine("cpu"))
    made.round(1)
    return made


def _scores(made: Trainer, question: Question) -> torch.Tensor:
    return made.asked(question).scores(torch.from_numpy(question.users), None)


def test_a_copy_of_validation_is_answered_by_the_model_that_trained_on_less() -> None:
    """It went to the model that is tested, which has trained on the answers."""
    split = NEXT_SITTING.prepare(_sittings())
    made = _trained("ease", split)
    assert split.earlier is not None
    copied = replace(split.validation)
    assert torch.equal(_scores(made, copied), _scores(made, split.validation))
    assert _scores(made, copied).shape[1] == split.earlier.num_items


def _with_other_items(split: Split) -> Question:
    """Everybody has as many items as before, and others: those of the user before."""
    known = split.test.known.items
    lists = [known.of(user) for user in range(len(known))]
    turned = [lists[user - 1][: len(one)] for user, one in enumerate(lists)]
    turned = [torch.cat([one, own[: len(own) - len(one)]]) for one, own in zip(turned, lists, strict=True)]
    items = Ragged(known.offsets, torch.cat(turned))
    assert torch.equal(items.lengths, known.lengths)
    return replace(split.test, known=Timeline(items, split.test.known.times, split.test.known.now))


@pytest.mark.parametrize("name", ["ials", "fedials"])
def test_other_items_of_the_same_number_are_other_items(name: str) -> None:
    """Lists of the same lengths were taken for what the model was trained on, and its old vectors answered."""
    split = HONEST.prepare(shop())
    made = _trained(name, split)
    other = _with_other_items(split)
    longer = other.known.items.lengths.clone()
    longer[0] += 1  # one more item of one user, and nobody takes the lists for those of training
    items = other.known.items
    extra = torch.cat([items.of(0), items.of(0)[-1:], items.values[items.offsets[1] :]])
    offsets = torch.cat([items.offsets[:1], longer.cumsum(0)])
    times = other.known.times
    assert times is not None
    clock = torch.cat([times.of(0), times.of(0)[-1:], times.values[times.offsets[1] :]])
    expected = replace(other, known=Timeline(Ragged(offsets, extra), Ragged(offsets, clock), other.known.now))
    assert torch.allclose(_scores(made, other)[1:], _scores(made, expected)[1:], atol=1e-6)


def test_the_same_items_in_another_order_are_the_same() -> None:
    lists = Ragged.from_pairs(np.array([0, 0, 1, 2, 2]), np.array([4, 2, 0, 1, 1]), 4)
    assert lists.same_items(Ragged.from_pairs(np.array([0, 0, 1, 2, 2]), np.array([2, 4, 0, 1, 1]), 4))
    assert not lists.same_items(Ragged.from_pairs(np.array([0, 0, 1, 2, 2]), np.array([2, 4, 0, 1, 3]), 4))
    assert not lists.same_items(Ragged.from_pairs(np.array([0, 1, 1, 2, 2]), np.array([2, 4, 0, 1, 1]), 4))
    empty = Ragged(torch.zeros(3, dtype=torch.long), torch.zeros(0, dtype=torch.long))
    assert empty.same_items(empty)


def test_own_weights_of_clients_are_refused_where_validation_asks_other_clients() -> None:
    """The earlier model's clients have other positions: their weights would go to other users."""
    split = NEXT_SITTING.prepare(_sittings())
    model = Blend(parts=("popularity", "ease"), own=1.0)
    made = trainer(model, split, NEXT_SITTING, FederationOptions(), 0, machine("cpu"))
    made.round(1)
    with pytest.raises(SettingError, match="validation asks an earlier model here"):
        made.asked(split.test)
