"""MF, NCF and LightGCN against arithmetic done another way; the world leaves no choice of negatives to chance."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import nn

from ownview import MF, NCF, LightGCN
from ownview.base.randomness import derive
from ownview.baselines.lightgcn import adjacency, smooth
from ownview.baselines.parts.central import Asked, Central, InEpochs, Lessons
from ownview.baselines.parts.epoch_samples import labelled, paired_batches
from ownview.data.interactions import Interactions
from ownview.data.negatives import NegativeSampler
from ownview.data.ragged import Ragged
from ownview.data.splitting.splits import Split
from ownview.data.timeline import Timeline
from ownview.engine.machine import Machine
from ownview.evaluation.named_protocols import HONEST, PAPER
from ownview.federation.options import FederationOptions
from ownview.runs.training.trainers import EpochTrainer, trainer
from ownview.testing.worlds import block_world, small_world
from tests.methods.golden import ITEMS, POSITIVES, dot, error, golden_split
from tests.questions import about, split_by_hand

CPU = torch.device("cpu")
SMALL: list[InEpochs] = [
    MF(embedding_size=8, batch_size=256, learning_rate=0.01),
    NCF(embedding_size=16, batch_size=256, learning_rate=0.01),
    LightGCN(embedding_size=8, batch_size=256, learning_rate=0.01),
]


def lessons_of(split: Split, seed: int = 3) -> Lessons:
    return Lessons.of(split, split.training_items(), seed, CPU)


def two_by_three() -> Lessons:
    """User 0 has items 0 and 1, user 1 has item 1; item 2 belongs to nobody."""
    data = Interactions.from_rows("tiny", np.array([0, 0, 0, 1, 1, 1]), np.array([0, 1, 2, 1, 0, 2]))
    train = Ragged.from_pairs(np.array([0, 0, 1]), np.array([0, 1, 1]), 2)
    return lessons_of(split_by_hand(data, train, [2, 0], [2, 2]))


def test_the_first_two_epochs_of_mf_by_hand() -> None:
    """All twelve samples in one batch. Adam's moments, corrected for their start, are worked out here."""
    lessons, model = lessons_of(golden_split()), MF(embedding_size=2, negatives=2, learning_rate=0.1, decay=0.3)
    values = model.start(lessons)
    users, items = values["users"].double().tolist(), values["items"].double().tolist()
    first = {(name, row, j): 0.0 for name, n in (("u", 2), ("q", ITEMS)) for row in range(n) for j in range(2)}
    second = dict(first)
    for step in (1, 2):
        grads = dict.fromkeys(first, 0.0)
        for u in range(2):
            for i in range(ITEMS):
                count = 1 if i in POSITIVES[u] else 2
                wrong = error(u, i, dot(users[u], items[i])) * 6 / 12
                for j in range(2):
                    grads["u", u, j] += wrong * items[i][j] + 0.3 * count / 12 * users[u][j]
                    grads["q", i, j] += wrong * users[u][j] + 0.3 * count / 12 * items[i][j]
        for (name, row, j), grad in grads.items():
            at = (name, row, j)
            first[at], second[at] = 0.9 * first[at] + 0.1 * grad, 0.999 * second[at] + 0.001 * grad**2
            move = (first[at] / (1 - 0.9**step)) / (math.sqrt(second[at] / (1 - 0.999**step)) + 1e-8)
            (users if name == "u" else items)[row][j] -= 0.1 * move
        model.epoch(values, lessons, step)
        assert values["users"].numpy() == pytest.approx(np.array(users), abs=1e-5)
        assert values["items"].numpy() == pytest.approx(np.array(items), abs=1e-5)
    expected = [[dot(users[u], items[i]) for i in range(ITEMS)] for u in (1, 0)]
    assert model.scores(values, about(golden_split(), 1, 0)).numpy() == pytest.approx(np.array(expected), abs=1e-5)


def test_ncf_is_a_network_over_both_vectors() -> None:
    """Scores and two steps, against PyTorch's own layers and its own Adam."""
    lessons = lessons_of(golden_split())
    model = NCF(embedding_size=4, negatives=2, learning_rate=0.01, decay=0.2)
    values = model.start(lessons)
    users, items = nn.Embedding(2, 4), nn.Embedding(ITEMS, 4)
    linear = [nn.Linear(8, 4), nn.Linear(4, 2), nn.Linear(2, 1), nn.Linear(1, 1)]
    layers = nn.Sequential(linear[0], nn.ReLU(), linear[1], nn.ReLU(), linear[2], nn.ReLU(), linear[3])
    with torch.no_grad():
        users.weight.copy_(values["users"])
        items.weight.copy_(values["items"])
        for depth, layer in enumerate(linear):
            layer.weight.copy_(values[f"weight{depth}"].T)
            layer.bias.copy_(values[f"bias{depth}"])
    theirs = torch.optim.Adam([*users.parameters(), *items.parameters(), *layers.parameters()], lr=0.01)
    sampler = NegativeSampler(lessons.excluded, ITEMS, 2)
    for epoch in (1, 2):
        who, what, labels = labelled(lessons.train, sampler, derive(3, "negatives", epoch))
        u, q = users(who), items(what)
        output = layers(torch.cat([u, q], dim=-1)).squeeze(-1)
        penalty = 0.2 * (u.square().sum(-1) + q.square().sum(-1)).mean() / 2
        theirs.zero_grad()
        (nn.functional.binary_cross_entropy_with_logits(output, labels) + penalty).backward()
        theirs.step()
        model.epoch(values, lessons, epoch)
    assert torch.allclose(values["users"], users.weight, atol=1e-5)
    assert torch.allclose(values["weight0"].T, linear[0].weight, atol=1e-5)
    pairs = torch.cat([users.weight[:, None].expand(2, ITEMS, 4), items.weight.expand(2, ITEMS, 4)], dim=-1)
    assert torch.allclose(model.scores(values, about(golden_split())), layers(pairs).squeeze(-1), atol=1e-5)


