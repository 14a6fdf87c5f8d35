"""Presets by method, name and data."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Any

from ownview.base.errors import SettingError
from ownview.config.layers import require_known
from ownview.config.settings import Value

DEFAULT = "default"
"""The name of the file for data that has none of its own."""


@dataclass(frozen=True)
class Preset:
    """Settings of a method and of the federation around it.

    Args:
        method: a registered name.
        name: of the preset, such as tuned.
        data: it was found on; "default" for the one that serves all other data.
        about: where it comes from, in a sentence.
        rounds: of training.
        tried: settings that it was chosen from on validation, itself included.
        settings: of the method.
        federation: options of the federation.
        tried_on: the data they were tried on, where that is not `data`.
        measure_every: rounds from one measurement of validation to the next.
    """

    method: str
    name: str
    data: str
    about: str
    rounds: int
    tried: int
    settings: Mapping[str, Value]
    federation: Mapping[str, Value]
    tried_on: str = ""
    measure_every: int = 1

    def experiment(self) -> dict[str, Any]:
        """What it decides of an experiment, as an experiment file says it."""
        settings, federation = dict(self.settings), dict(self.federation)
        times = {"rounds": self.rounds, "measure_every": self.measure_every}
        return {"method": self.method, **times, "settings": settings, "federation": federation}


@cache
def presets() -> tuple[Preset, ...]:
    """All of them, by method, name and data; they lie in the package and are read once."""
    found = [
        _read(file, method.name, name.name)
        for method in _folders(resources.files(__package__))
        for name in _folders(method)
        for file in name.iterdir()
        if file.name.endswith(".toml")
    ]
    return tuple(sorted(found, key=lambda one: (one.method, one.name, one.data == DEFAULT, one.data)))


def presets_of(method: str, data: str) -> list[Preset]:
    """The presets of a method that serve some data, one a name; none where it has none."""
    names = dict.fromkeys(one.name for one in presets() if one.method == method.lower())
    return [preset(method, name, data) for name in names]


def preset(method: str, name: str, data: str) -> Preset:
    """The preset of a method for some data, or its default where that data has none of its own."""
    every = presets()
    of_method = [one for one in every if one.method == method.lower()]
    if not of_method:
        methods = ", ".join(dict.fromkeys(one.method for one in every))
        raise SettingError(f"--preset {name}: {method} has no presets; these have: {methods}")
    by_data = {one.data: one for one in of_method if one.name == name}
    require_known(name, {one.name for one in of_method}, f"--preset {name}: {method} has no preset of that name")
    return by_data.get(data) or by_data[DEFAULT]


def _folders(parent: Traversable) -> list[Traversable]:
    return [one for one in parent.iterdir() if one.is_dir() and not one.name.startswith(("_", "."))]


def _read(file: Traversable, method: str, name: str) -> Preset:
    values = tomllib.loads(file.read_text(encoding="utf-8"))
    return Preset(method=method, name=name, data=file.name.removesuffix(".toml"), **values)
