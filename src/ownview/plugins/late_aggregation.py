"""Aggregation that starts late or never: until then every client goes on from its own item table.

The experiment behind Figure 2 of "Beyond Personalization: Federated Recommendation with Calibration via Low-rank
Decomposition" (PFedCLR): how much of a user vector's path is aggregation's doing. Watch clients (`--watch`) in a run
with this plug-in and in one without, and hold the two against each other with `ownview.skew`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from ownview.base.errors import SettingError
from ownview.config.settings import setting
from ownview.parts.shared_table import shared_table
from ownview.seam.client import Client
from ownview.seam.method import Federated
from ownview.seam.plugin import Plugin
from ownview.seam.roles import PERSONAL
from ownview.seam.training import ANY_WORLD, Context, Params, World


@dataclass(frozen=True)
class LateAggregation(Plugin):
    """The inner method, whose clients take over what they receive only from round `start` on.

    Before that they train on from their own table; they upload it all the same, so that the first table they take over
    is the mean of what everybody has learnt alone. They predict with the table they have trained, before and after.
    """

    name: ClassVar[str] = "late-aggregation"
    title: ClassVar[str] = "plug-in late-aggregation"
    summary: ClassVar[str] = "aggregation starts at a later round or never: what it does to clients"
    paper: ClassVar[str] = "PFedCLR 2025, Figure 2"

    start: int = setting(0, "first round in which clients take over what they receive; 0 for never", low=0)

    def check(self, inner: Federated) -> None:
        """One item table and nothing else may be shared, and clients must look at it by beginning with it alone."""
        client = inner.client(ANY_WORLD)
        table = shared_table(client, inner.name, self.name).name
        if client.params[table].role is PERSONAL:
            raise SettingError(
                f"plug-in {self.name} holds back what clients receive, and {inner.name} looks at it in other ways too "
                "than by beginning with it"
            )
        others = [name for name, param in client.params.items() if param.from_server and name != table]
        if others:
            raise SettingError(f"plug-in {self.name} holds back one item table, and {inner.name} also shares {others}")

    @classmethod
    def neutral(cls, inner: Federated) -> Plugin:
        """Aggregation from the first round on."""
        return cls(inner=inner, start=1)

    def changed(self, client: Client, world: World) -> Client:
        """The table goes on from where it was; the first phase begins with what was received, once it is time."""
        if self.start == 1:
            return client
        table = shared_table(client, self.wrapped.name, self.name)

        def take_over(p: Params, context: Context) -> Params:
            """A round is no value of a client, so one may ask for it."""
            taken = self.start and context.round >= self.start
            return {table.name: p[table.received if taken else table.name]}

        first, *others = client.phases
        phases = (replace(first, opening=take_over), *others)
        return replace(client, params=table.beside(client.params), work=replace(client.training, phases=phases))
