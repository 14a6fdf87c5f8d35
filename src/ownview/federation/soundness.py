"""A look at a method before it is trained: mistakes are cheaper to name here than in the middle of a round."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import cast

import torch
from torch import Tensor

from ownview.base.errors import SettingError, suggestion
from ownview.base.randomness import generator
from ownview.seam.initial import OwnHistory
from ownview.seam.method import Method
from ownview.seam.training import Context, Param, Params, Phase, World, visible

_ROWS = 3


def require_sound(method: Method, world: World) -> None:
    """Raise `SettingError` where steps or openings name no parameter, or what they do would be lost on the way.

    Likewise where nothing is ever trained or scores have the wrong shape.
    """
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
        if isinstance(params[moved].initial, OwnHistory):
            raise SettingError(f"method {name} moves {moved!r}, the client's history, which is data and no parameter")
    for table in (table for table, param in params.items() if param.common and method.server_mixing is None):
        raise SettingError(f"method {name}: {table!r} wants a mean of mixtures, and no server_mixing makes any")
    _require_scores(method, name, params)
    for phase in phases:
        _require_opening(phase, name, params)
    _require_preparation(method.before_predicting(world), name, params)
    _require_server_step(method, name, params)


def names_moved(method: Method, world: World) -> frozenset[str]:
    """The names of the parameters that a step moves or an opening rewrites: the others end a round as they began it."""
    params, phases = method.params(world), method.phases(world)
    moved = {name for phase in phases for step in phase.steps for part in step.parts for name in part.names}
    openings = [phase.opening for phase in phases if phase.opening is not None]
    return frozenset(moved.union(*(opening(_drawn(params), Context(1)) for opening in openings)))


def names_read(method: Method, world: World) -> frozenset[str]:
    """The names of the values that `scores` looks at, which is pure and has no branches on values.

    A method that does with its values what only a dictionary can is taken to look at all of them.
    """
    values = _drawn(method.params(world))
    noted = _Noted(values)
    try:
        method.scores(cast("Params", noted))
    except (TypeError, AttributeError):
        return frozenset(values)
    return frozenset(noted.read)


class _Noted(Mapping[str, Tensor]):
    """Values that note which of them are looked at. No dictionary: unpacking one would go unnoticed."""

    def __init__(self, values: Params) -> None:
        self.values_by_name = values
        self.read: set[str] = set()

    def __getitem__(self, name: str) -> Tensor:
        self.read.add(name)
        return self.values_by_name[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.values_by_name)

    def __len__(self) -> int:
        return len(self.values_by_name)


def _drawn(params: dict[str, Param]) -> Params:
    return {
        name: param.initial.draw(((_ROWS, *param.shape) if param.rows else param.shape), generator(0, "soundness"))
        for name, param in visible(params).items()
    }


def _require_scores(method: Method, name: str, params: dict[str, Param]) -> None:
    try:
        scores = method.scores(_drawn(params))
    except Exception as error:
        raise SettingError(f"method {name} cannot score {_ROWS} rows: {type(error).__name__}: {error}") from error
    if not isinstance(scores, torch.Tensor) or scores.shape != (_ROWS,):
        found = tuple(scores.shape) if isinstance(scores, torch.Tensor) else type(scores).__name__
        raise SettingError(f"method {name}: scores of {_ROWS} rows came as {found}; expected shape ({_ROWS},)")


def _require_opening(phase: Phase, name: str, params: dict[str, Param]) -> None:
    """Rows that are not at hand follow an opening only where the client has a whole table of its own to send."""
    if phase.opening is None:
        return
    try:
        rewritten = phase.opening(_drawn(params), Context(1))
    except Exception as error:
        raise SettingError(f"method {name} cannot open a phase: {type(error).__name__}: {error}") from error
    for table in rewritten:
        if table not in params:
            raise SettingError(f"method {name}: an opening rewrites {table!r}, no parameter{suggestion(table, params)}")
        param = params[table]
        if phase.everywhere and param.rows and param.shared and not param.beside:
            raise SettingError(
                f"method {name}: an opening rewrites every row of the shared table {table!r}, and only trained rows "
                "would be uploaded; expected everywhere=False, or a table beside it"
            )
        if phase.everywhere and param.rest:
            raise SettingError(
                f"method {name}: an opening rewrites every row of {table!r}, and {table}.rest would still be of the "
                "rows as they were; expected everywhere=False, or no rest"
            )


def _require_preparation(phases: tuple[Phase, ...], name: str, params: dict[str, Param]) -> None:
    """What is trained before predicting is thrown away afterwards, so it may be large for nobody."""
    for phase in phases:
        moved = [n for step in phase.steps for part in step.parts for n in part.names]
        unfit = [n for n in moved if n not in params or params[n].shared or params[n].rows]
        if unfit or phase.opening is not None or phase.part != "all":
            found = f"moves {unfit[0]!r}" if unfit else "has an opening" if phase.opening else f"is on {phase.part}"
            raise SettingError(
                f"method {name}: a phase before predicting {found}; expected private parameters without rows, trained "
                "on all samples without an opening"
            )


def _require_server_step(method: Method, name: str, params: dict[str, Param]) -> None:
    if method.server_step is None:
        return
    drawn = _drawn(params)
    shared = {n: value for n, value in drawn.items() if n in params and params[n].shared}
    try:
        rewritten = method.server_step(shared, lambda wanted: drawn[wanted].clone())
    except Exception as error:
        raise SettingError(f"method {name}: the server's step fails: {type(error).__name__}: {error}") from error
    for one, value in rewritten.items():
        if one not in shared:
            raise SettingError(
                f"method {name}: the server rewrites {one!r}, no shared parameter{suggestion(one, shared)}"
            )
        if value.shape != shared[one].shape:
            raise SettingError(
                f"method {name}: the server rewrites {one!r} as {tuple(value.shape)}; "
                f"expected shape {tuple(shared[one].shape)}"
            )
