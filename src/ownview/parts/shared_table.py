"""Which item table of a method a plug-in works on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from ownview.base.errors import SettingError
from ownview.seam.client import Client
from ownview.seam.roles import PERSONAL, Param
from ownview.seam.training import BeginWith


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
        mine = own if own.role is PERSONAL else replace(own, role=PERSONAL, received_as=self.received)
        return {**params, self.name: mine}


def shared_table(inner: Client, name: str, plugin: str) -> SharedTable:
    """The item table that clients of a method send and receive.

    Raises `SettingError` where there is not exactly one, or a client goes on from its own.

    Args:
        inner: the method's client.
        name: of the method.
        plugin: whose name errors say.
    """
    tables = {one: param for one, param in inner.params.items() if param.rows and param.from_server}
    if not tables:
        raise SettingError(f"plug-in {plugin} needs a shared item table, and {name} shares none: nothing is received")
    if len(tables) > 1:
        raise SettingError(f"plug-in {plugin} works on one shared item table, and {name} has {sorted(tables)}")
    (table, param), opening = next(iter(tables.items())), inner.phases[0].opening
    if len(param.shape) != 1:
        raise SettingError(f"plug-in {plugin} works on rows that are vectors, and those of {name} are not")
    (width,) = param.shape
    if param.role is PERSONAL:
        if isinstance(opening, BeginWith) and opening.table == table and opening.received in param.tables_beside:
            return SharedTable(table, width, opening.received)
        raise SettingError(f"plug-in {plugin} lets a client go on from its own table, and {name} does so already")
    if opening is not None:
        raise SettingError(f"plug-in {plugin} opens the first phase, and {name} does so already")
    return SharedTable(table, width)
