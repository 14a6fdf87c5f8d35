"""Faults of a method of one's own are named before training, in one line."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn.functional import softplus

import ownview as ov
from ownview.base.errors import SettingError
from ownview.federation.checks.soundness import require_sound
from ownview.federation.facts import world_of
from ownview.registry import METHODS
from ownview.testing import CHECKS
from ownview.testing.worlds import small_world

WORLD = world_of(small_world(), None)


@dataclass(frozen=True)
class Faulty(ov.Method):
    """Matrix factorisation with a loss of a test's own."""

    name: ClassVar[str] = "faulty"
    summary: ClassVar[str] = "for tests"
    made: Any = None

    def params(self, world: ov.World) -> dict[str, ov.Param]:
        control = ov.table(ov.private(4, initial=ov.Constant(0.0)))
        return {"user": ov.private(4), "items": ov.table(ov.shared(4)), "control": control}

    def phases(self, world: ov.World) -> tuple[ov.Phase, ...]:
        return (ov.Phase((ov.Step(("user", "items"), ov.Sgd(0.1)),), 1),)

    def scores(self, p: ov.Params) -> Tensor:
        return p["items"] @ p["user"]

    def loss(self, p: ov.Params, batch: ov.Batch, context: ov.Context) -> Tensor:
        found: Tensor = self.made(self, p, batch)
        return found


def by_sample(method: Faulty, p: ov.Params, batch: ov.Batch) -> Tensor:
    scores = method.scores(p)[batch.rows]
    return softplus(scores) - batch.labels * scores


def unmasked(method: Faulty, p: ov.Params, batch: ov.Batch) -> Tensor:
    return by_sample(method, p, batch).mean()


def masked(method: Faulty, p: ov.Params, batch: ov.Batch) -> Tensor:
    return (by_sample(method, p, batch) * batch.mask).sum() / batch.mask.sum()


def all_rows(method: Faulty, p: ov.Params, batch: ov.Batch) -> Tensor:
    return masked(method, p, batch) + 0.1 * p["items"].square().sum()


def counted_rows(method: Faulty, p: ov.Params, batch: ov.Batch) -> Tensor:
    return masked(method, p, batch) + 0.1 * (p["items"].square().sum(1) * (batch.counts > 0)).sum()


def by_what_begins_with_nothing(method: Faulty, p: ov.Params, batch: ov.Batch) -> Tensor:
    return masked(method, p, batch) + (p["control"] * p["items"]).sum()


def by_python(method: Faulty, p: ov.Params, batch: ov.Batch) -> Tensor:
    return masked(method, p, batch) * random.random()


def by_numpy(method: Faulty, p: ov.Params, batch: ov.Batch) -> Tensor:
    return masked(method, p, batch) * float(np.random.default_rng().random())


@pytest.mark.parametrize(
    ("made", "reason"),
    [
        (unmasked, "counts samples of padding.*batch.mask"),
        (all_rows, "counts rows that no sample is about.*batch.counts"),
        (by_what_begins_with_nothing, "counts rows that no sample is about.*batch.counts"),
        (by_python, "another number when it is worked out again.*ov.chance"),
        (by_numpy, "another number when it is worked out again.*ov.chance"),
    ],
)
def test_a_faulty_loss_is_named(made: Any, reason: str) -> None:
    with pytest.raises(SettingError, match=reason) as refused:
        require_sound(Faulty(made=made), WORLD)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("made", [masked, counted_rows])
def test_a_sound_loss_passes(made: Any) -> None:
    require_sound(Faulty(made=made), WORLD)


@dataclass(frozen=True)
class Dropping(Faulty):
    """Half of the samples are left out, by chance."""

    def params(self, world: ov.World) -> dict[str, ov.Param]:
        zero = ov.Constant(0.0)
        drawn = {"luck": ov.chance(), "epoch": ov.fresh(initial=zero), "whole": ov.fresh(initial=zero)}
        return {"user": ov.private(4, initial=ov.Normal(0.5)), "items": ov.table(ov.shared(4)), **drawn}

    def phases(self, world: ov.World) -> tuple[ov.Phase, ...]:
        (phase,) = super().phases(world)
        return (replace(phase, epochs=2, opening=opened, before_epoch=lambda p, context: {"epoch": p["epoch"] + 1}),)


