"""From a store to a version of its model: solve, make everybody's lists, write a finished model folder."""

from __future__ import annotations

import json
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open

from ownview.base.files import write_json
from ownview.base.json_text import parse_json
from ownview.data.interactions import Interactions
from ownview.runs.experiment import Experiment
from ownview.runs.files.data_copy import write_histories
from ownview.runs.files.folder import RunFolder
from ownview.runs.files.provenance import peak_memory
from ownview.runs.files.tensor_files import save_whole
from ownview.runs.run import Run
from ownview.runs.training.best_round import Best
from ownview.runs.training.blending import BLEND_WEIGHTS
from ownview.runs.training.finishing import Finishing
from ownview.runs.training.setup import ExperimentSetup
from ownview.seam.server import Solved
from ownview.seam.training import Params
from ownview.sums.histories import interactions
from ownview.sums.store import Snapshot, Store

SEQUENCE = "sums.json"
"""Of a version: which change of the sums it was solved after."""

_KEPT = "solved.safetensors"
"""What makes the next solution of a store cheaper; beside its sums."""


_MANY = 4096
"""Items above which equations take longer than what is done beside them; below, several threads wait for each other:
3,706 items took 1.7 CPU-seconds with one and 3.7 with two on two busy cores, and twice the time."""


def sequence(place: Path) -> int:
    """Of a version; 0 of a model that no change has been made to."""
    path = place / SEQUENCE
    return int(parse_json(path.read_text(encoding="utf-8"))["sequence"]) if path.is_file() else 0


def solved(store: Store, now: Snapshot, *, anew: bool = False) -> Solved:
    """The model's values; see `keep`.

    Args:
        store: of the sums.
        now: its sums.
        anew: whether nothing of the solution before is used, so that nothing of it is left either.
    """
    path = store.folder / _KEPT
    kept: Params = {}
    if anew:
        path.unlink(missing_ok=True)
    elif path.is_file():
        kept = _kept(path, [now.items[where][0] for where in now.places.tolist()])
    return store.summing.solve(now.sums, kept, now.clients, now.places)


def keep(store: Store, now: Snapshot, found: Solved) -> None:
    """Write down what makes the next solution cheaper."""
    if found.kept and store.write:
        items = [now.items[where][0] for where in now.places.tolist()]
        save_whole(store.folder / _KEPT, found.kept, {"items": json.dumps(items)})


def _kept(path: Path, items: list[str]) -> Params:
    """What the solution before kept, where it is of the same items and those behind are new; else nothing.

    No checksum is needed: a solution that is updated is tried on a probe, and made anew where it fails.
    """
    try:
        with safe_open(path, framework="pt") as stored:
            before = list(parse_json((stored.metadata() or {})["items"]))
            return {name: stored.get_tensor(name) for name in stored.keys()} if before == items[: len(before)] else {}  # noqa: SIM118
    except (SafetensorError, OSError, ValueError, TypeError, KeyError):
        return {}


def write_version(place: Path, store: Store, now: Snapshot, run: Run, *, anew: bool = False) -> str:
    """Write a finished model into a folder that exists, and say how it was solved.

    Equations are solved while the data is set in order, and what they leave is kept while the model is written.

    Args:
        place: the folder.
        store: of the sums.
        now: its sums and people.
        run: the model as it was: what its data is called, and which run its settings are of.
        anew: whether nothing of the solution before is used.
    """
    begun = time.perf_counter()
    threads = torch.get_num_threads() if len(now.places) > _MANY else 1
    with ThreadPoolExecutor(1, initializer=torch.set_num_threads, initargs=(threads,)) as beside:
        solving = beside.submit(solved, store, now, anew=anew)
        timed = all(one.times is not None for one in now.people.values())
        name = run.result["data"]
        data = interactions(name, now.people, now.items, clock=store.agreement.order == "times" or not timed)
        experiment = replace(store.agreement.experiment, data=name, like=run.experiment.like)
        folder, setup = RunFolder(place), ExperimentSetup.of(experiment, data=data)
        write_histories(place, data)
        folder.write_experiment(experiment.to_toml(place))
        folder.write_provenance(setup.provenance(experiment))
        trainer = setup.trainer(experiment, experiment.model(), place.parent)
        packed = trainer.pack()
        found = solving.result()
        keeping = beside.submit(keep, store, now, found)
        write_json(place / SEQUENCE, {"sequence": now.state.sequence, "how": found.how})
        for key, value in found.values.items():
            known = next((one for one in (f"shared.{key}", f"held.{key}", key) if one in packed), key)
            packed[known] = value.to(packed[known].dtype).contiguous() if known in packed else value
        if "joined" in packed:
            packed["joined"] = torch.ones_like(packed["joined"])
        if "done" in packed:
            packed["done"] = torch.tensor(experiment.rounds)
        trainer.unpack(packed)
        traffic = dict.fromkeys(("bytes_down_per_client", "bytes_up_per_client", "bytes_dense_per_client"), 0)
        line = {"clients": now.clients, "loss": None, **traffic, "peak_memory_bytes": peak_memory(torch.device("cpu"))}
        took = {experiment.rounds: {"solve": round(time.perf_counter() - begun, 6)}}
        folder.write_rounds([{"round": n, **line, "seconds": took.get(n, {})} for n in range(1, experiment.rounds + 1)])
        finishing = Finishing(experiment, setup.split, setup.rankers[1], trainer, None, costed=False)
        finishing.write(Best(experiment.rounds, packed=packed), folder)
        keeping.result()
    return found.how


def write_reweighed(place: Path, run: Run, experiment: Experiment, data: Interactions) -> None:
    """Write a blend with other weights, and the parts that it had, into a folder that exists."""
    folder, setup = RunFolder(place), ExperimentSetup.of(experiment, data=data)
    trainer = setup.trainer(experiment, experiment.model(), place.parent)
    packed = {**run.folder.read_tensors("model")[0], **{k: v for k, v in trainer.pack().items() if k == BLEND_WEIGHTS}}
    trainer.unpack(packed)
    write_histories(place, data)
    folder.write_experiment(experiment.to_toml(place))
    folder.write_provenance(setup.provenance(experiment))
    folder.write_rounds(run.rounds)
    finishing = Finishing(experiment, setup.split, setup.rankers[1], trainer, None, costed=False)
    finishing.write(Best(experiment.rounds, packed=packed), folder)
