"""Mistakes in a method of one's own are named before training starts."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from torch import Tensor

from ownview import Adam, FedMF, Method, Params, Phase, Step, World
from ownview.errors import SettingError, TrainingError
from ownview.testing import federation, small_world
from ownview.types import Batch, Context


@dataclass(frozen=True)
class WrongName(FedMF):
    def phases(self, world: World) -> tuple[Phase, ...]:
        return (Phase((Step(("usr", "items"), Adam(0.1)),), 1),)


@dataclass(frozen=True)
class NothingMoves(FedMF):
    def phases(self, world: World) -> tuple[Phase, ...]:
        return ()


@dataclass(frozen=True)
class WrongShape(FedMF):
    def scores(self, p: Params) -> Tensor:
        return (p["items"] @ p["user"])[:, None]


@dataclass(frozen=True)
class Misspelt(FedMF):
    def scores(self, p: Params) -> Tensor:
        return p["items"] @ p["usr"]


@pytest.mark.parametrize(
    ("method", "message"),
    [
        (WrongName(), r"moves a parameter 'usr' it does not have; did you mean 'user'"),
        (NothingMoves(), "no phase with a step"),
        (WrongShape(), r"came as \(3, 1\); expected shape \(3,\)"),
        (Misspelt(), "cannot score 3 rows: KeyError: 'usr'"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Method) else "",
)
def test_a_mistake_is_named(method: Method, message: str) -> None:
    with pytest.raises(SettingError, match=message):
        federation(method, small_world())


@dataclass(frozen=True)
class BadLoss(FedMF):
    def loss(self, p: Params, batch: Batch, context: Context) -> Tensor:
        return super().loss(p, batch, context) + p["nothing"]


@pytest.mark.parametrize(("engine", "who"), [("loop", "on client"), ("vector", "run it with --engine loop")])
def test_a_loss_that_fails_is_named_in_both_engines(engine: str, who: str) -> None:
    one = federation(BadLoss(), small_world(), engine=engine)
    with pytest.raises(TrainingError, match=rf"fedmf failed .*{who}"):
        one.round(1)
