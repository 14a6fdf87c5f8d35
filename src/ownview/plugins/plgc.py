"""PLGC: local and global item tables mixed by their traces, and redundancy between dimensions reduced.

Shen, Mi, Zhao, Shen and Qian, "A Model-agnostic Strategy to Mitigate Embedding Degradation in Personalized Federated
Recommendation".
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import Tensor

from ownview.config.search import Between
from ownview.config.settings import setting
from ownview.parts.redundancy import REDUCTIONS
from ownview.parts.shared_table import SharedTable, shared_table
from ownview.seam.client import Client
from ownview.seam.initial import Constant, Uniform
from ownview.seam.method import Federated
from ownview.seam.optimizers import Sgd
from ownview.seam.plugin import Plugin
from ownview.seam.roles import Param, private
from ownview.seam.training import ANY_WORLD, Batch, BeginWith, Context, Params, Phase, Step, World

_LAYERS = ("projector", "predictor")
_SHARE = "plgc_share"
"""What a client calls the share a of its own table during an epoch."""


@dataclass(frozen=True)
class PLGC(Plugin):
    """The inner method on Q = a C + (1 - a) G; C is the client's own table, G the frozen one it received.

    a = tr(C C^T) / (tr(C C^T) + tr(G G^T)), a number and no function of C to the gradient, worked out anew for every
    batch, or once an epoch as in the paper's Algorithm 1; predictions have it of the tables as they are. The loss gets
    beta times a penalty on the batch's rows of C and G, both through a private network (projector and predictor, each
    d-d-d with ReLU): eRR, or one of three others. C is uploaded and averaged.
    """

    name: ClassVar[str] = "plgc"
    title: ClassVar[str] = "plug-in plgc"
    summary: ClassVar[str] = "own and global item table mixed by their traces; redundancy between dimensions reduced"
    paper: ClassVar[str] = "Shen et al. 2025"

    mixing: bool = setting(True, "mix local and global table; off: the client trains its own, as it received it")
    share_every: str = setting("batch", "when a is worked out anew in training", choices=("batch", "epoch"))
    redundancy: str = setting("err", "the penalty", choices=(*REDUCTIONS, "none"))
    beta: float = setting(0.1, "weight of the penalty", low=0, search=Between(1e-4, 1.0, log=True))
    gamma: float = setting(
        0.01, "weight of eRR's correlations between dimensions", low=0, search=Between(1e-4, 1.0, log=True)
    )
    network_rate: float = setting(
        0.01, "SGD's rate for projector and predictor", above=0, search=Between(1e-4, 0.1, log=True)
    )

    def check(self, inner: Federated) -> None:
        """There must be one shared item table."""
        shared_table(inner.client(ANY_WORLD), inner.name, self.name)

    @classmethod
    def neutral(cls, inner: Federated) -> Plugin:
        """Both halves off."""
        return cls(inner=inner, mixing=False, redundancy="none")

    @property
    def penalises(self) -> bool:
        """Whether there is a penalty, and with it a private network."""
        return self.redundancy != "none"

    @property
    def _once_an_epoch(self) -> bool:
        return self.mixing and self.share_every == "epoch"

    def changed(self, client: Client, world: World) -> Client:
        """C stands beside G, and the inner method works on Q; the network moves where C does."""
        if not (self.mixing or self.penalises):
            return client
        table = shared_table(client, self.wrapped.name, self.name)
        own, received = table.name, table.received

        def share(p: Params) -> Tensor:
            """[] a."""
            local = (p[own].square().sum() + p[f"{own}.outside"]).detach()
            return local / (local + p[received].square().sum() + p[f"{received}.outside"])

        def mixed(p: Params, *, in_training: bool = False) -> Params:
            """With Q in place of C."""
            if not self.mixing:
                return p
            a = p[_SHARE] if in_training and self._once_an_epoch else share(p)
            return {**p, own: a * p[own] + (1 - a) * p[received]}

        def scores(p: Params) -> Tensor:
            """The inner method's on Q."""
            return client.scores(mixed(p))

        def loss(p: Params, batch: Batch, context: Context) -> Tensor:
            """The inner method's on Q, and the penalty."""
            total = client.loss(mixed(p, in_training=True), batch, context)
            if not self.penalises:
                return total
            views = _projected(p, p[own]), _projected(p, p[received])
            return total + self.beta * REDUCTIONS[self.redundancy](*views, batch.counts, self.gamma)

        def readings(p: Params) -> Params:
            """Singular values [d] and information abundance [] of C, G and Q, and Q [m, d], besides the inner's."""
            found = dict(client.readings(p))
            tables = {"own": p[own], "received": p[received], "mixed": mixed(p)[own]}
            for name, rows in tables.items():
                values = torch.linalg.svdvals(rows)
                found |= {f"singular values {name}": values, f"abundance {name}": values.sum() / values.max()}
            return {**found, "merged": tables["mixed"]}

        work = replace(client.training, phases=self._phases(client.phases, table, share), loss=loss)
        return replace(client, params=self._params(client.params, table), work=work, scores=scores, readings=readings)

    def _params(self, params: Mapping[str, Param], table: SharedTable) -> dict[str, Param]:
        """The inner method's with G beside C, and the network."""
        found = table.beside(params)
        found[table.name] = replace(found[table.name], squares_outside=self.mixing)
        if self._once_an_epoch:
            found[_SHARE] = private(initial=Constant(0.5))
        return {**found, **(_network(table.width) if self.penalises else {})}

    def _phases(
        self, phases: tuple[Phase, ...], table: SharedTable, share: Callable[[Params], Tensor]
    ) -> tuple[Phase, ...]:
        """The inner method's; the network moves where the table does. Mixing lets C go on, else G replaces it."""
        if self.penalises:
            network = Step(tuple(_network(1)), Sgd(self.network_rate))
            phases = tuple(
                replace(phase, steps=tuple(_with(network, step, table.name) for step in phase.steps))
                for phase in phases
            )
        if self._once_an_epoch:
            phases = tuple(replace(phase, before_epoch=lambda p, context: {_SHARE: share(p)}) for phase in phases)
        opening = None if self.mixing else BeginWith(table.name, table.received)
        return (replace(phases[0], opening=opening), *phases[1:])


def _network(width: int) -> dict[str, Param]:
    """Weights [d, d] and biases [d] of projector and predictor, two layers each."""
    initial = Uniform(1 / math.sqrt(width))
    names = [f"{part}{layer}" for part in _LAYERS for layer in (0, 1)]
    return {name: private(width, width, initial=initial) for name in names} | {
        f"{name}_bias": private(width, initial=initial) for name in names
    }


def _with(network: Step, step: Step, table: str) -> Step:
    if not any(table in part.names for part in step.parts):
        return step
    return replace(step, alongside=replace(network, alongside=step.alongside))


def _projected(p: Params, rows: Tensor) -> Tensor:
    """[R, d] rows through projector and predictor."""
    for part in _LAYERS:
        hidden = torch.relu(rows @ p[f"{part}0"] + p[f"{part}0_bias"])
        rows = hidden @ p[f"{part}1"] + p[f"{part}1_bias"]
    return rows
