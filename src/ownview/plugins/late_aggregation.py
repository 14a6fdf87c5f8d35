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
from ownview.parts.shared_table import SharedTable, shared_table
from ownview.seam.method import Method, Plugin
from ownview.seam.training import Context, Param, Params, Phase, World


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

    def check(self, inner: Method) -> None:
        """One item table and nothing else may be shared, and clients must look at it by beginning with it alone."""
        table, params = shared_table(inner, self.name).name, inner.params(World(2, 4))
        if params[table].beside:
            raise SettingError(
                f"plug-in {self.name} holds back what clients receive, and {inner.name} looks at it in other ways too "
                "than by beginning with it"
            )
        others = [n for n, param in params.items() if param.shared and n != table]
        if others:
            raise SettingError(f"plug-in {self.name} holds back one item table, and {inner.name} also shares {others}")

    @classmethod
    def neutral(cls, inner: Method) -> Plugin:
        """Aggregation from the first round on."""
        return cls(inner=inner, start=1)

    @property
    def _table(self) -> SharedTable:
        return shared_table(self.wrapped, self.name)

    def params(self, world: World) -> dict[str, Param]:
        """The inner method's; the table goes on from where it was."""
        params = self.wrapped.params(world)
        if self.start == 1:
            return params
        return self._table.beside(params)

    def phases(self, world: World) -> tuple[Phase, ...]:
        """The inner method's; the first begins with what was received, once it is time."""
        first, *others = self.wrapped.phases(world)
        return (first if self.start == 1 else replace(first, opening=self._taken_over), *others)

    def _taken_over(self, p: Params, context: Context) -> Params:
        """A round is no value of a client, so one may ask for it."""
        taken = self.start and context.round >= self.start
        return {self._table.name: p[self._table.received if taken else self._table.name]}
