"""Settings by the names that `--set` gives them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ownview.config.settings import Settings, own_settings
from ownview.federation.options import FederationOptions
from ownview.registry import find_model, find_plugin

METHOD, FEDERATION = "method", "federation"


class NamedSetting(NamedTuple):
    """A setting that a person can name.

    Args:
        owner: "method", "federation", or a plug-in's name.
        own: its name there.
        cls: the settings class that declares it.
    """

    owner: str
    own: str
    cls: type[Settings]


def named_settings(method: str, plugins: Sequence[str]) -> dict[str, NamedSetting]:
    """Settings of a method and of the federation by NAME, of plug-ins around it by PLUGIN.NAME.

    The federation's are there for every method, also for one that is not federated. Where names are equal, the method's
    counts.
    """
    every = [(METHOD, find_model(method), ""), (FEDERATION, FederationOptions, "")]
    every += [(plugin, find_plugin(plugin), f"{plugin}.") for plugin in plugins]
    found: dict[str, NamedSetting] = {}
    for owner, cls, prefix in every:
        for own in own_settings(cls):
            found.setdefault(prefix + own, NamedSetting(owner, own, cls))
    return found