def test_smoothing_by_hand_on_two_users_and_three_items() -> None:
    """Degrees: user 0 two, user 1 one; item 0 one, item 1 two, item 2 none."""
    lessons = two_by_three()
    edge00, edge01, edge11 = 1 / math.sqrt(2 * 1), 1 / math.sqrt(2 * 2), 1 / math.sqrt(1 * 2)
    graph = adjacency(lessons)
    assert graph.to_dense().numpy() == pytest.approx(
        np.array(
            [
                [0, 0, edge00, edge01, 0],
                [0, 0, 0, edge11, 0],
                [edge00, 0, 0, 0, 0],
                [edge01, edge11, 0, 0, 0],
                [0, 0, 0, 0, 0],
            ]
        )
    )
    u0, u1, i0, i1, i2 = 1.0, 2.0, 3.0, 5.0, 7.0
    once = (edge00 * i0 + edge01 * i1, edge11 * i1, edge00 * u0, edge01 * u0 + edge11 * u1, 0.0)
    twice = (
        edge00 * once[2] + edge01 * once[3], edge11 * once[3], edge00 * once[0], edge01 * once[0] + edge11 * once[1], 0,
    )  # fmt: skip
    start = torch.tensor([[u0], [u1], [i0], [i1], [i2]])
    expected = [sum(parts) / 3 for parts in zip((u0, u1, i0, i1, i2), once, twice, strict=True)]
    assert smooth(graph, start, 2)[:, 0].tolist() == pytest.approx(expected, rel=1e-5)
    assert torch.equal(smooth(graph, start, 0), start)
    model = LightGCN(embedding_size=1, layers=2)
    learned = model.learned({"vectors": start}, lessons)
    scores = model.scores(learned, Asked(torch.tensor([1]), Timeline(lessons.train)))[0]
    assert scores.tolist() == pytest.approx([expected[1] * item for item in expected[2:]], rel=1e-5)


def test_lightgcn_moves_as_autograd_through_the_smoothing_would() -> None:
    split = small_world()
    lessons, model = lessons_of(split), LightGCN(embedding_size=4, batch_size=40, decay=0.05)
    values, n = model.start(lessons), split.num_users
    theirs = values["vectors"].clone().requires_grad_()
    adam, graph = torch.optim.Adam([theirs], lr=model.learning_rate), adjacency(lessons).to_dense()
    for epoch in (1, 2):
        for users, items, others in paired_batches(lessons, epoch, 40):
            smoothed = sum(torch.linalg.matrix_power(graph, k) @ theirs for k in range(4)) / 4
            gap = (smoothed[users] * (smoothed[n + items] - smoothed[n + others])).sum(-1)
            touched = theirs[torch.cat([users, n + items, n + others])]
            loss = -nn.functional.logsigmoid(gap).mean() + 0.05 / 2 * touched.square().sum() / len(users)
            adam.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            adam.step()
        model.epoch(values, lessons, epoch)
    assert torch.allclose(values["vectors"], theirs, atol=1e-5)


@pytest.mark.parametrize("model", SMALL, ids=lambda model: model.name)
def test_overfits_what_it_is_trained_on(model: InEpochs) -> None:
    """The loss falls to six tenths at most, and training items come before most others."""
    split = block_world(groups=2, users=20, items=20, per_user=12)
    lessons = lessons_of(split)
    values = model.start(lessons)
    losses = [model.epoch(values, lessons, number) for number in range(1, 61)]
    assert losses[-1] < 0.6 * losses[0]
    every = model.scores(model.learned(values, lessons), about(split))
    own = torch.zeros(every.shape, dtype=torch.bool)
    own[torch.repeat_interleave(torch.arange(split.num_users), lessons.items.lengths), lessons.items.values] = True
    above = (every[own].reshape(split.num_users, -1, 1) > every[~own].reshape(split.num_users, 1, -1)).double().mean()
    assert float(above) > 0.8


@pytest.mark.parametrize("model", SMALL, ids=lambda model: model.name)
def test_negatives_are_those_a_federation_draws(model: Central) -> None:
    """Under `paper` a held-out item is never drawn, under `honest` it is: the lessons carry the protocol's word."""
    split = small_world()
    for protocol, drawn_at_all in ((PAPER, False), (HONEST, True)):
        at_work = trainer(model, split, protocol, FederationOptions(), 0, Machine(CPU))
        assert isinstance(at_work, EpochTrainer)
        held_out, trained = 0, 0
        for number in range(1, 7):
            for users, _, others in paired_batches(at_work.lessons, number, 64):
                for u, j in zip(users.tolist(), others.tolist(), strict=True):
                    held_out += j in (*split.test.answers(u), *split.validation.answers(u))
                    trained += j in split.train.of(u).tolist()
        assert (held_out > 0) == drawn_at_all
        assert trained == 0
