"""Settings by the names that `--set` gives them."""

from __future__ import annotations

import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ownview.config.search import Space
from ownview.config.settings import Settings, declared
from ownview.federation.options import FederationOptions
from ownview.registry import find_model, find_plugin
from ownview.runs.experiment import Experiment

METHOD, FEDERATION = "method", "federation"


@dataclass(frozen=True)
class NamedSetting:
    """A setting that a person can name.

    Args:
        owner: "method", "federation", or a plug-in's name.
        own: its name there.
        cls: the settings class that declares it.
        default: its value where nobody gives one.
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
        return typing.get_type_hints(self.cls)[self.own]

    def read(self, value: Any) -> Any:
        """One value, from text or already typed."""
        return self.cls.read(self.own, value)

    def within(self, space: Space) -> NamedSetting:
        """The setting with another space, all of which it must allow."""
        for value in space.ends():  # a settings class checks every value it is made with; nothing else knows its rules
            self.cls(**{self.own: int(value) if self.kind is int and value == int(value) else value})
        return replace(self, space=space)


def named_settings(method: str, plugins: Sequence[str]) -> dict[str, NamedSetting]:
    """Settings of a method and of the federation by NAME, of plug-ins around it by PLUGIN.NAME.

    The federation's are there for every method, also for one that is not federated. Where names are equal, the method's
    counts.
    """
    every = [(METHOD, find_model(method), ""), (FEDERATION, FederationOptions, "")]
    every += [(plugin, find_plugin(plugin), f"{plugin}.") for plugin in plugins]
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
