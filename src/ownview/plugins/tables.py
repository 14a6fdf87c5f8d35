"""Which item table of a method a plug-in works on."""

from __future__ import annotations

from ownview.errors import SettingError
from ownview.method import Method
from ownview.types import Param, World

_WORLD = World(num_clients=2, num_items=4)
"""Names and kinds of parameters do not depend on the world, so any will do to look at them."""


def shared_table(inner: Method, plugin: str) -> tuple[str, Param]:
    """The one shared item table of `inner`, by name; `SettingError` where there is none or more than one."""
    tables = {name: param for name, param in inner.params(_WORLD).items() if param.rows and param.shared}
    if not tables:
        raise SettingError(
            f"plug-in {plugin} needs a shared item table, and {inner.name} shares none: nothing is received"
        )
    if len(tables) > 1:
        raise SettingError(f"plug-in {plugin} works on one shared item table, and {inner.name} has {sorted(tables)}")
    name, param = next(iter(tables.items()))
    if param.beside:
        raise SettingError(
            f"plug-in {plugin} lays the received table beside the client's own, and {inner.name} does so already"
        )
    if len(param.shape) != 1:
        raise SettingError(f"plug-in {plugin} works on rows that are vectors, and those of {inner.name} are not")
    if inner.phases(_WORLD)[0].opening is not None:
        raise SettingError(f"plug-in {plugin} opens the first phase, and {inner.name} does so already")
    return name, param
