"""In which order clients see their samples, and that a negative keeps the positive it was drawn for."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import ClassVar

import pytest
import torch
from torch import Tensor

from ownview import Batch, Constant, Context, Method, Param, Params, Phase, Sgd, Step, World, private, shared, table
from ownview.round.federation import Federation
from ownview.testing.worlds import federation, small_world

NEGATIVES, EPOCHS = 2, 2
NOTEBOOKS = ("rows", "partners", "labels")
LENGTH = 1500
"""More than any client writes down in a round."""

Sample = tuple[int, int, int]
"""Row, the row it was drawn for, and label."""


@dataclass(frozen=True)
class WritesDown(Method):
    """Clients learn nothing: a step of SGD at rate 1 writes the batch into notebooks, in front of what is there."""

    name: ClassVar[str] = "writes-down"
    title: ClassVar[str] = "WritesDown"
    summary: ClassVar[str] = "writes its batches down"
    pairs: ClassVar[bool] = True
    parts: tuple[str, ...] = ("all",)

    def params(self, world: World) -> dict[str, Param]:
        blank = Constant(-1.0)
        return {"items": table(shared()), **{name: private(LENGTH, initial=blank) for name in NOTEBOOKS}}

    def phases(self, world: World) -> tuple[Phase, ...]:
        step = Step(NOTEBOOKS, Sgd(1.0))
        return tuple(Phase((step,), EPOCHS, part=part) for part in self.parts)

    def scores(self, p: Params) -> Tensor:
        return p["items"]

    def loss(self, p: Params, batch: Batch, context: Context) -> Tensor:
        """Its gradient is what is there less what shall be; padding is written as -1."""
        written = zip(NOTEBOOKS, (batch.rows, batch.partners, batch.labels), strict=True)
        total = torch.zeros((), dtype=p["rows"].dtype)
        for name, values in written:
            before = p[name].detach()
            new = torch.where(batch.mask > 0, values.to(before.dtype), -1.0)
            after = torch.cat([new.flip(0), before[: len(before) - len(new)]])
            total = total + ((before - after) * p[name]).sum()
        return total


def _written(one: Federation, client: int) -> list[Sample]:
    """What the client wrote down last, oldest first."""
    rows, partners, labels = (one.clients.own[name][client].flip(0).long().tolist() for name in NOTEBOOKS)
    return [sample for sample in zip(rows, partners, labels, strict=True) if sample[0] >= 0]


def _drawn(one: Federation, number: int, client: int) -> list[Sample]:
    """What was drawn for the client: every positive is followed by its negatives."""
    samples = one.work.samples(number, torch.tensor([client]))
    rows = samples.rows[0].reshape(-1, 1 + NEGATIVES).tolist()
    return [(row, group[0], int(place == 0)) for group in rows for place, row in enumerate(group)]


def _federation(engine: str, batch_size: int, *parts: str) -> Federation:
    method = WritesDown(negatives=NEGATIVES, batch_size=batch_size, parts=parts or ("all",))
    return federation(method, small_world(num_users=12), engine=engine, seed=5)


def _epochs(written: list[Sample], size: int) -> list[list[Sample]]:
    return [written[start : start + size] for start in range(0, len(written), max(size, 1))]


ENGINES = pytest.mark.parametrize("engine", ["loop", "vector"])
SIZES = pytest.mark.parametrize("batch_size", [1, 7, 1000])


@ENGINES
@SIZES
def test_every_epoch_passes_over_every_sample_with_the_positive_it_was_drawn_for(engine: str, batch_size: int) -> None:
    one = _federation(engine, batch_size)
    one.round(1)
    for client in range(one.world.num_clients):
        drawn, written = _drawn(one, 1, client), _written(one, client)
        assert len(written) == EPOCHS * len(drawn)
        for epoch in _epochs(written, len(drawn)):
            assert Counter(epoch) == Counter(drawn)


@ENGINES
def test_every_epoch_client_and_round_has_an_order_of_its_own(engine: str) -> None:
    """Places, not rows: two epochs of the same samples tell the order by what stands where."""
    one = _federation(engine, batch_size=4)
    orders = []
    for number in (1, 2):
        one.clients.keep(
            torch.arange(one.world.num_clients),
            {name: torch.full((one.world.num_clients, LENGTH), -1.0, dtype=torch.float64) for name in NOTEBOOKS},
        )
        one.round(number)
        for client in range(one.world.num_clients):
            drawn = _drawn(one, number, client)
            epochs = _epochs(_written(one, client), len(drawn))
            if len(drawn) > 10:  # among few samples two orders may be equal by chance
                assert len({tuple(epoch) for epoch in epochs}) == EPOCHS
                assert all(epoch != drawn for epoch in epochs)
                orders.append(tuple(sample[2] for sample in epochs[0]))
    assert len(orders) > 15
    assert len(set(orders)) == len(orders), "where positives stand differs between clients and rounds"


@ENGINES
@SIZES
def test_halves_keep_positives_and_their_negatives_together(engine: str, batch_size: int) -> None:
    one = _federation(engine, batch_size, "support", "query")
    one.round(1)
    for client in range(one.world.num_clients):
        drawn, written = _drawn(one, 1, client), _written(one, client)
        positives = len(drawn) // (1 + NEGATIVES)
        support = (positives + 1) // 2 * (1 + NEGATIVES)
        query = len(drawn) - support
        halves = _epochs(written[: EPOCHS * support], support), _epochs(written[EPOCHS * support :], query)
        assert [len(epochs) for epochs in halves] == [EPOCHS, EPOCHS if query else 0]
        for epochs in halves:
            assert all(Counter(epoch) == Counter(epochs[0]) for epoch in epochs)
        assert sum((Counter(epochs[0]) for epochs in halves if epochs), Counter()) == Counter(drawn)
        for epochs in (epochs for epochs in halves if epochs):
            there = {row for row, _, label in epochs[0] if label}
            assert {partner for _, partner, _ in epochs[0]} == there, "negatives are in the half of their positive"


def test_nobody_is_told_who_does_not_ask() -> None:
    @dataclass(frozen=True)
    class Alone(WritesDown):
        pairs: ClassVar[bool] = False

        def loss(self, p: Params, batch: Batch, context: Context) -> Tensor:
            assert batch.partners.shape == (0,)
            return p["rows"].sum()

    one = federation(Alone(), small_world(), engine="loop")
    one.round(1)
    assert one.work.samples(1, torch.arange(3)).partners.shape == (3, 0)
