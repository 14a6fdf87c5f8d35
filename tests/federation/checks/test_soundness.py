"""Mistakes in a method of one's own are named before training starts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest
import torch
from torch import Tensor

from ownview import (
    Adam,
    Constant,
    FedEASE,
    FedMF,
    Method,
    Param,
    Params,
    Phase,
    Server,
    Step,
    World,
    personal,
    private,
    setting,
    shared,
    table,
)
from ownview.base.errors import SettingError, TrainingError
from ownview.round.scorers import scorer_of
from ownview.seam.training import Batch, Context
from ownview.testing.worlds import federation, small_world


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


def given_back(function: str, value: object) -> Method:
    """FedMF whose `params` or `phases` gives something else back."""
    odd: type[Method] = type("Odd", (FedMF,), {function: lambda *_: value})
    return odd()


class NoDataclass(FedMF):
    rate: float = setting(0.1, "which nobody will find")


@dataclass(frozen=True)
class ShortLoss(FedMF):
    def loss(self, p: Params, batch: Batch) -> Tensor:  # type: ignore[override]
        return super().loss(p, batch, Context(1))


@dataclass(frozen=True)
class Steered(FedMF):
    def scores(self, p: Params) -> Tensor:
        return p["items"] @ p["user"] if p["user"].sum() > 0 else p["items"] @ -p["user"]


@dataclass(frozen=True)
class SteeredLoss(FedMF):
    def loss(self, p: Params, batch: Batch, context: Context) -> Tensor:
        found = super().loss(p, batch, context)
        return found / 2 if found > 10 else found


@dataclass(frozen=True)
class LossOfSamples(FedMF):
    def loss(self, p: Params, batch: Batch, ctx: Context) -> Tensor:
        return (self.scores(p)[batch.rows] - batch.labels) ** 2


@dataclass(frozen=True)
class LossOfNothing(FedMF):
    def loss(self, p: Params, batch: Batch, context: Context) -> Tensor:
        return super().loss(p, batch, context) + p["nothing"]


def with_loss(loss: Callable[..., Any]) -> Method:
    """FedMF with another loss, which is given (p, batch)."""
    odd: type[Method] = type("Odd", (FedMF,), {"loss": lambda self, p, batch, context: loss(p, batch)})
    return odd()


def squares(p: Params, batch: Batch) -> Tensor:
    found: Tensor = (((p["items"] @ p["user"])[batch.rows] - batch.labels) ** 2 * batch.mask).sum()
    return found


ONE_STEP = Step(("user",), Adam(0.1))
LONE_STEP: Any = ONE_STEP
LONE_NAME: Any = "user"
WRONG_INITIAL: Any = 0.1
WRONG_OPTIMIZER: Any = 0.01
WRONG_EPOCHS: Any = "3"
OF_LONE_NAME = Phase((Step(LONE_NAME, Adam(0.1)),), 1)


@pytest.mark.parametrize(
    ("method", "message"),
    [
        (given_back("params", None), "it has no params; expected {'user': "),
        (given_back("params", ["user"]), "params returned a list; expected {'user': "),
        (given_back("params", {"user": 16}), "parameter 'user' is declared by an int; expected a role"),
        (given_back("phases", None), "it has no phases; expected a tuple of phases"),
        (given_back("phases", Phase((ONE_STEP,), 1)), "phases returned a Phase; expected a tuple of phases"),
        (given_back("phases", (ONE_STEP,)), "phases has a Step in it; expected a tuple of phases"),
        (given_back("phases", (Phase(LONE_STEP, 1),)), r"steps of a phase came as a Step; expected a tuple: \(STEP,\)"),
        (given_back("phases", (OF_LONE_NAME,)), r"moves 'user'; .* a tuple of names: \('user',\)"),
        (NoDataclass(), r"setting 'rate' has no value, .* put @dataclass\(frozen=True\) above class NoDataclass"),
        (ShortLoss(), r"loss takes other arguments .* expected def loss\(self, p, batch, context\)"),
        (Steered(), r"two clients .* in .*test_soundness\.py, line \d+: values steer Python .* torch.where"),
        (SteeredLoss(), r"its loss .* in .*test_soundness\.py, line \d+: values steer Python .* torch.where"),
        (LossOfSamples(), r"the loss of a batch came as shape \(4,\); expected one number, shape \(\)"),
        (LossOfNothing(), r"KeyError in .*test_soundness\.py, line \d+: no value 'nothing'; choose from items, user"),
        (with_loss(lambda p, batch: None), "loss returned nothing; expected a tensor of one number"),
        (with_loss(lambda p, batch: 0.5), "loss returned a float; expected a tensor of one number"),
        (with_loss(lambda p, batch: batch.mask.sum()), "the loss depends on no value of the client's"),
        (with_loss(lambda p, batch: squares(p, batch).sum() * torch.rand(())), r"random numbers .* ov.chance\(\)"),
        (with_loss(lambda p, batch: p["user"].detach().numpy()), "numpy cannot look into these values"),
        (with_loss(lambda p, batch: p["items"][batch.rows[batch.mask > 0]].sum()), "a shape depends on values"),
        (with_loss(lambda p, batch: p["user"].add_(1).sum()), "values are changed in place; write x = x"),
        (with_loss(lambda p, batch: squares(p, batch) + batch.items), "it has rows, labels, mask, positives, counts"),
        (with_loss(lambda p, batch: torch.topk(p["items"][:, 0], 9).values.sum()), "4 samples of 3 rows: Runtime"),
        (given_back("params", {"user": private(16, initial=WRONG_INITIAL)}), "'user' begins as a float; expected ov.N"),
        (given_back("params", {"user": private(-1)}), "'user' has a size -1; expected whole numbers from 0 on"),
        (given_back("phases", (Phase((Step(("user",), WRONG_OPTIMIZER),), 1),)), "optimizer of a step is a float; exp"),
        (given_back("by_round", 5), "by_round returned an int; expected numbers: {'weight': 0.1}"),
        (given_back("phases", (Phase((ONE_STEP,), WRONG_EPOCHS),)), "epochs of a phase are '3'; expected a whole"),
    ],
)  # fmt: skip
def test_the_first_mistakes_of_a_new_method_are_named(method: Method, message: str) -> None:
    with pytest.raises(SettingError, match=message):
        federation(method, small_world())


def test_slopes_are_looked_for_also_where_they_are_switched_off() -> None:
    with torch.no_grad():
        federation(FedMF(), small_world())


class NoNumbers(FedMF):
    def phases(self, world: World) -> tuple[Phase, ...]:
        return (Phase((Step(("user",), Adam(self.rate)),), 1),)  # type: ignore[attr-defined]


def test_what_fails_while_a_method_declares_itself_is_named_with_its_line() -> None:
    with pytest.raises(
        SettingError, match=r"cannot say what .*: AttributeError in .*test_soundness\.py, line \d+: .*rate"
    ):
        federation(NoNumbers(), small_world())


@dataclass(frozen=True)
class Learnt(FedMF):
    """A learnt popularity: nothing of a client's own is scored."""

    loss = Method.loss

    def params(self, world: World) -> dict[str, Param]:
        return {"items": table(shared(initial=Constant(0.0)))}

    def phases(self, world: World) -> tuple[Phase, ...]:
        return (Phase((Step(("items",), Adam(0.1)),), 1),)

    def scores(self, p: Params) -> Tensor:
        return p["items"]


