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
from ownview.seam.client import Client
from ownview.seam.method import Federated
from ownview.seam.optimizers import Adam
from ownview.seam.plugin import Plugin
from ownview.seam.roles import FRESH
from ownview.seam.training import ANY_WORLD, Batch, Context, Params, Phase, Step, World


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

    def check(self, inner: Federated) -> None:
        """There must be one shared item table to merge with, and something learnt to merge by."""
        client = inner.client(ANY_WORLD)
        shared_table(client, inner.name, self.name)
        fresh = [name for name, param in client.params.items() if param.role is FRESH]
        if fresh:
            raise SettingError(
                f"plug-in {self.name} trains its adapter before anything else, when {fresh[0]!r} of {inner.name}, "
                "which begins every round anew, has learnt nothing"
            )

    @classmethod
    def neutral(cls, inner: Federated) -> Plugin:
        """Replacement: what the inner method does."""
        return cls(inner=inner, variant="sr")

    def changed(self, client: Client, world: World) -> Client:
        """The table goes on from where it was; the adapter is trained first, then the inner method's phases run."""
        if self.variant == "sr":
            return client
        table = shared_table(client, self.wrapped.name, self.name)
        merging = Merging(self.variant, table.name, table.received, table.width, self.adapter_layers, self.rho)
        adapter = tuple(merging.params())
        first, *others = client.phases
        phases = (replace(first, opening=merging.opening, everywhere=self.merged_rows == "all"), *others)
        if adapter:
            epochs = self.adapter_epochs or first.epochs
            phases = (Phase((Step(adapter, Adam(self.adapter_rate)),), epochs), *phases)

        def loss(p: Params, batch: Batch, context: Context) -> Tensor:
            """The inner method's; on the merged table while the adapter is trained."""
            if not adapter:
                return client.loss(p, batch, context)
            inner = context.in_phase(max(context.phase - 1, 0))
            merged = {**p, merging.own: merging.merged(p)} if context.phase == 0 else p
            return client.loss(merged, batch, inner)

        def readings(p: Params) -> Params:
            """[m] rho of every item and [m, d] both tables merged, besides the inner method's."""
            return {**client.readings(p), "rho": merging.weights(p), "merged": merging.merged(p)}

        return replace(
            client,
            params={**table.beside(client.params), **merging.params()},
            work=replace(client.training, phases=phases, loss=loss),
            readings=readings,
        )
