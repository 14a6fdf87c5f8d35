"""Attack an experiment: what its server would learn of its clients, from messages equal to those of the run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ownview.attacks.dishonest.audit import DishonestSettings, audit
from ownview.attacks.dishonest.influence import certified
from ownview.attacks.scoring import AttackFinding
from ownview.attacks.suite import AttackSettings, attack_all, notes_on
from ownview.attacks.view import Scene
from ownview.base.arguments import kinds_checked
from ownview.base.errors import SettingError
from ownview.base.files import write_json
from ownview.base.trust import named_by_user
from ownview.data.interactions import Interactions
from ownview.data.splitting.splits import Split
from ownview.engine.machine import machine
from ownview.evaluation.named_protocols import HONEST
from ownview.evaluation.named_protocols import protocol as protocol_by_name
from ownview.evaluation.protocol import Protocol
from ownview.federation.checks.liars import defence
from ownview.federation.options import FederationOptions
from ownview.messages.robust import NONE
from ownview.methods.fedease.algorithm import SummedPairs
from ownview.privacy.masks import masked_sums
from ownview.registry import Model, build
from ownview.runs.experiment import Experiment, describe_model
from ownview.runs.files.folder import RunFolder
from ownview.runs.run import Run, experiment_of
from ownview.runs.training.setup import load_data, split_data
from ownview.seam.method import Federated

_MOST_CERTIFIED = 4000
"""Items up to which influence is certified: some ten seconds at 1,700."""


@dataclass(frozen=True)
class Attacked:
    """Findings of all attacks on one experiment.

    Args:
        experiment: that was attacked; a budget is for all of its rounds, whichever of them were watched.
        settings: of the attacks.
        findings: one an attack, those that do not apply included.
        notes: what a reader must know of them.
    """

    experiment: Experiment
    settings: AttackSettings
    findings: tuple[AttackFinding, ...]
    notes: tuple[str, ...] = ()

    def finding(self, attack: str) -> AttackFinding:
        """Finding of one attack, by name."""
        return {one.attack: one for one in self.findings}[attack]

    def to_dict(self) -> dict[str, Any]:
        """The findings as plain values."""
        one = self.experiment
        return {
            "method": one.label(), "data": one.data_label(), "protocol": one.protocol.name, "seed": one.seed,
            "privacy": one.federation.privacy, "rounds": self.settings.rounds, "clients": self.settings.clients,
            "attack_seed": self.settings.seed, "attacks": [found.to_dict() for found in self.findings],
            "notes": list(self.notes), "experiment": one.to_dict(),
        }  # fmt: skip


def attack_experiment(
    experiment: Experiment,
    settings: AttackSettings,
    *,
    model: Model | None = None,
    data: Interactions | None = None,
    memory: str = "auto",
    data_dir: Path | None = None,
    on_step: Callable[[str], None] = lambda step: None,
) -> Attacked:
    """All attacks on an experiment, watched from its first round: equal seeds send equal messages.

    Args:
        experiment: what is attacked.
        settings: how much of it.
        model: where the model was made in Python.
        data: where the data was made in Python.
        memory: what training may take.
        data_dir: where datasets are.
        on_step: called with the name of every step.
    """
    model = model or experiment.model()
    require_federated(model)
    source = load_data(experiment, data_dir) if data is None else data
    scene = scene_of(experiment, model, split_data(experiment, source), memory)
    settings = replace(settings, rounds=min(settings.rounds, experiment.rounds_of(model)))
    return Attacked(
        experiment, settings, tuple(attack_all(scene, settings, on_step)), notes_on(experiment.federation.privacy)
    )


def infiltrate_experiment(
    experiment: Experiment,
    settings: DishonestSettings,
    *,
    memory: str = "auto",
    data_dir: Path | None = None,
    on_step: Callable[[str], None] = lambda step: None,
) -> Attacked:
    """What dishonest clients of an experiment do to the lists of honest ones; see `attack_experiment` for the rest.

    A server that checks has the robust rule of a deployment, unless the experiment names another.
    """
    model = experiment.model()
    scene = scene_of(experiment, model, split_data(experiment, load_data(experiment, data_dir)), memory)
    sums = masked_sums(scene.options.privacy)
    if sums is not None:  # which are the same without the masks
        unmasked = replace(sums, masks=replace(sums.masks, real=False, signed=False))
        scene = replace(scene, options=replace(scene.options, privacy=str(unmasked)))
    elif scene.options.privacy != "none":
        raise SettingError(
            f"--dishonest with privacy={scene.options.privacy!r}: liars are tried on uploads in clear, and on masked "
            "sums without noise; expected none or masked:clip=C"
        )
    if settings.checked and scene.options.robust == NONE:
        rule = defence(scene.federation().terms)
        scene = replace(scene, options=replace(scene.options, robust=rule))
    found = audit(scene, settings, on_step)
    watched = AttackSettings(settings.rounds, scene.split.num_users, settings.seed, 0)
    notes: tuple[str, ...] = ()
    if isinstance(model, SummedPairs) and settings.checked and scene.split.num_items <= _MOST_CERTIFIED:
        notes = (str(certified(scene, model.regularization)),)
    return Attacked(experiment, watched, tuple(found), notes)


def scene_of(experiment: Experiment, model: Model, split: Split, memory: str = "auto") -> Scene:
    """The federation of an experiment, before its first round."""
    place = machine(experiment.device, memory, experiment.engine)
    excluded = experiment.protocol.training_exclusions(split)
    options = experiment.federation.for_rounds(experiment.rounds_of(model))
    return Scene(require_federated(model), split, excluded, options, experiment.seed, place)


def require_federated(model: Model) -> Federated:
    """Refuse what has no clients that send anything."""
    if not isinstance(model, Federated):
        raise SettingError(
            f"{model.name} is not federated: no client sends anything that could be attacked; "
            "name a federated method (`ownview ls methods`), of a blend one of its parts"
        )
    return model


@kinds_checked("data", "protocol", "federation")
def attack(
    target: Model | Run | str | Path,
    data: Interactions | str = "goodbooks",
    *,
    protocol: Protocol | str = HONEST,
    rounds: int = 3,
    clients: int = 50,
    seed: int = 0,
    privacy: str | None = None,
    federation: FederationOptions | Mapping[str, object] | None = None,
    audit_seeds: int = 5,
    device: str = "auto",
    out: str | Path | None = None,
) -> Attacked:
    """What an honest but curious server learns of its clients.

    Args:
        target: a method such as `ownview.FedMF()`, its name, or a run (or its folder), whose experiment is attacked.
        data: interactions, or a dataset's name or file; a run has its own.
        protocol: that splits the data; a run has its own.
        rounds: that the server watches.
        clients: whose messages it notes.
        seed: of the method's run and of the attacks; of a run, of the attacks alone.
        privacy: as federation setting `privacy`; takes the place of what the run had.
        federation: who takes part and how the server combines; a run has its own.
        audit_seeds: of the canary audit; 0 for none.
        device: auto, cpu or cuda.
        out: a JSON file for everything that was found.
    """
    settings = AttackSettings(rounds, clients, seed, audit_seeds)
    given = None if isinstance(data, str) else data
    model: Model | None = None
    if isinstance(target, Run | Path):
        experiment = target.experiment if isinstance(target, Run) else experiment_of(RunFolder.open(target))
        if isinstance(target, Run):
            model, given = target.model, target.data
    else:
        if isinstance(target, str):
            named_by_user(target)
        model = build(target, {}) if isinstance(target, str) else target
        name, own, plugins = describe_model(model)
        chosen = federation if isinstance(federation, FederationOptions) else FederationOptions.of(federation or {})
        experiment = Experiment(
            method=name, settings=own, plugins=plugins, rounds=rounds, seed=seed, federation=chosen,
            data=data if isinstance(data, str) else data.name,
            protocol=protocol_by_name(protocol) if isinstance(protocol, str) else protocol,
        )  # fmt: skip
    if privacy is not None:
        experiment = replace(experiment, federation=replace(experiment.federation, privacy=privacy))
    found = attack_experiment(replace(experiment, device=device), settings, model=model, data=given)
    if out is not None:
        write_json(Path(out), found.to_dict())
    return found
