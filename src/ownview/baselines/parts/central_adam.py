"""Adam for central models, its memory among the model's values so that it is saved and restored with them."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from ownview.seam.fused_adam import fused_adam_
from ownview.seam.training import Params

_STEPS = "adam.steps"


def with_memory(parameters: Params) -> Params:
    """The parameters with Adam's two moments of each and its count of steps, all zero, beside them."""
    moments = {f"adam.{place}.{k}": torch.zeros_like(v) for place in ("first", "second") for k, v in parameters.items()}
    return {**parameters, **moments, _STEPS: torch.zeros(())}


def steps_taken(values: Params) -> int:
    """How many steps of Adam the values have made."""
    return int(values[_STEPS])


def adam_step(values: Params, names: Sequence[str], grads: Sequence[Tensor], rate: float) -> None:
    """One step of Adam (Kingma and Ba 2015; 0.9, 0.999, 1e-8) in place, with bias correction."""
    fused_adam_(
        [values[name] for name in names],
        grads,
        ([values[f"adam.first.{name}"] for name in names], [values[f"adam.second.{name}"] for name in names]),
        [values[_STEPS].clone() for _ in names],  # each is counted up by the step, which is one for all
        rate=rate,
    )
    values[_STEPS].add_(1)
