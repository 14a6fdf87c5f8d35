"""Adam as a pure function, for servers."""

from __future__ import annotations

from ownview.seam.roles import Param, held
from ownview.seam.training import Params

_FIRST, _SECOND, _ROOM = 0.9, 0.999, 1e-8


def memory(params: dict[str, Param]) -> dict[str, Param]:
    """What the server holds back: two moments of every parameter, and the number of steps."""
    kept = {f"{moment}.{name}": held(*one.shape) for moment in ("first", "second") for name, one in params.items()}
    return kept | {"steps": held()}


def adam_moved(values: Params, gradient: Params, rate: float) -> Params:
    """New values, moments and number of steps after a step (Kingma and Ba 2015; 0.9, 0.999, 1e-8), bias-corrected."""
    steps = values["steps"] + 1
    count = float(steps)
    moved: Params = {"steps": steps}
    for name, slope in gradient.items():
        first = _FIRST * values[f"first.{name}"] + (1 - _FIRST) * slope
        second = _SECOND * values[f"second.{name}"] + (1 - _SECOND) * slope.square()
        root = (second / (1 - _SECOND**count)).sqrt() + _ROOM
        moved[name] = values[name] - rate * first / (1 - _FIRST**count) / root
        moved |= {f"first.{name}": first, f"second.{name}": second}
    return moved
