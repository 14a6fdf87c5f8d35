"""DualPer, PFedRec's mechanism as a plug-in: a private score function and a fine-tuned, kept item table.

Zhang et al., "Dual Personalization on Federated Recommendation", IJCAI 2023, section 6.4.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar

from ownview.base.errors import SettingError
from ownview.config.settings import setting
from ownview.seam.client import Client
from ownview.seam.method import Federated
from ownview.seam.plugin import Plugin
from ownview.seam.roles import KEPT, PERSONAL, PRIVATE, Param
from ownview.seam.training import ANY_WORLD, Step, World


@dataclass(frozen=True)
class DualPersonalisation(Plugin):
    """Item tables stay shared but the client predicts with its own copy; everything else becomes private.

    With `alternate` every batch first moves the private part with the tables fixed, then the tables.
    """

    name: ClassVar[str] = "dual-personalisation"
    title: ClassVar[str] = "DualPer"
    summary: ClassVar[str] = "private score function, item table kept after fine-tuning"
    paper: ClassVar[str] = "Zhang et al., IJCAI 2023"

    personal: bool = setting(True, "keep the trained table, make all other parameters private")
    alternate: bool = setting(True, "on every batch move the private part first, then the tables")

    @classmethod
    def neutral(cls, inner: Federated) -> DualPersonalisation:
        """Neither half switched on."""
        return cls(inner=inner, personal=False, alternate=False)

    def check(self, inner: Federated) -> None:
        """There must be a shared table to personalise, and not a personal one already."""
        some = inner.client(ANY_WORLD).params.values()
        if any(param.role is PERSONAL for param in some):
            raise SettingError(
                f"plug-in {self.name} lets a client keep the table it received; {inner.name}'s clients have a table of "
                "their own beside it already"
            )
        if inner.server(ANY_WORLD).after is not None:
            raise SettingError(
                f"plug-in {self.name} leaves nothing shared but kept item tables; {inner.name}'s server rewrites "
                "shared values after every round, and clients that predict with what they trained would not see it"
            )
        if not any(param.rows and param.sends for param in some):
            raise SettingError(
                f"plug-in {self.name} needs a method that shares an item table; {inner.name} shares none"
            )

    def changed(self, client: Client, world: World) -> Client:
        """Tables are kept and everything else becomes private; every step is split into its two halves."""
        if self.personal:
            client = replace(client, params={name: _personal(param) for name, param in client.params.items()})
        if not self.alternate:
            return client
        tables = {name for name, param in client.params.items() if param.rows}
        phases = tuple(
            replace(phase, steps=tuple(half for step in phase.steps for half in _halves(step, tables)))
            for phase in client.phases
        )
        return replace(client, work=replace(client.training, phases=phases))


def _personal(param: Param) -> Param:
    if param.rows and param.from_server:
        return replace(param, role=KEPT)
    return replace(param, role=PRIVATE) if param.from_server else param


def _halves(step: Step, tables: set[str]) -> list[Step]:
    """What the step moves that is no table, then the tables."""
    halves = [_part(step, lambda name: name not in tables), _part(step, lambda name: name in tables)]
    return [half for half in halves if half is not None]


def _part(step: Step, moves: Callable[[str], bool]) -> Step | None:
    """The step with some of its names, and likewise what moves alongside; None where nothing is left."""
    names = tuple(filter(moves, step.names))
    alongside = None if step.alongside is None else _part(step.alongside, moves)
    return replace(step, names=names, alongside=alongside) if names else alongside
