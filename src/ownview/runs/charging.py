"""Charges a model under a budget to the ledger of releases.

A model that is fitted (trained on everything) is charged before its training begins, any other one under a budget when
it is published. Measured runs stay where they are, and noise from a seed is no release under a budget at all.
"""

from __future__ import annotations

from pathlib import Path

from ownview.base.errors import SettingError
from ownview.base.files import sha256_of
from ownview.data.datasets.catalog import catalog
from ownview.data.interactions import Interactions
from ownview.privacy.planning import accounted_rounds
from ownview.releases.entries import Mechanism
from ownview.releases.people import OWN
from ownview.releases.release_ledger import Asked, Ledger
from ownview.round.federation import Federation
from ownview.runs.experiment import Experiment
from ownview.runs.files.folder import RunFolder


def world_of(data: str) -> str:
    """Whose ids the users of some data are: those of a catalogue's dataset, or those of all data of one's own."""
    return data if data in catalog() else OWN


def mechanism_of(federation: Federation | None) -> Mechanism | None:
    """What a federation releases under a budget; None without one, or where its noise is known."""
    plan = None if federation is None else federation.world.protection
    if federation is None or plan is None or plan.seeded:
        return None
    number = federation.world.num_clients
    rounds, sampling = accounted_rounds(plan, federation.options, number, federation.method.releases)
    return Mechanism(plan.mode, plan.epsilon, plan.delta, plan.noise[:rounds], sampling)


def charge_fit(
    experiment: Experiment,
    federation: Federation | None,
    name: str,
    data: Interactions,
    folder: Path,
    total: float | None = None,
) -> None:
    """Charge a model that is trained on everything, before it is trained.

    Args:
        experiment: of the model.
        federation: of the model; None where it has none.
        name: of the key that its noise is drawn from.
        data: of all who take part.
        folder: of the model.
        total: for these people from now on.
    """
    mechanism = mechanism_of(federation)
    if mechanism is None or experiment.protocol.measured:
        if total is not None:
            raise SettingError(f"--total {total:g}: the model has no secret noise under a budget; add --privacy ...")
        return
    Ledger().charge(_asked(experiment, name, folder, mechanism, data), data.users, total)


def charge_publication(
    experiment: Experiment, federation: Federation | None, folder: RunFolder, data: Interactions
) -> None:
    """Charge a finished model before anything of it is published; one that was charged already costs nothing."""
    mechanism = mechanism_of(federation)
    if mechanism is not None:
        name = str(folder.read_note("privacy").get("release") or sha256_of(folder.path / "model.safetensors"))
        Ledger().charge(_asked(experiment, name, folder.path, mechanism, data), data.users)


def _asked(experiment: Experiment, name: str, folder: Path, mechanism: Mechanism, data: Interactions) -> Asked:
    called, place = experiment.data, str(folder.resolve())
    return Asked(name, called, world_of(called), experiment.label(), place, mechanism, data.items)
