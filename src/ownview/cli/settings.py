"""Experiments from what was typed: --set NAME=VALUE, and where runs go."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from ownview.base.errors import SettingError, suggestion
from ownview.cli.options import RUNS
from ownview.registry import PLUGINS, find_model
from ownview.runs.experiment import FEDERATION, Experiment, named_settings, with_values


def folder_of(experiment: Experiment, before: str = "") -> Path:
    """runs/METHOD-DATA-PROTOCOL-SEED, with a word in front of it."""
    name = f"{before}{experiment.label()}-{Path(experiment.data).stem}-{experiment.protocol.name}-seed{experiment.seed}"
    return RUNS / name.replace("/", "-").replace(" ", "")


def settings_of(method: str, plugins: Sequence[str]) -> set[str]:
    """Names of the settings of a method, of its plug-ins, and of the federation where it is federated."""
    federated = find_model(method).federated
    return {name for name, one in named_settings(method, plugins).items() if federated or one.owner != FEDERATION}


def with_settings(base: Experiment, method: str, plugins: Sequence[str], sets: Sequence[str]) -> Experiment:
    """`base` with a method in plug-ins and what NAME=VALUE pairs say of them and of the federation.

    What `base` says of the same method, of the same plug-ins and of the federation stays where no pair says other.
    """
    known, chosen = named_settings(method, plugins), {}
    for pair in sets:
        name, equals, value = pair.partition("=")
        if not equals:
            raise SettingError(f"--set {pair}: expected NAME=VALUE")
        if name in known:
            chosen[name] = value
        elif (plugin := name.partition(".")[0]) in PLUGINS and plugin not in plugins:
            raise SettingError(f"--set {pair}: plug-in {plugin} is not in use; add --plugin {plugin}")
        else:
            near = suggestion(name, set(known))
            raise SettingError(f"--set {pair}: neither {method} nor the federation has a setting {name!r}{near}")
    before = base.settings if method.lower() == base.method.lower() else {}
    own = tuple((plugin, dict(base.plugins).get(plugin, {})) for plugin in plugins)
    experiment = with_values(replace(base, method=method, settings=before, plugins=own), known, chosen)
    experiment.model()
    return experiment
