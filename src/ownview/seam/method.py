"""A method, written for one client in plain PyTorch, and a plug-in, which is a method around a method.

Rules for `scores`, `loss`, openings and shrinks: pure functions of their arguments; no `.item()`, no `if` on tensor
values (use `torch.where`); no BatchNorm; no randomness. Then the engine may run thousands of clients at once.

Tables in `p` hold the rows at hand, not all items, and where clients are stacked, padding rows too. A penalty on rows
must therefore weigh them by `batch.counts`, which is 0 for rows that are not in the batch.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

from torch import Tensor
from torch.nn.functional import softplus

from ownview.base.errors import SettingError, suggestion
from ownview.config.search import Between, OneOf
from ownview.config.settings import Settings, declared, setting
from ownview.seam.cohorts import Cohort
from ownview.seam.mixing import Mixing
from ownview.seam.training import Batch, Context, Param, Params, Phase, ServerStep, World

RowWeights = Callable[[Tensor], Tensor]
"""Changes of rows [B, R, ...] -> [B, R]: how much a client's row counts in the server's mean of that row."""


@dataclass(frozen=True)
class Method(Settings):
    """One client's side of a federated recommender. Settings are the dataclass's fields."""

    name: ClassVar[str]
    summary: ClassVar[str]
    paper: ClassVar[str]
    federated: ClassVar[bool] = True
    negatives: int = setting(
        4, "negatives drawn for every positive, anew each round", low=1, high=100, search=Between(1, 10)
    )
    batch_size: int = setting(256, "samples in a batch", low=1)
    local_epochs: int = setting(10, "passes over the client's samples in a round", low=1, search=OneOf((1, 2, 5, 10)))

    @abstractmethod
    def params(self, world: World) -> dict[str, Param]:
        """The client's parameters by name."""

    @abstractmethod
    def phases(self, world: World) -> tuple[Phase, ...]:
        """What local training does, in order."""

    @abstractmethod
    def scores(self, p: Params) -> Tensor:
        """[R] the score (logit) of every row at hand: touched rows in training, candidates in ranking."""

    @property
    def weighting(self) -> str:
        """How the server weighs clients unless told otherwise: by training "samples", or "uniform"."""
        return "samples"

    @property
    def row_mean(self) -> str:
        """Over whom the server averages a table's row unless told otherwise: "all" clients, or who "touched" it."""
        return "all"

    @property
    def server_step(self) -> ServerStep | None:
        """What the server does to the shared values after every round's mean; None for nothing."""
        return None

    def before_predicting(self, world: World) -> tuple[Phase, ...]:
        """What a client trains on what it has, before it predicts: private parameters without rows only.

        It runs on all training samples of the client with negatives of its own, sends nothing and keeps nothing. Phases
        are numbered on from those of `phases`; rates that fall from round to round are those of the first.
        """
        return ()

    @property
    def looks_around(self) -> bool:
        """Whether a row's score depends on other rows too: then `scores` always gets whole tables in ranking."""
        return False

    @property
    def server_mixing(self) -> Mixing | None:
        """How the server makes a table for each client of its own; None for one mean for all.

        It applies to parameters with a table `beside`, and only to them: that table is then the client's own mixture.
        The server's optimiser and weighting do not apply to them; shares of the data do.
        """
        return None

    @property
    def server_cohort(self) -> Cohort | None:
        """How the server chooses the clients of a round by what they report; None for a plain draw.

        It applies where a share or a number of clients take part: not where all do, nor where each is drawn by itself.
        """
        return None

    @property
    def row_weights(self) -> RowWeights | None:
        """How much each client's row counts in the server's mean of that row; None: as much as the client does.

        With it, the weighting by clients applies only to parameters without rows.
        """
        return None

    def readings(self, p: Params) -> Params:
        """What is worth looking at in one client, by name; `p` has whole tables [m, ...].

        Asked for watched clients only, after every round; what has more than 128 numbers is noted at the end alone.
        """
        return {}

    def loss(self, p: Params, batch: Batch, context: Context) -> Tensor:
        """[] mean over the batch; binary cross-entropy unless a method says otherwise."""
        return cross_entropy(self.scores(p), batch)


