"""Tensors that wait for the next round, as a GPU has them: what is trained in them is what is trained in new ones."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest
import torch

from ownview import PLGC, FedEM, FedMF, FedRAP, PFedCLR, PFedRec
from ownview.engine.engines import VectorEngine
from ownview.engine.planning import cheapest_cuts
from ownview.engine.samples import Foreseen, likely_rows
from ownview.federation.options import FederationOptions
from ownview.federation.training import TrainingWork
from ownview.round.federation import Federation
from ownview.seam.method import Federated
from ownview.testing.worlds import federation, small_world

ROUNDS = 3
METHODS: dict[str, Federated] = {
    "Adam": FedMF(batch_size=32, local_epochs=2, embedding_size=4),
    "a rate that falls with rounds": FedMF(optimizer="sgd", round_decay=0.5, batch_size=32, local_epochs=2),
    "a round in the loss, and an early stop": FedRAP(batch_size=32, local_epochs=3, stop_below=0.05),
    "two steps on a batch, one epoch": PFedRec(batch_size=32, local_epochs=1),
    "two phases": PFedCLR(batch_size=32, local_epochs=2, fresh_buffer=True),
    "an opening": FedEM(batch_size=32, local_epochs=2, embedding_size=4),
    "work before epochs": PLGC(inner=FedMF(batch_size=32, local_epochs=2, embedding_size=4), share_every="epoch"),
}


def _trained(method: Federated, *, lasting: bool, clients: str = "all") -> tuple[dict[str, torch.Tensor], VectorEngine]:
    one: Federation = federation(method, small_world(), options=FederationOptions(clients=clients))
    assert isinstance(one.work, TrainingWork)
    work: Any = one.work
    assert isinstance(work.engine, VectorEngine)
    # Both draw as a GPU does, which leaves place for rows that a later round may touch.
    work.samples = lambda number, block: work._drawn(
        work._key(number), block, Foreseen.of(block, work.home.train, work.sampler)
    )
    work.engine.at_once = work.lasting = lasting
    for number in range(1, ROUNDS + 1):
        one.round(number)
    return one.pack(), work.engine


@pytest.mark.parametrize("name", METHODS)
def test_the_same_tensors_serve_every_round(name: str) -> None:
    plain, _ = _trained(METHODS[name], lasting=False)
    lasting, engine = _trained(METHODS[name], lasting=True)
    assert engine.held
    for fit in engine.held.values():
        assert set(fit.held) == set(range(len(engine.numbers)))
        assert all(phase.once_more.calls >= ROUNDS for phase in fit.held.values()), "they must have waited"
    assert plain.keys() == lasting.keys()
    for part, value in plain.items():
        assert torch.equal(value, lasting[part]), part


def test_tensors_of_clients_that_do_not_come_again_are_let_go() -> None:
    plain, _ = _trained(METHODS["Adam"], lasting=False, clients="8")
    lasting, engine = _trained(METHODS["Adam"], lasting=True, clients="8")
    assert all(torch.equal(value, lasting[part]) for part, value in plain.items())
    held = engine.held
    engine.renew()
    assert held
    assert not engine.held


def test_stacks_are_let_go_without_pythons_collector() -> None:
    """Memory of a GPU would wait for it, and a recording breaks off where it destroys an older one meanwhile."""
    gc.collect()
    gc.disable()
    try:
        _, engine = _trained(METHODS["an opening"], lasting=True)
        fits = [weakref.ref(fit) for fit in engine.held.values()]
        assert fits
        engine.renew()
        assert not engine.held
        assert all(fit() is None for fit in fits)
    finally:
        gc.enable()


def test_nobody_touches_more_rows_than_there_is_place_for() -> None:
    work: Any = federation(METHODS["Adam"], small_world()).work
    block = work.blocks(torch.arange(len(work.home.train)))[0]
    place = Foreseen.of(block, work.home.train, work.sampler).rows
    most = [int(work.samples(number, block).num_rows.max()) for number in range(50)]
    assert max(most) <= place
    # 40 positives and 160 draws among 960: 40 + 960 (1 - e^(-1/6)) = 187.3, and 8 (sqrt(10.2) + 1) for chance.
    assert likely_rows(torch.tensor([40]), torch.tensor([960]), 4, 1000) == 224
    assert likely_rows(torch.tensor([1]), torch.tensor([3]), 2, 4) == 4


def test_where_launches_cost_nothing_everybody_is_alone_and_where_rows_do_all_are_together() -> None:
    samples = torch.tensor([1000, 500, 100, 20])
    assert cheapest_cuts(samples, 10_000, 100, 1e-12, 1.0) == [1, 2, 3, 4]
    assert cheapest_cuts(samples, 10_000, 100, 1.0, 1e-12) == [4]
    # Batches 10, 5, 1, 1 and rows of about 952, 488, 99.5, 20. Two stacks of two take 11 steps and
    # 15 x 952 + 2 x 99.5 rows, 22,174 together; one stack of all 23,178, all others more than that.
    assert cheapest_cuts(samples, 10_000, 100, 700.0, 1.0) == [2, 4]
