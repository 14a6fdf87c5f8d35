"""DualPer, PFedRec's mechanism as a plug-in: a private score function and a fine-tuned, kept item table.

Zhang et al., "Dual Personalization on Federated Recommendation", IJCAI 2023, section 6.4.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from ownview.base.errors import SettingError
from ownview.config.settings import setting
from ownview.seam.method import Method, Plugin
from ownview.seam.training import Param, Phase, Step, World


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
    def neutral(cls, inner: Method) -> DualPersonalisation:
        """Neither half switched on."""
        return cls(inner=inner, personal=False, alternate=False)

    def check(self, inner: Method) -> None:
        """There must be a shared table to personalise, and not a personal one already."""
        some = inner.params(World(num_clients=1, num_items=1)).values()
        if any(param.beside for param in some):
            raise SettingError(
                f"plug-in {self.name} lets a client keep the table it received; {inner.name}'s clients have a table of "
                "their own beside it already"
            )
        if inner.server_step is not None:
            raise SettingError(
                f"plug-in {self.name} leaves nothing shared but kept item tables; {inner.name}'s server rewrites "
                "shared values after every round, and clients that predict with what they trained would not see it"
            )
        if not any(param.rows and param.shared for param in some):
            raise SettingError(
                f"plug-in {self.name} needs a method that shares an item table; {inner.name} shares none"
            )

    def params(self, world: World) -> dict[str, Param]:
        """The inner method's, with tables kept and the rest private."""
        inner = self.wrapped.params(world)
        return {name: _personal(param) for name, param in inner.items()} if self.personal else inner

    def phases(self, world: World) -> tuple[Phase, ...]:
        """The inner method's, every step split into its private half and its tables."""
        if not self.alternate:
            return self.wrapped.phases(world)
        tables = {name for name, param in self.params(world).items() if param.rows}
        return tuple(
            replace(phase, steps=tuple(half for step in phase.steps for half in _halves(step, tables)))
            for phase in self.wrapped.phases(world)
        )


def _personal(param: Param) -> Param:
    if param.rows and param.shared:
        return replace(param, kept=True)
    return replace(param, shared=False, kept=False)


def _halves(step: Step, tables: set[str]) -> tuple[Step, ...]:
    private = [replace(part, names=tuple(n for n in part.names if n not in tables)) for part in step.parts]
    table = [replace(part, names=tuple(n for n in part.names if n in tables)) for part in step.parts]
    return tuple(half for half in (_together(private), _together(table)) if half is not None)


def _together(parts: list[Step]) -> Step | None:
    """One step of all parts that still move something."""
    step = None
    for part in reversed([part for part in parts if part.names]):
        step = replace(part, alongside=step)
    return step
