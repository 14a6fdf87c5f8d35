"""What an experiment file may say: plain values into the arguments of an experiment."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ownview.base.errors import SettingError, suggestion
from ownview.config.settings import Value
from ownview.evaluation.protocol import custom, protocol
from ownview.federation.options import FederationOptions

_KINDS: dict[str, tuple[tuple[type, ...], str]] = {
    **dict.fromkeys(("method", "data", "engine", "device", "tried_on"), ((str,), "text")),
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
        if name not in _KINDS:
            raise SettingError(f"{source} has no setting {name!r}{suggestion(name, _KINDS)}")
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


def _plugin_of(one: Any, source: str) -> tuple[str, Mapping[str, Value]]:
    settings = one.get("settings", {}) if isinstance(one, Mapping) else None
    if not isinstance(settings, Mapping) or not isinstance(one.get("name"), str):
        raise SettingError(f"{source}: plug-in {one!r}: expected a table with a name and, if need be, settings")
    return one["name"], settings
