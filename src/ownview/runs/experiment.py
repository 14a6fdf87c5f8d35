"""An experiment: everything that decides a result, as a value that goes to TOML and back; and its settings by name."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import tomli_w

from ownview.base.errors import SettingError
from ownview.base.files import is_file
from ownview.baselines.parts.central import Central
from ownview.config.layers import parse_toml, require_known, toml_text
from ownview.config.search import Space
from ownview.config.settings import Settings, Value, declared, kinds_of, plain
from ownview.data.datasets.storage import find
from ownview.evaluation.groups import ActivityRange
from ownview.evaluation.named_protocols import HONEST, custom, protocol
from ownview.evaluation.protocol import Protocol
from ownview.federation.options import FederationOptions
from ownview.privacy.budget import budget
from ownview.registry import BASELINES, Model, build, enough_rounds, find_model, find_plugin
from ownview.seam.plugin import Plugin

SOURCE = "source"
"""Folder of a run in which Python files of a method of one's own lie."""

_KINDS: dict[str, tuple[tuple[type, ...], str]] = {
    **dict.fromkeys(("method", "data", "engine", "device", "tried_on", "like"), ((str,), "text")),
    **dict.fromkeys(("rounds", "measure_every", "seed", "settings_tried"), ((int,), "a whole number")),
    **dict.fromkeys(("settings", "columns", "federation"), ((Mapping,), "a table of names and values")),
    "inactive": ((str,), "a range of interactions as text, such as '20:30'"),
    "watch": ((list, tuple), "a list of users"),
    "protocol": ((str, Mapping), "a name, a .toml file or a table"),
    "plugins": ((list, tuple), "a list of tables, each with a name"),
}
"""What the values of an experiment file may be, and in words."""


def arguments(values: Mapping[str, Any], source: str) -> dict[str, Any]:
    """Checked and turned into what `Experiment` takes; `source` names the values in errors.

    Raises:
        SettingError: an unknown name, a value of another kind, or no method.
    """
    for name, value in values.items():
        require_known(name, _KINDS, f"{source} has no setting {name!r}")
        kinds, expected = _KINDS[name]
        if not isinstance(value, kinds):
            raise SettingError(f"{source}: setting {name}={value!r}: expected {expected}")
    if "method" not in values:
        raise SettingError(f"{source}: expected a setting method, such as method = 'pfedrec'")
    asked = values.get("protocol", "honest")
    measured = protocol(asked) if isinstance(asked, str) else custom(dict(asked), str(asked.get("name", "custom")))
    return {
        **values,
        "plugins": tuple(_plugin_of(one, source) for one in values.get("plugins", ())),
        "watch": tuple(str(user) for user in values.get("watch", ())),
        "columns": {name: str(column) for name, column in values.get("columns", {}).items()},
        "federation": FederationOptions.of(values.get("federation", {})),
        "protocol": measured,
    }


def require_text(value: str, what: str) -> None:
    """Refuse text that TOML cannot hold or no file can be called: not UTF-8, or with a NUL character."""
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        raise SettingError(f"{what}={value!r}: is not UTF-8; rename the file, or convert the text") from None
    if "\0" in value:
        raise SettingError(f"{what}={value!r}: holds a NUL character; expected plain text")


def require_whole(name: str, value: object, low: int) -> None:
    """Refuse what is no whole number, or below the least."""
    if type(value) is not int or value < low:
        raise SettingError(f"setting {name}={value!r}: expected a whole number at least {low}")


def _plugin_of(one: Any, source: str) -> tuple[str, Mapping[str, Value]]:
    settings = one.get("settings", {}) if isinstance(one, Mapping) else None
    if not isinstance(settings, Mapping) or not isinstance(one.get("name"), str):
        raise SettingError(f"{source}: plug-in {one!r}: expected a table with a name and, if need be, settings")
    return one["name"], settings


