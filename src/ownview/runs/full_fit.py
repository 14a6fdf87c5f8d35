"""Models that are trained on everything: what they are asked to do, and what stands in their folder for figures."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from ownview.base.errors import OwnviewError, SettingError
from ownview.blends.blend import Blend
from ownview.evaluation.metrics import HEADLINE
from ownview.evaluation.named_protocols import on_everything
from ownview.privacy.budget import budget
from ownview.registry import Model, enough_rounds
from ownview.runs.blended_runs import on_everything_like
from ownview.runs.experiment import Experiment
from ownview.runs.files.folder import RunFolder

NO_TEST_FIGURE = "trained on everything: nothing was held out, so there is no test figure"


def fit_of(base: Experiment, rounds: int | None, model: Model | None = None) -> Experiment:
    """The experiment that trains a method on everything.

    Args:
        base: method, settings, data and seed; its protocol says how the data is filtered.
        rounds: how many, chosen elsewhere; None where the method needs no choice.
        model: where it was made in Python and has no registered name.
    """
    accounted = budget(base.federation.privacy) is not None
    enough = enough_rounds(base.model() if model is None else model, accounted=accounted)
    if rounds is None and (enough is None or base.federation.clients != "all"):
        raise SettingError(
            f"{base.label()} trains round by round, and here nothing is held out to choose the round by: give rounds, "
            "or take the round that a measured run chose (--like RUN)"
        )
    everything, needed = on_everything(base.protocol), rounds or enough or 1
    return replace(base, protocol=everything, rounds=needed, measure_every=1, inactive="", watch=())


def fit_like(
    path: Path,
    *,
    data: str | None = None,
    columns: Mapping[str, str] | None = None,
    model: Model | None = None,
    privacy: str | None = None,
) -> Experiment:
    """The experiment that does on everything what a finished run did: its settings, its plug-ins, its chosen round.

    Args:
        path: the run's folder.
        data: other data than the run's.
        columns: of that data.
        model: where it was made in Python and has no registered name.
        privacy: another setting of the federation than the run's. Under a budget a method with releases of its own
            makes all of them; settings still come from a run that no epsilon covers.
    """
    folder = RunFolder.open(path)
    run = Experiment.from_toml(folder.read_experiment(), str(path / "experiment.toml"))
    result = folder.read_result()
    if "no_test_figure" in result:
        origin = f": {(path / run.like).resolve()}" if run.like else ""
        raise SettingError(
            f"{path}: is itself trained on everything and chose no round; name the run it is like{origin}"
        )
    if data is not None:
        run = replace(run, data=data, columns=columns or {})
    rounds: int | None = result["chosen_round"]
    blend = run.model() if model is None else model
    if isinstance(blend, Blend):
        # A blend of finished runs has one round; its parts, trained anew, have as many as they need.
        run, rounds, model = on_everything_like(run, blend, path), None, None
    if privacy is not None:
        run, rounds = _under(run, privacy, rounds, blend)
    found = fit_of(run, rounds, model)
    return replace(found, like=str(path.resolve()), device="auto", settings_tried=0)


def _under(run: Experiment, privacy: str, rounds: int | None, model: Model) -> tuple[Experiment, int | None]:
    """The experiment with another privacy, and the rounds it needs then."""
    if isinstance(model, Blend) or not model.federated:
        raise SettingError(f"--privacy {privacy}: {run.label()} is no federated method; nothing is sent")
    run = replace(run, federation=replace(run.federation, privacy=privacy))
    accounted = budget(privacy) is not None
    enough = enough_rounds(model, accounted=accounted)
    return run, rounds if enough is None else enough


def settings_from(like: str, model: Path) -> dict[str, Any]:
    """What to say of the run that settings come from; its folder alone where that can no longer be read.

    Args:
        like: the run's folder, from the model's.
        model: folder.
    """
    origin: dict[str, Any] = {"run": os.path.relpath(model / like, model)}
    try:
        result = RunFolder.open(model / like).read_result()
        words = {name: result[name] for name in ("protocol", "chosen_on", "chosen_round", "rounds")}
        return origin | words | {"test": {name: result["test"][name] for name in HEADLINE}}
    except (OwnviewError, KeyError):
        return origin
