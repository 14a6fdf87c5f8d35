"""Central models of order: SASRec is FedSASRec's twin, SLIST its formula; neither works without order."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from ownview import SLIST, FederationOptions, FedSASRec, SASRec
from ownview.base.errors import SettingError
from ownview.baselines import sasrec
from ownview.baselines.parts.central import Asked, Lessons
from ownview.baselines.sasrec import log_sum_slopes
from ownview.data.interactions import Interactions
from ownview.data.splitting.splits import Split, leave_one_out
from ownview.registry import Model
from ownview.seam.training import Params
from ownview.testing.checks import at_work
from ownview.testing.worlds import federation, small_world

CPU = torch.device("cpu")


def lessons_of(split: Split) -> Lessons:
    return Lessons.of(split, split.training_items(), 0, CPU)


def after_an_epoch(model: SASRec, split: Split) -> Params:
    """In double precision."""
    values = {name: value.double() for name, value in model.start(lessons_of(split)).items()}
    model.epoch(values, lessons_of(split), 1)
    return values


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"negatives": 7},
        {"horizon": 1.5},
        {"label_smoothing": 0.2, "item_dropout": 0.3},
        {"frequency": 0.6, "waves": 2, "widening": 2},
        {"relative": True, "temperature": 0.3},
        {"relative": True, "temperature": 0.3, "negatives": 7, "frequency": 0.4, "waves": 2},
        {"embedding_size": 64, "length": 3},  # what is sent is longer than its factors
        {"embedding_size": 64, "length": 3, "relative": True, "temperature": 0.3, "horizon": 1.5, "item_dropout": 0.3},
        {"temperature": 0.3, "exclude_seen": True, "r_drop": 0.5, "decay_steps": 3},
        {"embedding_size": 64, "length": 3, "r_drop": 0.5, "horizon": 1.5, "label_smoothing": 0.2},
        {"prefixes": True, "drawn": 3},
        {"prefixes": True, "negatives": 7},
        {"prefixes": True, "frequency": 0.7, "horizon": 1.5, "label_smoothing": 0.2, "item_dropout": 0.3},
        {"prefixes": True, "relative": True, "temperature": 0.3, "horizon": 1.5, "label_smoothing": 0.2},
    ],
)
def test_three_cohorts_are_three_batches(more: dict[str, Any]) -> None:
    """Dropout and all: a cohort's summed gradients are those of a batch, and the server's Adam is the central one."""
    settings: dict[str, Any] = {"embedding_size": 8, "length": 9, "learning_rate": 0.01, **more}
    split = small_world()
    apart = federation(FedSASRec(**settings), split, options=FederationOptions(clients="turns:8"))
    for number in (1, 2, 3):
        apart.round(number)
    together = after_an_epoch(SASRec(**settings, batch_size=8), split)
    start = SASRec(**settings).start(lessons_of(split))
    assert set(apart.server.shared) == set(SASRec(**settings).network.names)
    for name, value in apart.server.shared.items():
        assert float((value - together[name]).abs().max()) < 1e-10, name
        assert float((value - start[name]).abs().max()) > 1e-3, name
        assert float((apart.server.held[f"second.{name}"] - together[f"adam.second.{name}"]).abs().max()) < 1e-10
    scores = SASRec(**settings).scores(together, Asked(torch.arange(split.num_users), split.test.known))
    one = at_work(FedSASRec(**settings), split)
    assert one.federation is not None
    one.federation.server.shared = {name: value.float() for name, value in apart.server.shared.items()}
    found = one.asked(split.test).scores(torch.arange(split.num_users), None)
    assert float((found - scores).abs().max()) < 1e-4


def test_scores_are_never_all_written_out_and_the_slopes_are_those_of_what_is_summed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    random = torch.Generator().manual_seed(0)
    hidden, items = (torch.randn(size, 5, generator=random, dtype=torch.float64) for size in (17, 11))
    moving = [one.clone().requires_grad_() for one in (hidden, items)]
    loss = torch.logsumexp(moving[0] @ moving[1].T, -1).sum()
    slopes = torch.autograd.grad(loss, moving)
    for cells in (2**20, 3 * 11):  # all positions at once, three at a time
        monkeypatch.setattr(sasrec, "_CELLS", cells)
        total, to_hidden, to_items = log_sum_slopes(hidden[None], items)
        assert float(total) == pytest.approx(float(loss.detach()), abs=1e-12)
        assert float((to_hidden[0] - slopes[0]).abs().max()) < 1e-12
        assert float((to_items - slopes[1]).abs().max()) < 1e-12


def test_sasrec_sees_no_more_than_its_length_and_heeds_order() -> None:
    """The same last items give the same scores whatever came before; in another order they give others."""
    model = SASRec(embedding_size=8, length=4)
    values = model.start(lessons_of(small_world()))
    network, real = model.network, torch.ones(6)
    rows = torch.tensor([9, 8, 1, 2, 3, 4])
    first, other, turned = (
        network.scores(values, one, real) for one in (rows, rows.index_fill(0, torch.tensor([0, 1]), 7), rows.flip(0))
    )
    assert torch.equal(first, other)
    assert not torch.allclose(first, turned)
    padded = network.scores(values, torch.cat([rows, rows]), torch.cat([real, torch.zeros(6)]))
    assert torch.allclose(first, padded, atol=1e-6)


def test_slist_is_its_formula() -> None:
    split, a, decay, recency, strength = small_world(), 0.3, 1.5, 3.0, 2.0
    m = split.num_items
    lines = [split.timeline.items.of(user).tolist() for user in range(split.num_users)]
    past, future, whole = [], [], np.zeros((len(lines), m))
    for user, line in enumerate(lines):
        whole[user, line] = 1
        for cut in range(1, len(line)):
            before, after = np.zeros(m), np.zeros(m)
            before[line[:cut]] = np.exp(-np.arange(cut)[::-1] / decay)
            after[line[cut:]] = np.exp(-np.arange(len(line) - cut) / decay)
            past.append(np.where(before < 1e-3, 0, before))
            future.append(np.where(after < 1e-3, 0, after))
    s, t = np.array(past), np.array(future)
    left = a * whole.T @ whole + (1 - a) * s.T @ s + strength * np.eye(m)
    weights = np.linalg.solve(left, a * whole.T @ whole + (1 - a) * s.T @ t)
    asked = np.zeros((len(lines), m))
    for user, line in enumerate(lines):
        asked[user, line] = np.exp(-np.arange(len(line))[::-1] / recency)
    model = SLIST(strength=strength, whole=a, decay=decay, recency=recency)
    learned = model.fit(split, split.training_items(), seed=0)
    found = model.scores(learned, Asked(torch.arange(split.num_users), split.timeline))
    assert found.double().numpy() == pytest.approx(asked @ weights, abs=1e-5)


@pytest.mark.parametrize("model", [SASRec(), SLIST(), FedSASRec()], ids=lambda model: model.name)
def test_without_order_there_is_no_next_item(model: Model) -> None:
    users, items = np.repeat(np.arange(5), 6), np.arange(30) % 11
    data = Interactions.from_rows("untimed", users, items)
    split = leave_one_out(data, ties="hash", untimed="random", seed=0)
    with pytest.raises(SettingError, match=f"{model.name} learns what comes next, and the data has no times"):
        at_work(model, split)  # before anything is trained or written
    ordered = leave_one_out(data, ties="rows", untimed="rows", seed=0)
    at_work(model, ordered).round(1)
