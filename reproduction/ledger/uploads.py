"""What one upload gives away under the noise of published tables: an attack for every setting, in a record of its own.

Every row with noise is attacked with its paper's settings and data, and so is the same row without noise. An upload of
the first round hangs on nobody else, so that only the clients who are watched train; before a later one everybody
trains, noise and all.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ownview.attacks import unclipped
from ownview.attacks.suite import from_one_upload
from ownview.attacks.view import Scene, victims
from ownview.base.errors import OutputError
from ownview.data.datasets.catalog import find
from ownview.runs.experiment import Experiment
from ownview.runs.files.provenance import provenance
from ownview.runs.findings.attacking import scene_of
from ownview.runs.training.setup import load_data, split_data
from ownview.studies.bench.results import write_document
from reproduction.ledger.reckoning import work
from reproduction.ledger.record import Entry, as_called_now
from reproduction.ledger.rows import Asked, LedgerRow, without_noise

FORMAT = 1
"""Of the file; a reader refuses others."""

CLIENTS, SEED = 50, 0
"""Who is watched, drawn at random: enough that chance moves a mean AUC by about .01."""

LATER = 3
"""The round besides the first that pages show."""

_ABOUT = (
    "What one upload gives away under the papers' noise: made by `python -m reproduction run --all --attack --record`."
)
_DIGITS = 4
_FROM_EXPERIMENT = ("method", "settings", "plugins", "federation", "measure_every")


@dataclass(frozen=True)
class Target:
    """One upload of one setting.

    Args:
        asked: the setting, with its name.
        round: the upload belongs to, from 1.
    """

    asked: Asked
    round: int

    @property
    def key(self) -> tuple[str, int]:
        """What it is recorded under."""
        return self.asked.name, self.round


@dataclass(frozen=True)
class UploadRecord:
    """Attacks by name of the setting and round, and the protocols they name, as plain values."""

    attacks: Mapping[tuple[str, int], Entry] = field(default_factory=dict)
    protocols: Mapping[str, Any] = field(default_factory=dict)

    def plain(self) -> dict[str, Any]:
        """As the file has it."""
        return {
            "format": FORMAT,
            "about": _ABOUT,
            "protocols": dict(sorted(self.protocols.items())),
            "attacks": [self.attacks[key] for key in sorted(self.attacks)],
        }

    def write(self, path: Path) -> None:
        """Whole or not at all."""
        write_document(path, self.plain())


def settings_asked_for() -> set[str]:
    """Names of everything that is to be attacked, data at hand or not."""
    return {*without_noise(), *(one.name for one in without_noise().values())}


def read_uploads(path: Path) -> UploadRecord:
    """What was recorded, under the names that settings have in this version; nothing where there is no file."""
    if not path.is_file():
        return UploadRecord()
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise OutputError(f"{path}: cannot be read as JSON: {error}") from None
    found = values.get("format") if isinstance(values, dict) else None
    if found != FORMAT or not {"protocols", "attacks"} <= set(values):
        expected = "what `python -m reproduction run --all --attack` wrote"
        raise OutputError(f"{path}: format {found!r}, expected {FORMAT}: {expected}")
    protocols, asked = values["protocols"], settings_asked_for()
    every = [
        one if one["row"] in asked else as_called_now(one, protocols[one["protocol"]]) for one in values["attacks"]
    ]
    return UploadRecord({(one["row"], one["round"]): one for one in every}, protocols)


def targets(rows: Iterable[LedgerRow], number: int, data_dir: Path | None = None) -> list[Target]:
    """An upload of round `number` of every setting of rows with noise, and of the same without; what is least first.

    Rows whose data is not here are left out.
    """
    noisy = [row.here for row in rows if row.noise and row.here is not None]
    here = [one for one in noisy if find(one.experiment.data, data_dir) is not None]
    every = {one.name: one for asked in here for one in (without_noise()[asked.name], asked)}
    return [Target(one, number) for one in sorted(every.values(), key=_least_first)]


def _least_first(one: Asked) -> tuple[float, str, str, str]:
    made = one.experiment
    return work(made), made.label(), made.data_label(), made.federation.privacy


def attacked(target: Target, device: str, memory: str, data_dir: Path | None) -> UploadRecord:
    """A record of one attack: the best of those that look at a single upload, and what Laplace noise cost.

    Args:
        target: what is attacked.
        device: cpu, cuda or auto.
        memory: what training may take.
        data_dir: where datasets are.
    """
    experiment = replace(target.asked.experiment, seed=SEED, device=device)
    split = split_data(experiment, load_data(experiment, data_dir))
    scene = scene_of(experiment, experiment.model(), split, memory)
    found = from_one_upload(scene, CLIENTS, SEED, target.round)
    entry = {
        "run": target.asked.name,
        "row": target.asked.name,
        "round": target.round,
        **_about(experiment),
        "attack": found.attack,
        "sees": found.sees,
        "succeeds": found.succeeds,
        "sentence": found.sentence,
        "values": {name: round(value, _DIGITS) for name, value in found.values.items()},
        **_epsilon(scene, target.round),
        "experiment": _settings(experiment),
        "provenance": provenance(split, scene.machine, experiment),
    }
    return UploadRecord({target.key: entry}, {experiment.protocol.name: experiment.protocol.plain()})


def together(records: Sequence[UploadRecord]) -> UploadRecord:
    """One record of all; later ones count where they are of the same upload."""
    attacks = {key: one for record in records for key, one in record.attacks.items()}
    protocols = {name: plain for record in records for name, plain in record.protocols.items()}
    return UploadRecord(attacks, protocols)


def _about(experiment: Experiment) -> Entry:
    return {
        "method": experiment.label(),
        "data": experiment.data_label(),
        "protocol": experiment.protocol.name,
        "privacy": experiment.federation.privacy,
        "rounds": experiment.rounds,
        "seed": experiment.seed,
        "watched": CLIENTS,
    }


def _settings(experiment: Experiment) -> Entry:
    values = experiment.resolved(experiment.model()).to_dict()
    return {name: values[name] for name in _FROM_EXPERIMENT}


def _epsilon(scene: Scene, number: int) -> Entry:
    """What the first round cost the median of those watched, under Laplace noise, which bounds nothing."""
    if number > 1 or not scene.options.privacy.startswith("laplace:"):
        return {}
    found = unclipped.measured(scene, victims(scene.split.num_users, CLIENTS, SEED))
    return {"epsilon_of_median_user": round(found.values["epsilon of the median user"], 1)} if found.applies else {}