@pytest.mark.parametrize("engine", ["loop", "vector"])
def test_scores_may_be_the_same_for_all(engine: str) -> None:
    one = federation(Learnt(), small_world(), engine=engine)
    one.round(1)
    found = scorer_of(one).scores(torch.arange(3), None)
    assert found.shape == (3, one.world.num_items)
    assert torch.equal(found[0], found[2])
    assert torch.equal(found[0], one.server.shared["items"])


@dataclass(frozen=True)
class OpensShared(FedMF):
    """Untouched rows would be halved at the client, and the server would never hear of it."""

    everywhere: bool = True
    target: str = "items"

    def phases(self, world: World) -> tuple[Phase, ...]:
        (phase,) = super().phases(world)
        return (replace(phase, opening=lambda p, context: {self.target: p["items"] / 2}, everywhere=self.everywhere),)


@dataclass(frozen=True)
class OpensWithSquares(OpensShared):
    """The squares of rows that are not at hand would be those of before the opening."""

    def params(self, world: World) -> dict[str, Param]:
        items = personal(self.embedding_size, received_as="received")
        return {**super().params(world), "items": replace(items, squares_outside=True)}


@pytest.mark.parametrize(
    ("method", "message"),
    [
        (WrongName(), r"moves a parameter 'usr' it does not have; did you mean 'user'"),
        (NothingMoves(), "no phase with a step"),
        (WrongShape(), r"came as \(3, 1\); expected shape \(3,\)"),
        (
            Misspelt(),
            r"cannot score 3 rows: KeyError in .*test_soundness\.py, line \d+: no value 'usr'; did you mean 'user'",
        ),
        (OpensShared(), r"every row of the shared table 'items', .* expected everywhere=False, or a personal table"),
        (OpensShared(target="itmes"), r"an opening rewrites 'itmes', no parameter; did you mean 'items'"),
        (OpensWithSquares(), r"every row of 'items', and items.outside would still be .* or no squares_outside"),
        (OpensWithSquares(target="received"), r"an opening rewrites 'received', no parameter"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Method) else "",
)
def test_a_mistake_is_named(method: Method, message: str) -> None:
    with pytest.raises(SettingError, match=message):
        federation(method, small_world())


@pytest.mark.parametrize(
    "method", [OpensShared(everywhere=False), OpensWithSquares(everywhere=False)], ids=["shared", "squares outside"]
)
def test_openings_of_trained_rows_lose_nothing(method: Method) -> None:
    touched, dense = (federation(method, small_world(), dense=dense) for dense in (False, True))
    touched.round(1)
    dense.round(1)
    assert torch.allclose(touched.server.shared["items"], dense.server.shared["items"], atol=1e-10)


@dataclass(frozen=True)
class BadLoss(FedMF):
    """Good enough for the small batch that is tried beforehand."""

    def loss(self, p: Params, batch: Batch, context: Context) -> Tensor:
        return super().loss(p, batch, context) + (p["nothing"] if len(batch.rows) > 4 else 0)


@pytest.mark.parametrize(("engine", "who"), [("loop", "on client"), ("vector", "run it with --engine loop")])
def test_a_loss_that_fails_is_named_in_both_engines(engine: str, who: str) -> None:
    one = federation(BadLoss(), small_world(), engine=engine)
    with pytest.raises(TrainingError, match=rf"fedmf failed .*{who}"):
        one.round(1)


@dataclass(frozen=True)
class SumsThenRewrites(FedEASE):
    def server(self, world: World) -> Server:
        return replace(super().server(world), after=lambda shared, draw: {})


def test_a_step_after_the_mean_is_refused_where_there_is_no_mean() -> None:
    """It was accepted and never carried out."""
    with pytest.raises(SettingError, match=r"`after` follows a mean, and this server adds up sums; expected the step"):
        federation(SumsThenRewrites(), small_world())


@dataclass(frozen=True)
class ServerRewrites(FedMF):
    target: str = "items"

    def server(self, world: World) -> Server:
        return Server(
            after=lambda shared, draw: {self.target: shared["items"][:1] if self.target == "items" else shared["items"]}
        )


@pytest.mark.parametrize(
    ("target", "fact"),
    [
        ("items", r"the server rewrites 'items' as \(1, 16\); expected shape \(3, 16\)"),
        ("item", r"the server rewrites 'item', no value of the server's; did you mean 'items'\?"),
        ("user", r"the server rewrites 'user', no value of the server's"),
    ],
)
def test_a_server_rewrites_what_is_shared_in_its_own_shape(target: str, fact: str) -> None:
    with pytest.raises(SettingError, match=fact):
        federation(ServerRewrites(target=target), small_world())
