"""Models that train: with new rows they train on from where they were; without a person they train anew."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor

from ownview.base.display.amounts import counted
from ownview.base.errors import OutputError
from ownview.data.interactions import Interactions
from ownview.registry import enough_rounds
from ownview.runs.files.data_copy import write_histories
from ownview.runs.files.folder import RunFolder
from ownview.runs.run import Run
from ownview.runs.training.finishing import Finishing
from ownview.runs.training.setup import ExperimentSetup
from ownview.runs.training.training_rounds import Training
from ownview.seam.method import Federated

_SHARE = 10
"""Rounds of an update are one in so many of those that the model was trained for, rounded up."""


def rounds_more(run: Run) -> int:
    """That an update trains; none are chosen, because nothing is held out to choose by."""
    return -(-int(run.result["rounds"]) // _SHARE)


def write_trained(place: Path, run: Run, data: Interactions, rounds: int | None) -> str:
    """Write a finished model of other data into a folder that exists; how it was made, in words.

    Args:
        place: the folder.
        run: the model as it was.
        data: all rows that count now; users and items of before stand first where it trains on.
        rounds: that it trains on from where it was; None to train anew.
    """
    begun = time.perf_counter()
    enough = enough_rounds(run.model or run.experiment.model()) is not None
    before, done = run.folder.read_tensors("model")[0], int(run.result["rounds"])
    anew = rounds is None or enough
    experiment = replace(run.experiment, data=data.name, rounds=done + (0 if anew or rounds is None else rounds))
    setup = ExperimentSetup.of(experiment, data=data)
    trainer = setup.trainer(experiment, experiment.model(), place.parent)
    folder, why = RunFolder(place), "rows are fitted at once" if enough else "as if it had never been otherwise"
    training = Training(
        trainer, experiment.protocol, setup.rankers, experiment.rounds, folder, setup.machine.device,
        lambda number, metrics: None,
    )  # fmt: skip
    if not anew:
        packed = grown(before, trainer.pack())
        if packed is None or (not isinstance(experiment.model(), Federated) and data.num_items > _items(run)):
            anew, why = True, "its values have no place for what is new"
            training.rounds = experiment.rounds
        else:
            trainer.unpack(packed)
            training.done, training.lines = done, run.rounds
    write_histories(place, data)
    folder.write_experiment(experiment.to_toml(place))
    folder.write_provenance(setup.provenance(experiment))
    folder.write_rounds(training.lines)
    Finishing(experiment, setup.split, setup.rankers[1], trainer, None).write(training.run(), folder)
    seconds = f"{time.perf_counter() - begun:.1f} s"
    if anew:
        return f"trained anew for {counted(experiment.rounds, 'round')} ({why}), {seconds}"
    return f"trained on for {counted(experiment.rounds - done, 'round')}, {seconds}"


def _items(run: Run) -> int:
    if run.data is None:
        raise OutputError(f"{run.folder.path}: has no copy of its data; make it anew with: ownview fit")
    return run.data.num_items


def grown(before: Mapping[str, Tensor], fresh: Mapping[str, Tensor]) -> dict[str, Tensor] | None:
    """Values of a model as values of one with more users and items behind, who begin as in a new one; None where not.

    Args:
        before: as a trainer packed them.
        fresh: of a new trainer of the grown data.
    """
    found: dict[str, Tensor] = {}
    for name, new in fresh.items():
        old, (kind, _, part) = before.get(name, new), name.rpartition(".")
        if name.startswith("table."):
            if part in ("counts", "base_of"):
                old = torch.cat([old, new[len(old) :]])
            elif part == "bases":
                more = new[:1, old.shape[1] :].expand(len(old), *new[:1, old.shape[1] :].shape[1:])
                old = torch.cat([old, more], dim=1)
            if part in ("bases", "numbers") and _joined(kind, before, fresh):
                old = torch.cat([new, old])
            found[name] = old
            continue
        if old.dim() != new.dim() or any(less > more for less, more in zip(old.shape, new.shape, strict=True)):
            return None
        value = new.clone()
        value[tuple(slice(0, length) for length in old.shape)] = old
        found[name] = value
    return found


def _joined(kind: str, before: Mapping[str, Tensor], fresh: Mapping[str, Tensor]) -> bool:
    """Whether some clients are new and no other client is based on the table that they begin with."""
    more = len(before[f"{kind}.base_of"]) < len(fresh[f"{kind}.base_of"])
    return more and 0 not in before[f"{kind}.numbers"].tolist()
