"""PLGC: local and global item tables mixed by their traces, and redundancy between dimensions reduced.

Shen, Mi, Zhao, Shen and Qian, "A Model-agnostic Strategy to Mitigate Embedding Degradation in Personalized Federated
Recommendation".
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import Tensor

from ownview.config.search import Between
from ownview.config.settings import setting
from ownview.parts.redundancy import REDUCTIONS
from ownview.parts.shared_table import SharedTable, shared_table
from ownview.seam.beginning import BeginWith
from ownview.seam.initial import Uniform
from ownview.seam.method import Method, Plugin
from ownview.seam.optimizers import Sgd
from ownview.seam.training import Batch, Context, Param, Params, Phase, Step, World

_LAYERS = ("projector", "predictor")


@dataclass(frozen=True)
class PLGC(Plugin):
    """The inner method on Q = a C + (1 - a) G; C is the client's own table, G the frozen one it received.

    a = tr(C C^T) / (tr(C C^T) + tr(G G^T)), a number and no function of C to the gradient. The loss gets beta times a
    penalty on the batch's rows of C and G, both through a private network (projector and predictor, each d-d-d with
    ReLU): eRR, or one of three others. C is uploaded and averaged.
    """

    name: ClassVar[str] = "plgc"
    title: ClassVar[str] = "plug-in plgc"
    summary: ClassVar[str] = "own and global item table mixed by their traces; redundancy between dimensions reduced"
    paper: ClassVar[str] = "Shen et al. 2025"

    mixing: bool = setting(True, "mix local and global table; off: the client trains its own, as it received it")
    redundancy: str = setting("err", "the penalty", choices=(*REDUCTIONS, "none"))
    beta: float = setting(0.1, "weight of the penalty", low=0, search=Between(1e-4, 1.0, log=True))
    gamma: float = setting(
        0.01, "weight of eRR's correlations between dimensions", low=0, search=Between(1e-4, 1.0, log=True)
    )
    network_rate: float = setting(
        0.01, "SGD's rate for projector and predictor", above=0, search=Between(1e-4, 0.1, log=True)
    )

    def check(self, inner: Method) -> None:
        """There must be one shared item table."""
        shared_table(inner, self.name)

    @classmethod
    def neutral(cls, inner: Method) -> Plugin:
        """Both halves off."""
        return cls(inner=inner, mixing=False, redundancy="none")

    @property
    def table(self) -> SharedTable:
        """C and G by name: the client's own table, and the received one that rounds of the inner method begin with."""
        return shared_table(self.wrapped, self.name)

    @property
    def penalises(self) -> bool:
        """Whether there is a penalty, and with it a private network."""
        return self.redundancy != "none"

    def params(self, world: World) -> dict[str, Param]:
        """The inner method's with G beside C, and the network."""
        params = self.wrapped.params(world)
        if self.mixing or self.penalises:
            params = self.table.beside(params)
            params[self.table.name] = replace(params[self.table.name], rest=self.mixing)
        return {**params, **(self._network(self.table.width) if self.penalises else {})}

    def _network(self, width: int) -> dict[str, Param]:
        initial = Uniform(1 / math.sqrt(width))
        names = [f"{part}{layer}" for part in _LAYERS for layer in (0, 1)]
        return {name: Param((width, width), initial=initial) for name in names} | {
            f"{name}_bias": Param((width,), initial=initial) for name in names
        }

    def phases(self, world: World) -> tuple[Phase, ...]:
        """The inner method's; the network moves where the table does. Mixing lets C go on, else G replaces it."""
        phases = self.wrapped.phases(world)
        if self.penalises:
            network = Step(tuple(self._network(1)), Sgd(self.network_rate))
            phases = tuple(
                replace(phase, steps=tuple(self._with(network, step) for step in phase.steps)) for phase in phases
            )
        if self.mixing or self.penalises:
            opening = None if self.mixing else BeginWith(self.table.name, self.table.received)
            phases = (replace(phases[0], opening=opening), *phases[1:])
        return phases

    def _with(self, network: Step, step: Step) -> Step:
        if not any(self.table.name in part.names for part in step.parts):
            return step
        return replace(step, alongside=replace(network, alongside=step.alongside))

    def scores(self, p: Params) -> Tensor:
        """The inner method's on Q."""
        return self.wrapped.scores(self._mixed(p))

    def loss(self, p: Params, batch: Batch, context: Context) -> Tensor:
        """The inner method's on Q, and the penalty."""
        total = self.wrapped.loss(self._mixed(p), batch, context)
        if not self.penalises:
            return total
        views = self._projected(p, p[self.table.name]), self._projected(p, p[self.table.received])
        return total + self.beta * REDUCTIONS[self.redundancy](*views, batch.counts, self.gamma)

    def readings(self, p: Params) -> Params:
        """Singular values [d] and information abundance [] of C, G and Q, and Q [m, d], besides the inner method's."""
        found = self.wrapped.readings(p)
        if self.mixing or self.penalises:
            own, received = self.table.name, self.table.received
            tables = {"own": p[own], "received": p[received], "mixed": self._mixed(p)[own]}
            for name, table in tables.items():
                values = torch.linalg.svdvals(table)
                found = {**found, f"singular values {name}": values, f"abundance {name}": values.sum() / values.max()}
            found = {**found, "merged": tables["mixed"]}
        return found

    def _mixed(self, p: Params) -> Params:
        """With Q in place of C."""
        if not self.mixing:
            return p
        own, received = self.table.name, self.table.received
        local = (p[own].square().sum() + p[f"{own}.rest"]).detach()
        share = local / (local + p[received].square().sum() + p[f"{received}.rest"])
        return {**p, own: share * p[own] + (1 - share) * p[received]}

    def _projected(self, p: Params, rows: Tensor) -> Tensor:
        for part in _LAYERS:
            hidden = torch.relu(rows @ p[f"{part}0"] + p[f"{part}0_bias"])
            rows = hidden @ p[f"{part}1"] + p[f"{part}1_bias"]
        return rows
