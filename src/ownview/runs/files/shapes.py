"""What the files of a run folder must hold; shapes are those of `base.json_shapes`."""

from __future__ import annotations

from typing import Any

from ownview.base.json_shapes import Maybe, OrNull, TableOf, misfit
from ownview.evaluation.metrics import HEADLINE

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
    "simulated_seconds": Maybe(float),
}
CHECKPOINT = {
    "round": int,
    "best": {"round": int, "score": [float], "metrics": TableOf(float)},
    "rounds": [_ROUND],
}
RECOMMENDED = {
    "samples": [{"user": str, "row": Maybe(int), "history": [int], "validation": [int], "test": [int]}],
    "titles": TableOf(str),
}
WATCHED = {"users": [str], "positions": Maybe([int]), "roles": Maybe(TableOf(str))}


def result_shape(values: Any) -> Any:
    """What result.json must hold: figures, or word that there are none."""
    return FITTED if isinstance(values, dict) and "no_test_figure" in values else RESULT


def is_round(value: Any) -> bool:
    """Whether a line of rounds.jsonl is whole; a round that was not measured has neither validation nor test."""
    return misfit(value, _ROUND) is None