@dataclass(frozen=True)
class Experiment:
    """A model, data, a protocol, rounds and a seed.

    Args:
        method: a registered name, or the path of a Python file that defines a method.
        settings: of the method; what is not named has its default.
        plugins: (name, settings), the first one innermost.
        data: a dataset's name or a file.
        columns: where a file's columns have other names than user, item, rating, timestamp.
        protocol: how results are measured.
        inactive: FEWEST:BELOW, a range of interactions whose users get a result of their own; none where empty.
        watch: users whose clients are watched closely: watched.safetensors, and a part of every line of rounds.jsonl.
        federation: who takes part and how the server combines.
        rounds: of training at most, or epochs of a central model that trains in epochs; see `rounds_of`.
        measure_every: rounds from one measurement of validation to the next, where a round is little; the last is
            always measured, and rounds that are not measured cannot be chosen.
        seed: of initial values, negatives, shuffles, participation and candidates.
        engine: vector or loop.
        device: cpu or cuda; auto is resolved when the run starts.
        settings_tried: how many settings these were chosen from, themselves included; 0 where nothing is said. It
            decides nothing of the result; see `runs.summaries.tried_settings`.
        tried_on: the data they were tried on; the experiment's own where empty.
        like: folder of the run that settings and rounds come from, where everything is trained on. It decides nothing.
    """

    method: str
    data: str = "goodbooks"
    settings: Mapping[str, Value] = field(default_factory=dict)
    plugins: tuple[tuple[str, Mapping[str, Value]], ...] = ()
    columns: Mapping[str, str] = field(default_factory=dict)
    protocol: Protocol = HONEST
    inactive: str = ""
    watch: tuple[str, ...] = ()
    federation: FederationOptions = FederationOptions()
    rounds: int = 100
    measure_every: int = 1
    seed: int = 0
    engine: str = "vector"
    device: str = "auto"
    settings_tried: int = 0
    tried_on: str = ""
    like: str = ""

    def __post_init__(self) -> None:
        for name in ("method", "data", "inactive", "engine", "device", "like"):
            require_text(str(getattr(self, name)), f"setting {name}")
        for one in (*self.watch, *self.columns, *self.columns.values()):
            require_text(one, "setting watch or columns")
        object.__setattr__(self, "method", _located(self.method) if self.method.endswith(".py") else self.method)
        wrapped = tuple((_located(name) if name.endswith(".py") else name, own) for name, own in self.plugins)
        object.__setattr__(self, "plugins", wrapped)
        object.__setattr__(self, "data", self.data if find(self.data) else _located(self.data))
        if self.inactive:
            object.__setattr__(self, "inactive", str(ActivityRange.parse(self.inactive)))
        for name, low in (("rounds", 1), ("measure_every", 1), ("seed", 0), ("settings_tried", 0)):
            require_whole(name, getattr(self, name), low)

    def model(self) -> Model:
        """The model with its settings and plug-ins."""
        return build(self.method, self.settings, self.plugins)

    def resolved(self, model: Model) -> Experiment:
        """With every setting of `model` written out, so that a later default does not change the experiment."""
        name, settings, plugins = describe_model(model)
        if len(plugins) == len(self.plugins):  # those of files are known by their paths
            plugins = tuple((own, values) for (own, _), (_, values) in zip(self.plugins, plugins, strict=True))
        return replace(self, method=self.method or name, settings=settings, plugins=plugins)

    @property
    def rounds_needed(self) -> int:
        """Rounds that change anything: one of a model that is fitted at once, fewer where a method needs no more."""
        return self.rounds_of(self.model())

    def rounds_of(self, model: Model) -> int:
        """The same for a model that was made in Python and has no registered name."""
        if not isinstance(model, Central) and self.federation.clients != "all":
            return self.rounds
        accounted = budget(self.federation.privacy) is not None
        return min(self.rounds, enough_rounds(model, accounted=accounted) or self.rounds)

    def label(self) -> str:
        """What tables call the model: its name, or that of its file, its plug-ins, and the budget it is under."""
        names = [self.method, *(plugin for plugin, _ in self.plugins)]
        words = " + ".join(Path(name).stem if name.endswith(".py") else name for name in names)
        asked = None if self.method.lower() in BASELINES else budget(self.federation.privacy)
        return words if asked is None else f"{words}, {asked.mode} epsilon {asked.epsilon:g}"

    def data_label(self) -> str:
        """What tables call the data: a dataset's name, or a file's without its folder."""
        return Path(self.data).name if Path(self.data).is_absolute() else self.data

    def to_dict(self) -> dict[str, Any]:
        """The experiment as plain values."""
        words = ("method", "data", "rounds", "measure_every", "seed", "inactive", "watch", "engine", "device")
        return {
            **plain({name: getattr(self, name) for name in words}),
            "settings": plain(self.settings),
            "plugins": [{"name": name, "settings": plain(values)} for name, values in self.plugins],
            "columns": dict(self.columns),
            "protocol": self.protocol.plain(),
            "federation": self.federation.plain(),
            **({"settings_tried": self.settings_tried, "tried_on": self.tried_on} if self.settings_tried else {}),
            **({"like": self.like} if self.like else {}),
        }

    def identity(self) -> dict[str, Any]:
        """What decides the result, every default written out and the rounds those that are needed.

        Two experiments are the same where this is. The device is no part of it, nor what was tried before.
        """
        model = self.model()
        values = replace(self, settings_tried=0, like="").resolved(model).to_dict() | {"rounds": self.rounds_of(model)}
        del values["device"]
        return values

    def to_toml(self, folder: Path | None = None) -> str:
        """As TOML; for a folder, with paths that stay true where it is moved with what lies beside it.

        What is trained on everything has its own copy of the data, so that a name is enough.
        """
        values = self.to_dict()
        if folder is not None:
            data, beside = Path(self.data), folder.resolve().parent.parent
            if not self.protocol.measured:
                values["data"] = self.data_label()
            elif data.is_absolute() and beside in data.parents and beside != beside.parent:
                values["data"] = os.path.relpath(data, folder.resolve())
            values |= {"like": os.path.relpath(self.like, folder.resolve())} if self.like else {}
            _rename_files(values, lambda name: _from(folder.resolve(), name))
        return tomli_w.dumps(values)

    def to_toml_for_others(self) -> str:
        """As TOML that names no path: data, methods and plug-ins that are files go by their names alone."""
        values = self.to_dict() | {"data": self.data_label()}
        values.pop("like", None)
        _rename_files(values, lambda name: Path(name).name)
        return tomli_w.dumps(values)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], source: str = "experiment") -> Experiment:
        """From plain values; names what is unknown or missing."""
        return cls(**arguments(values, source))

    @classmethod
    def from_toml(cls, text: str, source: str = "experiment") -> Experiment:
        """From TOML text; `source` names it in errors. A Python file that it names has to be trusted before it runs."""
        values, path = parse_toml(text, source), Path(source)
        if path.name == "experiment.toml" and str(values.get("data", "")).startswith(os.pardir):
            values["data"] = str((path.parent / values["data"]).resolve())  # as `to_toml` wrote it for this folder
        if path.name == "experiment.toml":
            _rename_files(values, lambda name: _original_or_copy(path.parent, name))
        return cls.from_dict(values, source)

    @classmethod
    def load(cls, path: Path) -> Experiment:
        """From a TOML file."""
        experiment = cls.from_toml(toml_text(path, "experiment"), str(path))
        experiment.model()  # an unknown method or setting is better said now than when the run starts
        return experiment