def opened(p: ov.Params, context: ov.Context) -> ov.Params:
    return {"whole": ov.unit(ov.bits(3, p["luck"], torch.zeros_like(p["luck"]))).float()}


def dropped(method: Faulty, p: ov.Params, batch: ov.Batch, draws: Tensor) -> Tensor:
    weights = batch.mask * (0.5 + (draws < 0.5).float())
    return (by_sample(method, p, batch) * weights).sum() / weights.sum()


def by_place(method: Faulty, p: ov.Params, batch: ov.Batch) -> Tensor:
    return dropped(method, p, batch, ov.unit(ov.bits(1, p["luck"], torch.arange(batch.rows.shape[0]))))


def by_index(method: Faulty, p: ov.Params, batch: ov.Batch) -> Tensor:
    # An index of one number alone would be read out of its tensor by PyTorch 2.6.
    return (
        masked(method, p, batch) * p["user"][ov.bits(1, p["luck"], torch.zeros(1, dtype=torch.long)) % 4].square().sum()
    )


def by_rows(method: Faulty, p: ov.Params, batch: ov.Batch) -> Tensor:
    return dropped(method, p, batch, ov.unit(ov.bits(1, p["luck"], batch.rows)))


def by_rows_and_epoch(method: Faulty, p: ov.Params, batch: ov.Batch) -> Tensor:
    return dropped(method, p, batch, ov.unit(ov.bits(1, ov.bits(0, p["luck"], p["epoch"]), batch.rows)))


def once_a_round(method: Faulty, p: ov.Params, batch: ov.Batch) -> Tensor:
    return masked(method, p, batch) * (0.5 + p["whole"])


@pytest.mark.parametrize("made", [by_place, by_index, by_rows])
def test_draws_that_repeat_in_every_batch_or_epoch_are_named(made: Any) -> None:
    with pytest.raises(
        SettingError,
        match=r"draws from 'luck' without the number.*batch\.rows and the number of the epoch",
    ) as refused:
        require_sound(Dropping(made=made), WORLD)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("made", [by_rows_and_epoch, once_a_round])
@pytest.mark.parametrize("check", ["loop equals vector", "resumes exactly"])
def test_draws_that_change_or_are_meant_for_a_round_conform(made: Any, check: str) -> None:
    CHECKS[check](Dropping(made=made))


@dataclass(frozen=True)
class Early(ov.ReportingMethod):
    """Popularity by sums; clients receive the counts, at first before there are any."""

    name: ClassVar[str] = "early"
    summary: ClassVar[str] = "for tests"
    after: bool = False

    def params(self, world: ov.World) -> dict[str, ov.Param]:
        return {"mine": ov.history(), "counts": ov.table(ov.received())}

    def sends(self, world: ov.World) -> dict[str, ov.Summand]:
        return {"counts": ov.Summand((world.num_items,), "its items")}

    def report(self, p: ov.Params, batch: ov.Batch, context: ov.Context) -> tuple[ov.Summands, ov.Params]:
        return {"counts": p["mine"]}, {}

    def combine(self, sums: ov.Params, values: ov.Params, arrived: ov.Arrived) -> ov.Params:
        return {"counts": sums["counts"]}

    def scores(self, p: ov.Params) -> Tensor:
        return p["counts"] + torch.zeros_like(p["mine"])

    def reporting(self, world: ov.World) -> ov.Reporting:
        return ov.Reporting(self.sends(world), self.report, receives_after=self.after)


def test_a_download_that_comes_before_it_is_made_is_named() -> None:
    with pytest.raises(SettingError, match=r"receive 'counts' before they report.*receives_after=True"):
        require_sound(Early(), WORLD)
    require_sound(Early(after=True), WORLD)


@pytest.mark.parametrize("name", METHODS)
def test_no_registered_method_is_called_faulty(name: str) -> None:
    require_sound(METHODS[name](), WORLD)
