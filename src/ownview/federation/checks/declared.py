"""Type checks of declarations: the first mistakes of a new method."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Mapping
from typing import Any

from ownview.base.arguments import kind_of
from ownview.base.errors import SettingError
from ownview.seam.client import Client, Training
from ownview.seam.initial import Given, Initial
from ownview.seam.method import Federated
from ownview.seam.optimizers import Optimizer
from ownview.seam.roles import Param
from ownview.seam.training import Phase, Step


def require_settings(method: Federated, name: str) -> None:
    """Settings must have values: a class without the decorator has none of those that it declares."""
    kind = type(method)
    for setting, value in vars(kind).items():
        if isinstance(value, dataclasses.Field):
            raise SettingError(
                f"method {name}: setting {setting!r} has no value, because {kind.__name__} is no dataclass; "
                f"put @dataclass(frozen=True) above class {kind.__name__}"
            )


def require_declared(client: Client, name: str) -> None:
    """Parameters by name, phases, steps and names in tuples, and a loss of three arguments."""
    params: Any = client.params
    if not isinstance(params, Mapping):
        raise SettingError(f"method {name}: {_found('params', params)}; expected {{'user': ov.private(16), ...}}")
    for one, param in params.items():
        if not isinstance(param, Param):
            raise SettingError(
                f"method {name}: parameter {one!r} is declared by {kind_of(param)}; expected a role, such as "
                "ov.private(16) or ov.table(ov.shared(16))"
            )
        _require_drawable(one, param, name)
        if isinstance(param.initial, Given) and param.initial.missing:
            raise SettingError(f"method {name}: parameter {one!r}: {param.initial.missing}")
    if isinstance(client.work, Training):
        _require_phases(client.work.phases, name)
        _require_loss(client.work, name)


def _require_drawable(one: str, param: Any, name: str) -> None:
    for size in param.shape:
        if not isinstance(size, int) or size < 0:
            raise SettingError(
                f"method {name}: parameter {one!r} has a size {size!r}; expected whole numbers from 0 on"
            )
    if not isinstance(param.initial, Initial):
        raise SettingError(
            f"method {name}: parameter {one!r} begins as {kind_of(param.initial)}; expected ov.Normal(0.1), say"
        )


def _require_phases(phases: Any, name: str) -> None:
    expected = (
        "expected a tuple of phases: (ov.Phase((ov.Step(('user', 'items'), ov.Adam(0.01)),), self.local_epochs),)"
    )
    if not isinstance(phases, tuple | list):
        raise SettingError(f"method {name}: {_found('phases', phases)}; {expected}")
    for phase in phases:
        if not isinstance(phase, Phase):
            raise SettingError(f"method {name}: phases has {kind_of(phase)} in it; {expected}")
        epochs: Any = phase.epochs
        if not isinstance(epochs, int):
            raise SettingError(f"method {name}: epochs of a phase are {epochs!r}; expected a whole number")
        steps: Any = phase.steps
        if not isinstance(steps, tuple | list) or not all(isinstance(step, Step) for step in steps):
            raise SettingError(f"method {name}: steps of a phase came as {kind_of(steps)}; expected a tuple: (STEP,)")
        for part in (part for step in phase.steps for part in step.parts):
            names: Any = part.names
            if isinstance(names, str) or not all(isinstance(one, str) for one in names):
                example = f"({names!r},)" if isinstance(names, str) else "('user',)"
                raise SettingError(f"method {name}: a step moves {names!r}; expected a tuple of names: {example}")
            optimizer: Any = part.optimizer
            if not isinstance(optimizer, Optimizer):
                found = kind_of(optimizer)
                raise SettingError(f"method {name}: the optimizer of a step is {found}; expected ov.Adam(0.01), say")


def _require_loss(work: Training, name: str) -> None:
    try:
        inspect.signature(work.loss).bind({}, None, None)
    except TypeError as error:
        raise SettingError(
            f"method {name}: loss takes other arguments ({error}); expected def loss(self, p, batch, context)"
        ) from error


def _found(function: str, value: Any) -> str:
    return f"it has no {function}" if value is None else f"{function} returned {kind_of(value)}"