def describe_model(model: Model) -> tuple[str, dict[str, Value], tuple[tuple[str, dict[str, Value]], ...]]:
    """Name, settings and plug-ins of a model made in Python, as an experiment writes them."""
    plugins: list[tuple[str, dict[str, Value]]] = []
    while isinstance(model, Plugin):
        plugins.insert(0, (model.name, model.values()))
        model = model.wrapped
    return model.name, model.values(), tuple(plugins)


def _rename_files(values: dict[str, Any], renamed: Callable[[str], str]) -> None:
    """Give the Python files of method and plug-ins other names; what is no such file stays."""

    def found(name: Any) -> Any:
        return renamed(name) if isinstance(name, str) and name.endswith(".py") else name

    if "method" in values:
        values["method"] = found(values["method"])
    plugins = values.get("plugins")
    for one in plugins if isinstance(plugins, list) else ():
        if isinstance(one, dict) and "name" in one:
            one["name"] = found(one["name"])


def _from(folder: Path, name: str) -> str:
    """A full path as seen from a run folder, so that it reveals nothing of the machine but where the two lie apart."""
    if not Path(name).is_absolute() or Path(name).drive != folder.drive:
        return name
    return Path(os.path.relpath(name, folder)).as_posix()


def _original_or_copy(folder: Path, name: str) -> str:
    """A Python file where it was, or, where it is no longer there, the copy that the run folder holds."""
    there = (folder / name).resolve()
    copy = folder / SOURCE / there.name
    return next((str(one) for one in (there, copy) if is_file(one)), name)


