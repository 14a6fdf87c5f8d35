"""Where two tables of settings differ."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any


def differences(have: Mapping[str, Any], asked: Mapping[str, Any], where: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Name, value here and value asked for, of everything asked for that is otherwise here.

    Tables are looked into; names inside them are written table.name. What is only here does not count.
    """
    for name, value in asked.items():
        here = have.get(name)
        if isinstance(value, Mapping) and (here is None or isinstance(here, Mapping)):
            yield from differences(here or {}, value, f"{where}{name}.")
        elif here != value:
            yield f"{where}{name}", here, value
