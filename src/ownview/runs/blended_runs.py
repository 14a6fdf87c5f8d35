"""A blend of finished runs, with weights chosen on validation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from ownview.base.errors import SettingError
from ownview.blends.blend import Blend, Part
from ownview.config.settings import Value
from ownview.registry import enough_rounds, parts_of
from ownview.runs.experiment import Experiment
from ownview.runs.files.folder import RunFolder
from ownview.runs.summaries.tried_settings import tried


def blend_of(paths: Sequence[Path], own: float = 0.0, like: Path | None = None) -> Experiment:
    """The experiment that blends finished runs; they must have been asked the same, of the same data.

    Args:
        paths: folders of the runs.
        own: weight of a client's own wins.
        like: a measured blend of the same methods, in the same order, whose weights are taken. Models that were
            trained on everything need one: there is nothing left to find weights by.
    """
    runs = [_finished(path)[1] for path in paths]
    first = runs[0]
    for other, path in zip(runs, paths, strict=True):
        for what in ("data", "columns", "protocol", "seed"):
            if getattr(other, what) != getattr(first, what):
                raise SettingError(
                    f"{path}: its {what} is {_short(other, what)}, that of {paths[0]} is {_short(first, what)}; "
                    "expected runs that differ in the method alone"
                )
        if other.plugins:
            raise SettingError(f"{path}: has the plug-in {other.plugins[0][0]}; expected a run without plug-ins")
    parts = tuple(
        str(Part.of(run.method, run.settings, str(path.resolve()))) for run, path in zip(runs, paths, strict=True)
    )
    weights, origin = ((), "") if like is None else (_weights_of(like, parts), str(like.resolve()))
    settings = Blend(parts=parts, own=own, weights=weights).values()
    return replace(
        first, method=Blend.name, settings=settings, rounds=1, device="auto", watch=(), settings_tried=0, like=origin
    )


def on_everything_like(blend: Experiment, model: Blend, path: Path) -> Experiment:
    """A measured blend's parts, to be trained anew on everything, with the weights that it found.

    Args:
        blend: of the measured run.
        model: its settings.
        path: its folder.
    """
    parts = []
    for text, one in zip(model.parts, parts_of(model), strict=True):
        part = Part.read(text)
        if enough_rounds(one) is None:
            raise SettingError(
                f"{path}: its part {part.method} trains round by round; train every part on everything by itself "
                f"(ownview fit --like {part.folder or 'RUN'}), then: ownview blend MODEL MODEL ... --like {path}"
            )
        parts.append(str(part._replace(folder="")))
    taken: dict[str, Value] = {"parts": tuple(parts), "weights": _weights_of(path, model.parts), "own": 0.0}
    return replace(blend, settings={**blend.settings, **taken})


def _weights_of(path: Path, parts: Sequence[str]) -> tuple[float, ...]:
    """[2 P] what a measured blend found for the same methods."""
    folder, measured = _finished(path)
    model, expected = measured.model(), [Part.read(text).method for text in parts]
    found = [Part.read(text).method for text in model.parts] if isinstance(model, Blend) else [measured.label()]
    if not isinstance(model, Blend) or found != expected:
        raise SettingError(f"{path}: expected a measured blend of {', '.join(expected)}; found {', '.join(found)}")
    weights = folder.read_tensors("model")[0]["weights"]
    if len(weights) != 2:
        raise SettingError(f"{path}: its clients have weights of their own; expected a blend with own=0")
    return tuple(weights.flatten().tolist())


def blend_beside(asked: Experiment, parts: Sequence[tuple[Experiment, str]]) -> Experiment:
    """A blend of runs that will lie beside its own folder, each by its experiment and its folder's name.

    Its settings were chosen from as many as those of its parts together; unknown where one of them does not say.
    """
    texts = []
    for experiment, folder in parts:
        settings = experiment.resolved(experiment.model()).settings
        texts.append(str(Part.of(experiment.method, settings, folder)))
    each = [tried(experiment) for experiment, _ in parts]
    known = [one.settings for one in each if one is not None]
    number = sum(known) if len(known) == len(each) and not asked.settings_tried else asked.settings_tried
    return replace(asked, settings={**asked.settings, "parts": tuple(texts)}, rounds=1, settings_tried=number)


def _finished(path: Path) -> tuple[RunFolder, Experiment]:
    """The folder of a run that has ended, and what it was asked to do."""
    folder = RunFolder.open(path)
    folder.read_result()
    return folder, Experiment.from_toml(folder.read_experiment(), str(path / "experiment.toml"))


def _short(experiment: Experiment, what: str) -> str:
    value = getattr(experiment, what)
    return repr(value.name if what == "protocol" else value)
