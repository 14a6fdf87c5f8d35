"""Elastic merging, FedEM's module as a plug-in: what a client receives is merged into its own table, item by item.

Chen, Zhang, Zhang, Luo and Li, "Breaking the Aggregation Bottleneck in Federated Recommendation: A Personalized Model
Merging Approach", compatibility study (Table 3).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from torch import Tensor

from ownview.base.errors import SettingError
from ownview.config.search import Between
from ownview.config.settings import setting
from ownview.parts.merging import MERGED_ROWS, MERGES, Merging
from ownview.parts.shared_table import shared_table
from ownview.seam.method import Method, Plugin
from ownview.seam.optimizers import Adam
from ownview.seam.training import Batch, Context, Param, Params, Phase, Step, World


@dataclass(frozen=True)
class ElasticMerging(Plugin):
    """The inner method, whose clients begin a round with Q_m = Q_l + rho (Q_g - Q_l) instead of the received Q_g.

    Where a client of the inner method has its own table beside received ones, Q_g is the one its rounds begin with.

    First the adapter that gives rho is trained, everything else frozen, with the inner method's loss of its first phase
    on the merged table; then the inner method's phases run, beginning with the merged table. The client predicts with
    its own table. Replacement (`sr`) is the inner method itself.
    """

    name: ClassVar[str] = "elastic-merging"
    title: ClassVar[str] = "plug-in elastic-merging"
    summary: ClassVar[str] = "what a client receives is merged into its own item table, item by item"
    paper: ClassVar[str] = "Chen et al. 2025"

    variant: str = setting("em", "elastic, dynamic or static merging, or replacement", choices=MERGES)
    adapter_layers: tuple[int, ...] = setting((16, 8), "widths of the adapter's hidden layers", low=1)
    adapter_rate: float = setting(0.1, "Adam's rate for the adapter", above=0, search=Between(1e-3, 0.3, log=True))
    adapter_epochs: int = setting(0, "passes that train the adapter; 0 for as many as the method's own", low=0)
    merged_rows: str = setting("all", "rows that are merged: all, or the ones a client trains", choices=MERGED_ROWS)
    rho: float = setting(0.5, "weight of the received table in static merging", low=0, high=1)

    def check(self, inner: Method) -> None:
        """There must be one shared item table to merge with, and something learnt to merge by."""
        shared_table(inner, self.name)
        fresh = [name for name, param in inner.params(World(2, 4)).items() if param.fresh]
        if fresh:
            raise SettingError(
                f"plug-in {self.name} trains its adapter before anything else, when {fresh[0]!r} of {inner.name}, "
                "which begins every round anew, has learnt nothing"
            )

    @classmethod
    def neutral(cls, inner: Method) -> Plugin:
        """Replacement: what the inner method does."""
        return cls(inner=inner, variant="sr")

    @property
    def merging(self) -> Merging:
        """Own and received table, and the adapter between them."""
        table = shared_table(self.wrapped, self.name)
        return Merging(self.variant, table.name, table.received, table.width, self.adapter_layers, self.rho)

    def params(self, world: World) -> dict[str, Param]:
        """The inner method's; the table goes on from where it was, next to the received one."""
        params = self.wrapped.params(world)
        if self.variant == "sr":
            return params
        return {**shared_table(self.wrapped, self.name).beside(params), **self.merging.params()}

    def phases(self, world: World) -> tuple[Phase, ...]:
        """The adapter's, where there is one, and the inner method's."""
        first, *others = self.wrapped.phases(world)
        if self.variant == "sr":
            return (first, *others)
        phases = (replace(first, opening=self.merging.opening, everywhere=self.merged_rows == "all"), *others)
        adapter = tuple(self.merging.params())
        if not adapter:
            return phases
        epochs = self.adapter_epochs or self.local_epochs
        return (Phase((Step(adapter, Adam(self.adapter_rate)),), epochs), *phases)

    def scores(self, p: Params) -> Tensor:
        """The inner method's, on the client's own table."""
        return self.wrapped.scores(p)

    def readings(self, p: Params) -> Params:
        """[m] rho of every item and [m, d] both tables merged, besides the inner method's."""
        if self.variant == "sr":
            return self.wrapped.readings(p)
        return {**self.wrapped.readings(p), "rho": self.merging.weights(p), "merged": self.merging.merged(p)}

    def loss(self, p: Params, batch: Batch, context: Context) -> Tensor:
        """The inner method's; on the merged table while the adapter is trained."""
        if not (self.variant != "sr" and self.merging.params()):
            return self.wrapped.loss(p, batch, context)
        inner = replace(context, phase=max(context.phase - 1, 0))
        merged = {**p, self.merging.own: self.merging.merged(p)} if context.phase == 0 else p
        return self.wrapped.loss(merged, batch, inner)
