"""Settings written in layers, as the files of published tables and of benchmark suites have them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ownview.base.errors import SettingError, suggestion

Layer = Mapping[str, Any]

_KINDS: dict[type, str] = {str: "text", int: "a whole number", list: "a list", Mapping: "a table"}


def check(values: Any, known: Mapping[str, type], where: str) -> None:
    """Refuse what is no table, has an unknown name, or a value of another kind than `known` says."""
    if not isinstance(values, Mapping):
        raise SettingError(f"{where}: found {values!r}, expected a table")
    for name, value in values.items():
        if name not in known:
            raise SettingError(f"{where} has no setting {name!r}{suggestion(name, known)}")
        if not isinstance(value, known[name]) or isinstance(value, bool):
            raise SettingError(f"{where}: {name} = {value!r}: expected {_KINDS[known[name]]}")


def merged(layers: Iterable[Layer]) -> Layer:
    """Later layers win; inside `settings` and `federation` name by name."""
    made: dict[str, Any] = {}
    for layer in layers:
        for name, value in layer.items():
            made[name] = {**made.get(name, {}), **value} if isinstance(value, Mapping) else value
    return made