def _located(name: str) -> str:
    """A file by its full path, so that the experiment means the same from every folder; other names as they are."""
    return str(Path(name).resolve()) if is_file(Path(name)) else name


METHOD, FEDERATION = "method", "federation"


@dataclass(frozen=True)
class NamedSetting:
    """A setting that a person can name.

    Args:
        owner: "method", "federation", or a plug-in's name.
        own: its name there.
        cls: the settings class that declares it.
        default: its value if none is given.
        space: where to look for its best value; None where nothing was declared.
    """

    owner: str
    own: str
    cls: type[Settings]
    default: Any
    space: Space | None

    @property
    def kind(self) -> Any:
        """The setting's type."""
        return kinds_of(self.cls)[self.own]

    def read(self, value: Any) -> Any:
        """One value, from text or already typed."""
        return self.cls.read(self.own, value)

    def within(self, space: Space) -> NamedSetting:
        """The setting with another space, all of which it must allow."""
        for value in space.ends():  # a settings class checks every value it is made with; nothing else knows its rules
            self.cls(**{self.own: int(value) if self.kind is int and value == int(value) else value})
        return replace(self, space=space)

    def clashes(self, other: NamedSetting) -> bool:
        """Whether one of two settings excludes the other."""
        excludes = {one.name: one.metadata["rule"].excludes for one in declared(self.cls)}
        return self.cls is other.cls and (other.own in excludes[self.own] or self.own in excludes[other.own])


def named_settings(method: str, plugins: Sequence[str]) -> dict[str, NamedSetting]:
    """Settings of a method and of the federation by NAME, of plug-ins around it by PLUGIN.NAME.

    The federation's are there for every method, also for one that is not federated. Where names are equal, the method's
    counts.
    """
    every = [(METHOD, find_model(method), ""), (FEDERATION, FederationOptions, "")]
    around = [(_located(name) if name.endswith(".py") else name, find_plugin(name)) for name in plugins]
    every += [(plugin, found, f"{found.name}.") for plugin, found in around]
    found: dict[str, NamedSetting] = {}
    for owner, cls, prefix in every:
        for one in declared(cls):
            setting = NamedSetting(owner, one.name, cls, one.default, one.metadata["rule"].search)
            found.setdefault(prefix + one.name, setting)
    return found


def with_values(base: Experiment, known: Mapping[str, NamedSetting], values: Mapping[str, Any]) -> Experiment:
    """The experiment with settings replaced by name; text is read as the setting's type."""
    parts: dict[str, dict[str, Any]] = {}
    for name, value in values.items():
        parts.setdefault(known[name].owner, {})[known[name].own] = known[name].read(value)
    return replace(
        base,
        settings={**base.settings, **parts.get(METHOD, {})},
        plugins=tuple((plugin, {**own, **parts.get(plugin, {})}) for plugin, own in base.plugins),
        federation=FederationOptions.of({**base.federation.values(), **parts.get(FEDERATION, {})}),
    )
