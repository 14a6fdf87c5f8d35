"""A look at a method before it is trained: mistakes are cheaper to name here than in the middle of a round."""

from __future__ import annotations

import torch

from ownview.errors import SettingError, suggestion
from ownview.method import Method
from ownview.random import generator
from ownview.types import Param, Params, World

_ROWS = 3


def require_sound(method: Method, world: World) -> None:
    """Raise `SettingError` where steps name no parameter, nothing is ever trained, or scores have the wrong shape."""
    name = getattr(type(method), "name", None)
    if not isinstance(name, str):
        raise SettingError(f"method {type(method).__name__} has no name; expected name: ClassVar[str] = 'my-method'")
    params = method.params(world)
    phases = method.phases(world)
    if not any(phase.steps for phase in phases):
        raise SettingError(f"method {name} has no phase with a step; nothing would be trained")
    for moved in (n for phase in phases for step in phase.steps for part in step.parts for n in part.names):
        if moved not in params:
            raise SettingError(f"method {name} moves a parameter {moved!r} it does not have{suggestion(moved, params)}")
    _require_scores(method, name, params)


def _require_scores(method: Method, name: str, params: dict[str, Param]) -> None:
    drawn: Params = {
        key: param.initial.draw(((_ROWS, *param.shape) if param.rows else param.shape), generator(0, "soundness"))
        for key, param in params.items()
    }
    try:
        scores = method.scores(drawn)
    except Exception as error:
        raise SettingError(f"method {name} cannot score {_ROWS} rows: {type(error).__name__}: {error}") from error
    if not isinstance(scores, torch.Tensor) or scores.shape != (_ROWS,):
        found = tuple(scores.shape) if isinstance(scores, torch.Tensor) else type(scores).__name__
        raise SettingError(f"method {name}: scores of {_ROWS} rows came as {found}; expected shape ({_ROWS},)")
