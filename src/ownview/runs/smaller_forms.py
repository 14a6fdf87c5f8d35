"""Forms of a method that need less memory, as experiments: what an experiment becomes where it does not fit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ownview.config.differences import differences
from ownview.registry import Model, enough_rounds
from ownview.runs.experiment import Experiment
from ownview.runs.files.folder import RunFolder
from ownview.seam.method import Federated


def forms_of(experiment: Experiment, model: Model) -> Iterator[tuple[Experiment, Model]]:
    """The experiment, then the same in ever smaller forms, as long as no setting that was given chose the form.

    A model that was made in Python has its own form alone. A smaller one has as many rounds as it needs.
    """
    yield experiment, model
    asked = set(experiment.settings)
    if not isinstance(model, Federated) or not model.smaller() or asked & set(model.smaller()):
        return
    if model != experiment.model():
        return
    while isinstance(model, Federated) and (less := model.smaller()):
        experiment = replace(experiment, settings={**experiment.settings, **less})
        model = experiment.model()
        experiment = replace(experiment, rounds=max(experiment.rounds, enough_rounds(model) or 1))
        yield experiment, model


def form_in(folder: RunFolder, experiment: Experiment) -> Experiment:
    """The form of an experiment that a folder's run began with; the experiment itself where it has none of them."""
    have = Experiment.from_toml(folder.read_experiment(), str(folder.path / "experiment.toml")).to_dict()
    for form, _ in forms_of(experiment, experiment.model()):
        if not any(differences(have, form.identity())):
            return form
    return experiment
