"""What installed packages bring: methods, plug-ins, baselines and datasets by entry points of their metadata.

[project.entry-points."ownview.methods"]
my-method = "my_package:MyMethod"

Names are read from metadata; nothing of a package is imported before one of its names is asked for. A package that is
installed may run: installing it was the user's choice. Names of Ownview itself are never replaced.
"""

from __future__ import annotations

from functools import cache
from importlib.metadata import EntryPoint, entry_points

from ownview.base.errors import SettingError

METHODS, PLUGINS, BASELINES, DATASETS = "ownview.methods", "ownview.plugins", "ownview.baselines", "ownview.datasets"


@cache
def named(group: str) -> dict[str, EntryPoint]:
    """By name, what packages offer; the first package counts where two offer the same."""
    found: dict[str, EntryPoint] = {}
    for one in entry_points(group=group):
        found.setdefault(one.name.lower(), one)
    return found


def load(group: str, name: str) -> object:
    """What a package offers by that name; `SettingError` where it cannot be imported."""
    one = named(group)[name.lower()]
    try:
        return one.load()
    except Exception as error:
        package = one.dist.name if one.dist is not None else one.value
        raise SettingError(
            f"{name}: the installed package {package} cannot be imported ({one.value}): {type(error).__name__}: {error}"
        ) from error
