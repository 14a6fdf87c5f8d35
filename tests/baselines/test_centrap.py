"""CentRAP: one step by hand, that it learns, repeats, and respects what may not be drawn as a negative."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

import ownview as ov
from ownview import CentRAP
from ownview.base.errors import DeviceError
from ownview.base.randomness import derive
from ownview.baselines.centrap import _start
from ownview.baselines.parts.epoch_samples import labelled
from ownview.data.negatives import NegativeSampler
from ownview.data.splitting.splits import Split
from ownview.engine.machine import Machine
from ownview.evaluation.metrics import hit_rate
from ownview.evaluation.named_protocols import HONEST, PAPER
from ownview.evaluation.protocol import Protocol
from ownview.evaluation.ranking import rankers
from ownview.runs.training.trainer import Trainer
from ownview.runs.training.trainers import trainer
from ownview.testing import block_world, federation, small_world
from tests.methods.golden import POSITIVES, dot, error, golden_split
from tests.questions import about

CPU = Machine(torch.device("cpu"))


def test_two_epochs_by_hand() -> None:
    """All twelve samples of the two users in one batch."""
    split = golden_split()
    method = CentRAP(
        embedding_size=2, epochs=2, negatives=2, network_rate=0.01, own_rate=0.07, common_rate=0.04, epoch_decay=0.9,
        apart=0.3, sparse=0.2,
    )  # fmt: skip
    start = _start(split, 2, seed=3)
    w, b, common = start["weight"].tolist(), start["bias"].tolist(), start["common"].tolist()
    own = [start["start"].tolist() for _ in range(2)]
    for epoch in (1, 2):
        strength, decay = math.tanh(epoch / 10), 0.9 ** (epoch - 1)
        moved_w, moved_b = [row[:] for row in w], b[:]
        moved_own, moved_common = [[row[:] for row in table] for table in own], [row[:] for row in common]
        for u in range(2):
            for i in range(4):
                table = [own[u][i][j] + common[i][j] for j in range(2)]
                wrong = error(u, i, dot(w[u], table) + b[u]) * 6
                count = 1 if i in POSITIVES[u] else 2
                moved_b[u] -= 0.01 * decay * wrong
                for j in range(2):
                    pull = 0.3 * strength * count * 2 * (own[u][i][j] - common[i][j]) / 2
                    shrink = 0.2 * strength * count * math.copysign(1, common[i][j]) / 2
                    moved_w[u][j] -= 0.01 * decay * wrong * table[j]
                    moved_own[u][i][j] -= 0.07 * decay * (wrong * w[u][j] - pull)
                    moved_common[i][j] -= 0.04 * decay * (wrong * w[u][j] + pull + shrink)
        w, b, own, common = moved_w, moved_b, moved_own, moved_common
    learned = method.fit(split, split.training_items(), seed=3)
    assert learned["common"].numpy() == pytest.approx(np.array(common), abs=1e-5)
    assert learned["weight"].numpy() == pytest.approx(np.array(w), abs=1e-5)
    expected = [[dot(w[u], [own[u][i][j] + common[i][j] for j in range(2)]) + b[u] for i in range(4)] for u in range(2)]
    assert method.scores(learned, about(split, 1, 0)).numpy() == pytest.approx(np.array(expected[::-1]), abs=1e-5)


def _fitted(method: CentRAP, split: Split, protocol: Protocol = HONEST, seed: int = 0) -> Trainer:
    model = trainer(method, split, protocol, ov.FederationOptions(), seed, CPU)
    model.round(1)
    return model


def test_learns_the_groups_of_a_block_world() -> None:
    split = block_world()
    model = _fitted(CentRAP(epochs=30, batch_size=512), split)
    _, test = rankers(HONEST, split, seed=0, device=CPU.device, memory=10**8)
    reached, chance = float(np.mean(hit_rate(test.rank(model.asked(split.test)), 10))), 10 / (split.num_items - 18)
    assert reached > 3 * chance


def test_equal_seeds_give_equal_values_and_others_do_not() -> None:
    split, method = small_world(), CentRAP(epochs=2, embedding_size=4, batch_size=64)
    scores = [
        _fitted(method, split, seed=seed).asked(split.test).scores(torch.arange(split.num_users), None)
        for seed in (0, 0, 1)
    ]
    assert torch.equal(scores[0], scores[1])
    assert not torch.equal(scores[0], scores[2])


def test_start_and_negatives_are_those_of_fedrap() -> None:
    """Same initial values, same exclusions, same draws: what differs from FedRAP is who learns from them."""
    split = small_world()
    one = federation(ov.FedRAP(), split, dtype=torch.float32)
    start, clients = _start(split, 32, seed=0), one.predicting(torch.arange(split.num_users), None)[0]
    assert torch.equal(start["common"], one.server.shared["common"])
    assert torch.equal(start["weight"], clients["weight"])
    assert torch.equal(start["bias"], clients["bias"])
    assert torch.equal(start["start"].expand_as(clients["own"]), clients["own"])
    drawn = one.work.samples(1, torch.arange(split.num_users))
    expected = sorted(
        (u, int(drawn.items[u, row]), float(label))
        for u in range(split.num_users)
        for row, label in zip(drawn.rows[u, : drawn.sizes[u]], drawn.labels[u, : drawn.sizes[u]], strict=True)
    )
    sampler = NegativeSampler(split.training_items(), split.num_items, 4)
    users, items, labels = labelled(split.train, sampler, derive(0, "negatives", 1))
    assert sorted(zip(users.tolist(), items.tolist(), labels.tolist(), strict=True)) == expected


def test_a_protocol_decides_whether_held_out_items_are_drawn() -> None:
    """A held-out item starts as every other; only as a negative could its private row ever move."""
    split = small_world()
    method = CentRAP(epochs=5, embedding_size=4, network_rate=1e-12, common_rate=1e-12, apart=0)
    users = torch.arange(split.num_users)
    held_out = split.test.relevant.values[:, None]
    untrained = method.scores(_untrained(split), about(split)).gather(1, held_out)
    paper = _fitted(method, split, PAPER).asked(split.test).scores(users, held_out)
    honest = _fitted(method, split, HONEST).asked(split.test).scores(users, held_out)
    assert torch.allclose(paper, untrained, atol=1e-4)
    assert float((honest < untrained - 1e-2).double().mean()) > 0.5


def _untrained(split: Split) -> ov.Params:
    start = _start(split, 4, seed=0)
    return {**{name: start[name] for name in ("weight", "bias", "common")}, "own": start["weight"] @ start["start"].T}


def test_tables_that_do_not_fit_are_refused_before_they_are_made() -> None:
    split = small_world()
    small = Machine(torch.device("cpu"), memory=10_000)
    with pytest.raises(DeviceError, match=r"centrap's standing values need 177 kB and .* 10 kB; raise --memory"):
        trainer(CentRAP(), split, HONEST, ov.FederationOptions(), 0, small)
