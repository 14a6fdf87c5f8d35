"""Finished runs become one: a blend of their models, with weights found on validation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from ownview.base.errors import SettingError
from ownview.blends.blend import Blend, Part
from ownview.runs.experiment import Experiment
from ownview.runs.run import open_run


def blend_of(paths: Sequence[Path], own: float = 0.0) -> Experiment:
    """The experiment that blends finished runs; they must have been asked the same, of the same data."""
    runs = [open_run(path) for path in paths]
    first = runs[0].experiment
    for run, path in zip(runs, paths, strict=True):
        other = run.experiment
        for what in ("data", "columns", "protocol", "seed"):
            if getattr(other, what) != getattr(first, what):
                raise SettingError(
                    f"{path}: its {what} is {_short(other, what)}, that of {paths[0]} is {_short(first, what)}; "
                    "expected runs that differ in the method alone"
                )
        if other.plugins:
            raise SettingError(f"{path}: has the plug-in {other.plugins[0][0]}; expected a run without plug-ins")
    parts = tuple(
        str(Part.of(run.experiment.method, run.experiment.settings, str(path.resolve())))
        for run, path in zip(runs, paths, strict=True)
    )
    settings = Blend(parts=parts, own=own).values()
    return replace(first, method=Blend.name, settings=settings, rounds=1, device="auto", watch=(), settings_tried=0)


def blend_beside(asked: Experiment, parts: Sequence[tuple[Experiment, str]]) -> Experiment:
    """A blend of runs that will lie beside its own folder, each by its experiment and its folder's name."""
    texts = []
    for experiment, folder in parts:
        settings = experiment.resolved(experiment.model()).settings
        texts.append(str(Part.of(experiment.method, settings, folder)))
    return replace(asked, settings={**asked.settings, "parts": tuple(texts)}, rounds=1)


def _short(experiment: Experiment, what: str) -> str:
    value = getattr(experiment, what)
    return repr(value.name if what == "protocol" else value)
