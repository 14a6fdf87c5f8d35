"""Settings that differ from their defaults, as labels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ownview.base.errors import OwnviewError
from ownview.base.trust import unasked
from ownview.config.presets.loading import presets_of
from ownview.federation.options import FederationOptions
from ownview.registry import build
from ownview.runs.experiment import Experiment, describe_model


def differing_settings(experiment: Experiment) -> list[str]:
    """Preset, plug-ins, privacy, settings and options of the federation that differ, as they would be typed.

    A preset is named where it explains the settings best: what differs from it stands behind it.
    """
    labels = [f"plug-in {name}" for name, _ in experiment.plugins]
    try:
        with unasked():
            return labels + min(_ways_to_say(experiment), key=len)
    except OwnviewError:  # a method made in Python, which has no name to make it anew by, or a file that may not run
        return labels


def _ways_to_say(experiment: Experiment) -> list[list[str]]:
    """What differs from the method's defaults, and from each of its presets."""
    bare = describe_model(build(experiment.method, {}))[1]
    found = [_differing(experiment, bare, FederationOptions().values())]
    for one in presets_of(experiment.method, experiment.data_label()):
        settings = describe_model(build(one.method, one.settings))[1]
        rest = _differing(experiment, settings, FederationOptions.of(one.federation).values())
        found.append([f"preset {one.name}", *rest])
    return found


def _differing(experiment: Experiment, settings: Mapping[str, Any], federation: Mapping[str, Any]) -> list[str]:
    mine = {**experiment.settings, **experiment.federation.values()}
    usual = {**settings, **federation}
    return [f"{name}={_text(value)}" for name, value in mine.items() if name in usual and value != usual[name]]


def _text(value: Any) -> str:
    return ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
