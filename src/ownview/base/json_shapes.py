"""Shapes of JSON values, so that a damaged or foreign file is refused where it is read.

A shape is a kind (`str`, `int`, `float`: any finite number), a list with the shape of its members, a table of names and
shapes, `Maybe` around one of them where a name may be missing or null, or `OrNull` where it may only be null. Names
beyond those listed are let through: later versions write more.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Maybe:
    """A shape that may be missing."""

    shape: Any


@dataclass(frozen=True)
class OrNull:
    """A shape that must be named, and may be null."""

    shape: Any


@dataclass(frozen=True)
class TableOf:
    """A table of any names, all of one shape."""

    shape: Any


@dataclass(frozen=True)
class Either:
    """One of two shapes."""

    shape: Any
    other: Any


_KINDS = {str: "text", int: "a whole number", float: "a finite number", dict: "a table"}


def misfit(value: Any, shape: Any, where: str = "") -> str | None:
    """What is wrong, in words such as "test.HR@10 is 'x', expected a finite number"; None where all is well."""
    if isinstance(shape, Maybe | OrNull):
        return None if value is None else misfit(value, shape.shape, where)
    if isinstance(shape, Either):
        first = misfit(value, shape.shape, where)
        return first if first and misfit(value, shape.other, where) else None
    if isinstance(shape, TableOf):
        shape = dict.fromkeys(value, shape.shape) if isinstance(value, dict) else dict
    if isinstance(shape, dict):
        return _table_misfit(value, shape, where)
    if isinstance(shape, list):
        if not isinstance(value, list):
            return _mismatch(value, where, "a list")
        found = (misfit(one, shape[0], f"{where}[{place}]") for place, one in enumerate(value))
        return next((one for one in found if one), None)
    return None if _is(value, shape) else _mismatch(value, where, _KINDS[shape])


def _table_misfit(value: Any, shape: dict[str, Any], where: str) -> str | None:
    if not isinstance(value, dict):
        return _mismatch(value, where, "a table")
    prefix = f"{where}." if where else ""
    for name, inner in shape.items():
        if name not in value and not isinstance(inner, Maybe):
            return f"{prefix}{name} is missing"
        if found := misfit(value.get(name), inner, f"{prefix}{name}"):
            return found
    return None


def _is(value: Any, kind: type) -> bool:
    if kind is float:
        return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < math.inf
    return isinstance(value, kind) and not isinstance(value, bool)


def _mismatch(value: Any, where: str, expected: str) -> str:
    return f"{where or 'the whole'} is {str(value)[:40]!r}, expected {expected}"
