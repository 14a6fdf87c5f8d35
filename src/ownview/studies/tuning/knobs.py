"""What is searched: settings of a method, its plug-ins and the federation, by the names `--set` gives them."""

from __future__ import annotations

import typing
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ownview.base.errors import SettingError, suggestion
from ownview.config.search import Space, parse_space
from ownview.config.settings import Rule, Settings, Value, declared
from ownview.federation.options import FederationOptions
from ownview.registry import find_model
from ownview.runs.experiment import Experiment
from ownview.runs.named_settings import FEDERATION, METHOD, NamedSetting, named_settings


@dataclass(frozen=True)
class Knob:
    """A setting that can be searched.

    Args:
        name: as `--set` knows it: NAME, or PLUGIN.NAME.
        owner: "method", "federation", or a plug-in's name.
        own: its name there.
        cls: the settings class that declares it.
        space: where to look; None where nothing was declared.
    """

    name: str
    owner: str
    own: str
    cls: type[Settings]
    space: Space | None

    @property
    def kind(self) -> Any:
        """The setting's type."""
        return typing.get_type_hints(self.cls)[self.own]

    @property
    def default(self) -> Value:
        """The setting's default."""
        default: Any = next(one.default for one in declared(self.cls) if one.name == self.own)
        return typing.cast(Value, default)

    def within(self, space: Space) -> Knob:
        """The knob with another space, all of which the setting must allow."""
        for value in space.ends():
            self._check(value)
        return replace(self, space=space)

    def read(self, text: str) -> Any:
        """One value from text."""
        return self.cls.read(self.own, text)

    def _check(self, value: Any) -> None:
        """A settings class checks every value it is made with; nothing else knows all its rules."""
        self.cls(**{self.own: int(value) if self.kind is int and value == int(value) else value})


def knobs(method: str, plugins: Sequence[str]) -> dict[str, Knob]:
    """Every setting of a method, of plug-ins around it and, if it is federated, of the federation."""
    federated = find_model(method).federated
    return {
        name: Knob(name, *one, _space(one))
        for name, one in named_settings(method, plugins).items()
        if federated or one.owner != FEDERATION
    }


def searched(method: str, plugins: Sequence[str], pinned: Iterable[str], asked: Sequence[str]) -> dict[str, Knob]:
    """What a tuning varies: the declared spaces of method and plug-ins, and whatever was asked for besides.

    Args:
        method: its name or file.
        plugins: around it, the first one innermost.
        pinned: settings with a fixed value.
        asked: NAME for the declared space of a setting (the federation's are searched only so), or NAME=SPACE.
    """
    every = knobs(method, plugins)
    fixed = set(pinned)
    chosen = {
        name: knob
        for name, knob in every.items()
        if knob.space is not None and knob.owner != FEDERATION and name not in fixed
    }
    for text in asked:
        name, equals, space = text.partition("=")
        if name not in every:
            raise SettingError(
                f"--search {text}: neither {method} nor the federation has a setting {name!r}{suggestion(name, every)}"
            )
        if name in fixed:
            raise SettingError(f"--search {text}: {name} is also pinned by --set; give one of the two")
        chosen[name] = _asked(every[name], text, space if equals else None)
    if not chosen:
        raise SettingError(f"{method} has no setting left to search; name one with --search NAME=LOW:HIGH")
    return chosen


def with_values(base: Experiment, chosen: Mapping[str, Knob], values: Mapping[str, Value]) -> Experiment:
    """The experiment with settings replaced by name."""
    parts: dict[str, dict[str, Any]] = {}
    for name, value in values.items():
        parts.setdefault(chosen[name].owner, {})[chosen[name].own] = value
    return replace(
        base,
        settings={**base.settings, **parts.get(METHOD, {})},
        plugins=tuple((plugin, {**own, **parts.get(plugin, {})}) for plugin, own in base.plugins),
        federation=FederationOptions.of({**base.federation.values(), **parts.get(FEDERATION, {})}),
    )


def _asked(knob: Knob, text: str, space: str | None) -> Knob:
    if space is None and knob.space is None:
        raise SettingError(
            f"--search {text}: no space is declared for it; expected {text}=LOW:HIGH[:log] or {text}=a,b"
        )
    if space is None:
        return knob
    try:
        return knob.within(parse_space(space, knob.kind, knob.read))
    except SettingError as error:
        raise SettingError(f"--search {text}: {error}") from None


def _space(one: NamedSetting) -> Space | None:
    rule: Rule = next(field.metadata["rule"] for field in declared(one.cls) if field.name == one.own)
    return rule.search
