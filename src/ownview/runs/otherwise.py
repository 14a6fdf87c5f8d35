"""What of an experiment is not as it is by default, in a few words each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ownview.base.errors import OwnviewError
from ownview.config.presets.loading import presets_of
from ownview.federation.options import FederationOptions
from ownview.registry import build
from ownview.runs.experiment import Experiment, describe_model


def otherwise(experiment: Experiment) -> list[str]:
    """Preset, plug-ins, privacy, settings and options of the federation that differ, as they would be typed.

    A preset is named where it explains the settings best: what differs from it stands behind it.
    """
    told = [f"plug-in {name}" for name, _ in experiment.plugins]
    try:
        bare = describe_model(build(experiment.method, {}))[1]
        found = [_differing(experiment, bare, FederationOptions().values())]
        for one in presets_of(experiment.method, experiment.data_label()):
            settings = describe_model(build(one.method, one.settings))[1]
            rest = _differing(experiment, settings, FederationOptions.of(one.federation).values())
            found.append([f"preset {one.name}", *rest])
    except OwnviewError:  # a method made in Python, which nobody can make anew by its name
        return told
    return told + min(found, key=len)


def _differing(experiment: Experiment, settings: Mapping[str, Any], federation: Mapping[str, Any]) -> list[str]:
    mine = {**experiment.settings, **experiment.federation.values()}
    usual = {**settings, **federation}
    return [f"{name}={_text(value)}" for name, value in mine.items() if name in usual and value != usual[name]]


def _text(value: Any) -> str:
    return ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