def cross_entropy(scores: Tensor, batch: Batch) -> Tensor:
    """[] mean over the batch's samples of -y log s(x) - (1 - y) log(1 - s(x)), s the logistic function.

    Written over rows, not samples: a row that stands c times in the batch, y times as a positive, contributes
    c softplus(x) - y x. No gather, hence no scatter in the backward pass: faster, and the same on every run.
    """
    total = (batch.counts * softplus(scores) - batch.positives * scores).sum()
    return total / batch.mask.sum()


def own_settings(cls: type[Settings]) -> list[str]:
    """Names of the settings a user may give: all of a method's, and a plug-in's without its inner method's."""
    names = [one.name for one in declared(cls)]
    return [n for n in names if n not in Method.__dataclass_fields__] if issubclass(cls, Plugin) else names


@dataclass(frozen=True)
class Plugin(Method):
    """A method that wraps a method and changes what it declares or computes.

    A neutral setting must reproduce the inner method exactly; the conformance kit checks it.
    Training settings (negatives, batch size, epochs) are the inner method's.
    """

    inner: Method | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.inner is not None:
            self.check(self.inner)
            for shared_setting in ("negatives", "batch_size", "local_epochs"):
                object.__setattr__(self, shared_setting, getattr(self.inner, shared_setting))

    @classmethod
    def around(cls, inner: Method, values: Mapping[str, Any]) -> Self:
        """The plug-in around `inner`, with settings of its own by name."""
        known = own_settings(cls)
        for name in values:
            if name not in known:
                raise SettingError(f"plug-in {cls.name} has no setting {name!r}{suggestion(name, known)}")
        return replace(cls.of(values), inner=inner)

    @property
    def wrapped(self) -> Method:
        """The inner method; a plug-in without one is only a set of settings."""
        if self.inner is None:
            raise ValueError(f"plug-in {self.name} wraps no method")
        return self.inner

    @classmethod
    def neutral(cls, inner: Method) -> Plugin:
        """The plug-in around `inner` with settings that change nothing."""
        raise ValueError(f"plug-in {cls.name} has no neutral setting")

    def check(self, inner: Method) -> None:
        """Raise `SettingError` with the reason where the combination makes no sense."""

    @property
    def weighting(self) -> str:
        """The inner method's, unless changed."""
        return self.wrapped.weighting

    @property
    def row_mean(self) -> str:
        """The inner method's, unless changed."""
        return self.wrapped.row_mean

    @property
    def looks_around(self) -> bool:
        """The inner method's, unless changed."""
        return self.wrapped.looks_around

    @property
    def server_mixing(self) -> Mixing | None:
        """The inner method's, unless changed."""
        return self.wrapped.server_mixing

    @property
    def server_step(self) -> ServerStep | None:
        """The inner method's, unless changed."""
        return self.wrapped.server_step

    def before_predicting(self, world: World) -> tuple[Phase, ...]:
        """The inner method's, unless changed."""
        return self.wrapped.before_predicting(world)

    @property
    def server_cohort(self) -> Cohort | None:
        """The inner method's, unless changed."""
        return self.wrapped.server_cohort

    @property
    def row_weights(self) -> RowWeights | None:
        """The inner method's, unless changed."""
        return self.wrapped.row_weights

    def params(self, world: World) -> dict[str, Param]:
        """The inner method's, unless changed."""
        return self.wrapped.params(world)

    def phases(self, world: World) -> tuple[Phase, ...]:
        """The inner method's, unless changed."""
        return self.wrapped.phases(world)

    def scores(self, p: Params) -> Tensor:
        """The inner method's, unless changed."""
        return self.wrapped.scores(p)

    def readings(self, p: Params) -> Params:
        """The inner method's, unless changed."""
        return self.wrapped.readings(p)

    def loss(self, p: Params, batch: Batch, context: Context) -> Tensor:
        """The inner method's, unless changed."""
        return self.wrapped.loss(p, batch, context)
