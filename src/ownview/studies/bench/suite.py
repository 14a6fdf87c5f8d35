"""A benchmark suite: rows of methods, datasets, protocols and seeds, read from TOML.

title = "A first look"
about = "What it is for, in a sentence."
rounds = 30
seeds = 3                               # 0, 1 and 2
protocols = ["honest", "paper"]
data = ["ml-100k", "filmtrust"]

[[rows]]
name = "fedem"                          # what tables call it; the method and its plug-ins where not given
method = "fedem"                        # settings, plugins, federation and rounds as in an experiment file
settings = { merged_rows = "trained" }
preset = "tuned"                        # settings found for the method, under those of the row
[rows.data.ml-100k]                     # what differs on one dataset
settings = { alpha = 1.1 }
"""

from __future__ import annotations

import importlib.resources
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ownview.base.errors import SettingError, UnknownNameError, suggestion
from ownview.config.layers import Layer, check, merged
from ownview.config.presets.loading import preset
from ownview.evaluation.protocol import protocol as protocol_by_name
from ownview.registry import PLUGINS, find_model
from ownview.runs.experiment import Experiment

_LAYER: dict[str, type] = {"settings": Mapping, "plugins": list, "federation": Mapping, "rounds": int, "preset": str}
_ROW: dict[str, type] = {"name": str, "method": str, "data": Mapping, **_LAYER}
_FILE: dict[str, type] = {
    "title": str, "about": str, "rounds": int, "seeds": int, "protocols": list, "data": list, "rows": list,
}  # fmt: skip


@dataclass(frozen=True)
class Row:
    """A method of the suite.

    Args:
        name: what tables call it.
        layer: method, settings, plugins, federation, rounds and preset.
        data: by dataset, what differs there.
    """

    name: str
    layer: Layer
    data: Mapping[str, Layer]


@dataclass(frozen=True)
class Suite:
    """A grid.

    Args:
        name: of the file, without folder and ending.
        title: for people.
        about: what it is for.
        rounds: of rows that say nothing else.
        seeds: 0, 1, ... up to this number.
        protocols: names, or .toml files.
        data: names of datasets, or files.
        rows: one a method.
    """

    name: str
    title: str
    about: str
    rounds: int
    seeds: int
    protocols: tuple[str, ...]
    data: tuple[str, ...]
    rows: tuple[Row, ...]

    def experiment(self, row: Row, data: str, protocol: str, seed: int, rounds: int | None = None) -> Experiment:
        """One run of the grid; `rounds` instead of what the suite says."""
        layer = dict(merged([row.layer, row.data.get(data, {})]))
        preset = layer.pop("preset", None)
        found = {} if preset is None else preset_layer(str(layer["method"]), preset, data)
        values = dict(merged([{"rounds": self.rounds}, found, layer]))
        values |= {} if rounds is None else {"rounds": rounds}
        made = {**values, "data": data, "protocol": protocol, "seed": seed}
        experiment = Experiment.from_dict(made, f"suite {self.name}, row {row.name}")
        experiment.model()
        return experiment


def suites() -> list[Suite]:
    """Those that come with Ownview, by name."""
    files = importlib.resources.files("ownview.studies") / "suites"
    found = [(file.name, file.read_text(encoding="utf-8")) for file in files.iterdir() if file.name.endswith(".toml")]
    return [parse(text, name.removesuffix(".toml"), name) for name, text in sorted(found)]


def load_suite(name: str) -> Suite:
    """A suite by name, or from a .toml file."""
    if name.endswith(".toml"):
        try:
            return parse(Path(name).read_text(encoding="utf-8"), Path(name).stem, name)
        except FileNotFoundError:
            raise SettingError(f"{name}: no such suite file") from None
        except UnicodeDecodeError as error:
            raise SettingError(f"{name}: not TOML, which is UTF-8 text: {error}") from None
    known = {suite.name: suite for suite in suites()}
    if name not in known:
        raise UnknownNameError("suite", name, [*known, "a .toml file"])
    return known[name]


def parse(text: str, name: str, source: str) -> Suite:
    """Read a suite; `source` names it in errors.

    Raises:
        SettingError: not TOML, an unknown or missing entry, rows of one name, or names this version does not have (all
            of them are listed).
    """
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SettingError(f"{source}: not TOML: {error}") from None
    check(values, _FILE, source)
    protocols, data = (_texts(values, key, source) for key in ("protocols", "data"))
    rows = tuple(_row(one, source, data) for one in values.get("rows", []))
    if not rows:
        raise SettingError(f"{source}: expected [[rows]], one for every method")
    names = [row.name for row in rows]
    if twice := sorted({one for one in names if names.count(one) > 1}):
        raise SettingError(f"{source}: two rows are called {twice[0]!r}; give one of them another name")
    for one in protocols:
        protocol_by_name(one)
    _require_known(rows, source)
    rounds, seeds = values.get("rounds", 100), values.get("seeds", 1)
    for key, value in (("rounds", rounds), ("seeds", seeds)):
        if value < 1:
            raise SettingError(f"{source}: {key} = {value}: expected a whole number at least 1")
    return Suite(name, values.get("title", name), values.get("about", ""), rounds, seeds, protocols, data, rows)


def preset_layer(method: str, name: str, data: str) -> Layer:
    """What a preset decides of an experiment."""
    return preset(method, name, data).experiment()


def _row(values: Any, source: str, data: tuple[str, ...]) -> Row:
    check(values, _ROW, f"{source}: a row")
    method = values.get("method")
    if method is None:
        raise SettingError(f"{source}: a row has no method; expected method = 'pfedrec', say")
    plugins = [str(one.get("name", "")) if isinstance(one, Mapping) else str(one) for one in values.get("plugins", [])]
    name = values.get("name", " + ".join([Path(method).stem if method.endswith(".py") else method, *plugins]))
    differing = values.get("data", {})
    for label, layer in differing.items():
        if label not in data:
            raise SettingError(f"{source}: row {name}: the suite has no data {label!r}{suggestion(label, data)}")
        check(layer, _LAYER, f"{source}: row {name}, data {label}")
    layer = {key: value for key, value in values.items() if key not in ("name", "data")}
    return Row(name, layer, differing)


def _texts(values: Layer, key: str, source: str) -> tuple[str, ...]:
    found = values.get(key, ["honest"] if key == "protocols" else ["goodbooks"])
    if not found or not all(isinstance(one, str) for one in found) or len(set(found)) < len(found):
        raise SettingError(f"{source}: {key} = {found!r}: expected a list of different names")
    return tuple(found)


def _require_known(rows: tuple[Row, ...], source: str) -> None:
    """One error for everything this version does not have."""
    lacking = [f"method {row.layer['method']!r}" for row in rows if not _is_method(str(row.layer["method"]))]
    layers = [layer for row in rows for layer in (row.layer, *row.data.values())]
    plugins = [one.get("name") for layer in layers for one in layer.get("plugins", []) if isinstance(one, Mapping)]
    lacking += [f"plug-in {name!r}" for name in plugins if name not in PLUGINS]
    if lacking:
        listed = ", ".join(dict.fromkeys(lacking))
        raise SettingError(
            f"{source}: this version does not have {listed}; leave those rows out (`ownview ls methods`)"
        )


def _is_method(name: str) -> bool:
    try:
        find_model(name)
    except UnknownNameError:
        return False
    return True
