"""What the files of a run folder must hold, so that a damaged or foreign one is refused where it is read.

A shape is a kind (`str`, `int`, `float`: any finite number), a list with the shape of its members, a table of names and
shapes, `Maybe` around one of them where a name may be missing or null, or `OrNull` where it may only be null. Names
beyond those listed are let through: later versions write more.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from ownview.evaluation.metrics import HEADLINE


@dataclass(frozen=True)
class Maybe:
    """What may be missing."""

    shape: Any


@dataclass(frozen=True)
class OrNull:
    """What must be named, and may be null."""

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
_METRICS = dict.fromkeys(HEADLINE, float)
_PARTS = ("slowest_client", "server", "round")
_GROUP = {"label": str, "interactions": [int], "users": int, "test": _METRICS}

RESULT = {
    "method": str,
    "data": str,
    "protocol": str,
    "seed": int,
    "settings": dict,
    "rounds": int,
    "chosen_round": int,
    "chosen_on": str,
    "test": {**_METRICS, "coverage@10": float, "Gini@10": float},
    "interval_95": {name: [float] for name in HEADLINE},
    "users_ranked": int,
    "notes": [str],
    "seconds": float,
    "groups": Maybe([_GROUP]),
    "inactive": Maybe(_GROUP),
    "cost": Maybe({"client_bytes": int, "server_bytes": int, "seconds": Maybe(dict.fromkeys(_PARTS, float))}),
    "bytes_down_per_client": int,
    "bytes_up_per_client": int,
    "privacy": Maybe({"mode": str, "epsilon": float, "delta": float, "headline": str}),
}
_MEASURED = ("test", "interval_95", "users_ranked", "groups", "inactive")
FITTED = {
    **{name: shape for name, shape in RESULT.items() if name not in _MEASURED},
    "no_test_figure": str,
    "settings_from": Maybe(
        {"run": str, "protocol": Maybe(str), "chosen_round": Maybe(int), "test": Maybe(TableOf(float))}
    ),
}
"""A result of a model that was trained on everything."""

PROVENANCE = {
    "data": Maybe({"fingerprint": Maybe(str)}),
    "machine": Maybe({"device": Maybe(str), "engine": Maybe(str)}),
    "revision": Maybe(str),
    "method_file_sha256": Maybe(str),
    "data_file_sha256": Maybe(str),
}
_ROUND = {
    "round": int,
    "clients": int,
    "loss": OrNull(float),
    "seconds": TableOf(float),
    "peak_memory_bytes": int,
    "bytes_down_per_client": int,
    "bytes_up_per_client": int,
    "bytes_dense_per_client": int,
    "sparsity": Maybe(TableOf(TableOf(float))),
    "validation": Maybe(_METRICS),
    "test": Maybe(_METRICS),
    "watched": Maybe(TableOf(TableOf([float]))),
}
CHECKPOINT = {
    "round": int,
    "best": {"round": int, "score": [float], "metrics": TableOf(float)},
    "rounds": Maybe([_ROUND]),
}
_ANSWERS = Either([int], int)  # earlier versions noted a single number
RECOMMENDED = {
    "samples": [{"user": str, "row": Maybe(int), "history": [int], "validation": _ANSWERS, "test": _ANSWERS}],
    "titles": TableOf(str),
}
WATCHED = {"users": [str], "positions": Maybe([int]), "roles": Maybe(TableOf(str))}


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
            return _told(value, where, "a list")
        found = (misfit(one, shape[0], f"{where}[{place}]") for place, one in enumerate(value))
        return next((one for one in found if one), None)
    return None if _is(value, shape) else _told(value, where, _KINDS[shape])


def result_shape(values: Any) -> Any:
    """What result.json must hold: figures, or word that there are none."""
    return FITTED if isinstance(values, dict) and "no_test_figure" in values else RESULT


def is_round(value: Any) -> bool:
    """Whether a line of rounds.jsonl is whole; a round that was not measured has neither validation nor test."""
    return misfit(value, _ROUND) is None


def _table_misfit(value: Any, shape: dict[str, Any], where: str) -> str | None:
    if not isinstance(value, dict):
        return _told(value, where, "a table")
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


def _told(value: Any, where: str, expected: str) -> str:
    return f"{where or 'the whole'} is {str(value)[:40]!r}, expected {expected}"
