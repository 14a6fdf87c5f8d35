"""Which item table of a method a plug-in works on."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ownview.beginning import BeginWith
from ownview.errors import SettingError
from ownview.method import Method
from ownview.types import Param, World

_WORLD = World(num_clients=2, num_items=4)
"""Names and kinds of parameters do not depend on the world, so any will do to look at them."""


@dataclass(frozen=True)
class SharedTable:
    """The one item table of a method that clients upload and receive.

    Args:
        name: of the client's table.
        param: what the method declares about it.
        received: name of the received table that a round begins with, once it stands beside the client's own.
    """

    name: str
    param: Param
    received: str = "received"

    @property
    def kept_beside(self) -> Param:
        """The client's table, from which it goes on, with the received one beside it."""
        return self.param if self.param.beside else replace(self.param, kept=True, beside=self.received)


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
    opening = inner.phases(_WORLD)[0].opening
    if param.beside:
        if isinstance(opening, BeginWith) and opening.table == name:
            return SharedTable(name, param, opening.received)
        raise SettingError(f"plug-in {plugin} lets a client go on from its own table, and {inner.name} does so already")
    if opening is not None:
        raise SettingError(f"plug-in {plugin} opens the first phase, and {inner.name} does so already")
    return SharedTable(name, param)
