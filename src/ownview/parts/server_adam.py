"""Adam as a pure function, for servers."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor

from ownview.seam.roles import Param, held
from ownview.seam.training import Params


def moments(params: Mapping[str, Param]) -> dict[str, Param]:
    """Adam's state, held by the server: two moments of every parameter, and the number of steps."""
    kept = {f"{moment}.{name}": held(*one.shape) for moment in ("first", "second") for name, one in params.items()}
    return kept | {"steps": held()}


def adam_moved(values: Params, gradient: Params, rate: float) -> Params:
    """New values, moments and number of steps after a step (0.9, 0.999, 1e-8) on every parameter with a gradient."""
    moved: Params = {"steps": values["steps"] + 1}
    steps = float(moved["steps"])  # a GPU is waited for once
    for name, slope in gradient.items():
        before = values[name], values[f"first.{name}"], values[f"second.{name}"]
        moved[name], moved[f"first.{name}"], moved[f"second.{name}"] = adam_step(before, slope, steps, rate)
    return moved


def adam_step(
    before: tuple[Tensor, Tensor, Tensor], gradient: Tensor, steps: float | Tensor, rate: float,
    beta1: float = 0.9, beta2: float = 0.999,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """New values and both moments (Kingma and Ba 2015), bias-corrected.

    Args:
        before: values, and running means of gradients and of their squares.
        gradient: of the values' shape.
        steps: their number, this one included.
        rate: the learning rate.
        beta1: of the first moment.
        beta2: of the second.
    """
    first = beta1 * before[1] + (1 - beta1) * gradient
    second = beta2 * before[2] + (1 - beta2) * gradient.square()
    root = (second / (1 - beta2**steps)).sqrt() + 1e-8
    return before[0] - rate * first / (1 - beta1**steps) / root, first, second
