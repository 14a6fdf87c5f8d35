"""Which item table of a method a plug-in works on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from ownview.base.errors import SettingError
from ownview.seam.beginning import BeginWith
from ownview.seam.method import Method
from ownview.seam.training import Param, World

_WORLD = World(num_clients=2, num_items=4)
"""Names and kinds of parameters do not depend on the world, so any will do to look at them."""


@dataclass(frozen=True)
class SharedTable:
    """The one item table of a method that clients upload and receive.

    Args:
        name: of the client's table.
        width: of its rows.
        received: name of the received table that a round begins with, once it stands beside the client's own.
    """

    name: str
    width: int
    received: str = "received"

    def beside(self, params: Mapping[str, Param]) -> dict[str, Param]:
        """`params` with a client that goes on from its own table, and the received one beside it."""
        own = params[self.name]
        return {**params, self.name: own if own.beside else replace(own, kept=True, beside=self.received)}


def shared_table(inner: Method, plugin: str) -> SharedTable:
    """The shared item table of `inner`; `SettingError` where there is not one, or a client goes on from its own."""
    tables = {name: param for name, param in inner.params(_WORLD).items() if param.rows and param.shared}
    if not tables:
        raise SettingError(
            f"plug-in {plugin} needs a shared item table, and {inner.name} shares none: nothing is received"
        )
    if len(tables) > 1:
        raise SettingError(f"plug-in {plugin} works on one shared item table, and {inner.name} has {sorted(tables)}")
    name, param = next(iter(tables.items()))
    if len(param.shape) != 1:
        raise SettingError(f"plug-in {plugin} works on rows that are vectors, and those of {inner.name} are not")
    (width,) = param.shape
    opening = inner.phases(_WORLD)[0].opening
    if param.beside:
        beside = (param.beside, param.common)
        if isinstance(opening, BeginWith) and opening.table == name and opening.received in beside:
            return SharedTable(name, width, opening.received)
        raise SettingError(f"plug-in {plugin} lets a client go on from its own table, and {inner.name} does so already")
    if opening is not None:
        raise SettingError(f"plug-in {plugin} opens the first phase, and {inner.name} does so already")
    return SharedTable(name, width)
