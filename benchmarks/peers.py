"""The same FedMF in other frameworks, and EASE^R and iALS in other packages, beside ours, in one run.

    python -m benchmarks.peers --out results/speed/peers/NAME.json     # everything that installs here
    python -m benchmarks.peers --only fedmf --clients 1000 10000
    python -m benchmarks.peers --render                                # puts what is recorded into docs/speed.md

Every framework gets an environment of its own under the cache (`--cache`), with the versions named below, and runs one
script of `benchmarks/beside` in a process of its own on one core. All begin with the same vectors and tables and train
on the same samples, drawn once, by the same batch size, epochs and Adam; ours draws new samples in every round, the
others keep those of the first. Before anything is timed, one round with one batch a client, whose order does not
matter, must end with the same values to rounding. What is timed has batches in each framework's own order.

CPU-seconds are those of a process and all it started; a round is the middle one of those after the first, which
compiles.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.beside import cpu_seconds
from benchmarks.closed_forms import FORMS, closed_form
from benchmarks.measuring import apart
from benchmarks.worlds import SIZES, generated, of_clients
from ownview.data.splitting.splits import leave_one_out
from ownview.engine.machine import machine
from ownview.federation.options import FederationOptions
from ownview.methods.fedmf import FedMF
from ownview.round.federation import Federation

HERE = Path(__file__).resolve().parent
OPTIONS = FederationOptions(weighting="samples", row_mean="all")
"""The mean of whole tables by samples, as FedAvg makes it everywhere."""


@dataclass(frozen=True)
class Peer:
    """A framework.

    Args:
        script: of `benchmarks/beside`.
        packages: pinned, for an environment of its own; () for the one that runs this.
    """

    script: str
    packages: tuple[str, ...] = ()


PEERS = {
    "FedJAX": Peer("fedjax_fedmf.py", ("fedjax==0.0.17", "jax==0.10.2", "jaxlib==0.10.2", "optax==0.2.8")),
    "pfl-research": Peer("pfl_fedmf.py", ("pfl==0.6.0", f"torch=={torch.__version__}")),
    "Flower": Peer("flower_fedmf.py", ("flwr[simulation]==1.41.0", f"torch=={torch.__version__}", "packaging")),
}


@dataclass(frozen=True)
class Training:
    """How FedMF trains: its defaults where nothing else is said."""

    epochs: int = FedMF().local_epochs
    batch: int = FedMF().batch_size
    rounds: int = 3


ONE_BATCH = Training(epochs=2, batch=2**20, rounds=1)


def _federation(world: str, training: Training, engine: str) -> Federation:
    data = generated(world) if world in SIZES else of_clients(int(world))
    split = leave_one_out(data, ties="file", untimed="appearance", seed=0)
    method = FedMF(local_epochs=training.epochs, batch_size=training.batch)
    return Federation(method, split, split.known_items(), OPTIONS, 0, machine("cpu", "8GB", engine))


def _values(one: Federation, count: int) -> dict[str, Any]:
    """Users' vectors [n, d] and the table [m, d] as they are now."""
    clients = torch.arange(count)
    table = one.newest(clients[:1]).values["items"]
    return {"users": one.clients.whole("user", clients).numpy(), "table": table.numpy()}


def problem(world: str, training: Training) -> dict[str, Any]:
    """Samples of all clients in the first round, client by client, and the values that all begin with."""
    one = _federation(world, training, "vector")
    count = one.work.home.world.num_clients
    items, labels, sizes = [], [], []
    for client in range(count):
        drawn = one.work.samples(1, torch.tensor([client])).alone(0)
        items.append(drawn.items[drawn.rows])
        labels.append(drawn.labels)
        sizes.append(len(drawn.rows))
    return {
        **_values(one, count), "offsets": np.concatenate([[0], np.cumsum(sizes)]), "items": torch.cat(items).numpy(),
        "labels": torch.cat(labels).numpy(), "epochs": training.epochs, "batch": training.batch,
        "rounds": training.rounds, "rate": FedMF().learning_rate,
    }  # fmt: skip


def ours(world: str, training: Training, engine: str, out: str) -> dict[str, Any]:
    """The same by one of our engines; meant for a fresh process."""
    torch.set_num_threads(1)
    one, seconds = _federation(world, training, engine), []
    for number in range(1, training.rounds + 1):
        start = cpu_seconds.of_tree()
        one.round(number)
        seconds.append(round(cpu_seconds.of_tree() - start, 2))
        if number == 1:
            np.savez(out + ".npz", **_values(one, one.work.home.world.num_clients))
    return {"versions": {"torch": torch.__version__}, "seconds": seconds, "megabytes": cpu_seconds.peak_megabytes()}


def loss(given: dict[str, Any], values: dict[str, Any]) -> float:
    """The mean cross-entropy of all samples of the first round under some vectors and a table."""
    user = np.repeat(np.arange(len(given["offsets"]) - 1), np.diff(given["offsets"]))
    logits = (values["users"][user].astype(np.float64) * values["table"][given["items"]]).sum(1)
    return float((np.logaddexp(0, logits) - logits * given["labels"]).mean())


def measure(world: str, name: str, cache: Path, patience: float) -> dict[str, Any]:
    """One framework on one world: agreement of a round of one batch a client, then the rounds that are timed."""
    line: dict[str, Any] = {}
    python = environment(PEERS[name], cache) if name in PEERS else ""
    for training in (ONE_BATCH, Training()):
        with tempfile.TemporaryDirectory() as place:
            out, given = str(Path(place) / "out"), problem(world, training)
            np.savez(out + "-problem.npz", **given)
            if name.startswith("ours"):
                said = apart(ours, world, training, name.split(", ")[1], out)
            else:
                said = _elsewhere(PEERS[name], python, out, patience)
            values = dict(np.load(out + ".npz"))
            if training == ONE_BATCH:
                reference = str(Path(place) / "reference")
                apart(ours, world, training, "vector", reference)
                expected = dict(np.load(reference + ".npz"))
                line["apart"] = max(float(np.abs(values[k] - expected[k]).max()) for k in ("users", "table"))
            else:
                line |= said | {"loss before": loss(given, given), "loss after a round": loss(given, values)}
                line["second"] = statistics.median(said["seconds"][1:])
    return line


def _elsewhere(peer: Peer, python: str, out: str, patience: float) -> dict[str, Any]:
    threads = {"OMP_NUM_THREADS": "1", "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"}
    command = [python, str(HERE / "beside" / peer.script), out + "-problem.npz", out]
    quiet = {"FLWR_TELEMETRY_ENABLED": "0", "RAY_USAGE_STATS_ENABLED": "0", "JAX_PLATFORMS": "cpu"}
    done = subprocess.run(
        command, env={**os.environ, **threads, **quiet}, capture_output=True, text=True, timeout=patience, check=False
    )
    if done.returncode or not Path(out + ".json").is_file():
        raise RuntimeError("\n".join((done.stderr or done.stdout).strip().splitlines()[-4:]))
    found: dict[str, Any] = json.loads(Path(out + ".json").read_text())
    return found


def environment(peer: Peer, cache: Path) -> str:
    """The Python of a framework's own environment, made where it is not there yet."""
    if not peer.packages:
        return sys.executable
    place = cache / peer.packages[0].replace("==", "-")
    python = place / "bin" / "python"
    if not (place / "complete").is_file():
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(place)], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", *peer.packages], check=True)
        (place / "complete").touch()
    return str(python)


def _tried(case: str, work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """What was measured, or why not: a framework that does not install or run here stands in the record too."""
    print(case, flush=True)
    try:
        return work()
    except (RuntimeError, OSError, subprocess.SubprocessError) as error:
        return {"why not": str(error)[-600:]}


def main(words: Sequence[str] | None = None) -> None:
    """Measure, write after every case, or render."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=("fedmf", "closed"))
    parser.add_argument("--worlds", nargs="+", default=["ml-100k-sized"], help=f"of {', '.join(SIZES)}")
    parser.add_argument("--clients", nargs="*", default=[], help="worlds of so many clients, 40 interactions each")
    parser.add_argument("--frameworks", nargs="+", default=["ours, vector", "ours, compiled", *PEERS])
    parser.add_argument("--data", default="ml-1m", help="of the closed forms")
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--cache", type=Path, default=Path.home() / ".cache" / "ownview-peers")
    parser.add_argument("--patience", type=float, default=1800.0, help="seconds for one script")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--render", action="store_true")
    asked = parser.parse_args(words)
    if asked.render:
        from benchmarks.peers_table import render  # noqa: PLC0415 - needs nothing of what is measured

        render()
        return
    known = json.loads(asked.out.read_text()) if asked.out and asked.out.is_file() else {}
    machine_here = {"processor": platform.machine(), "cores": os.cpu_count()}
    document = {"machine": machine_here, "fedmf": [], "closed": []} | known

    def note(kind: str, line: dict[str, Any]) -> None:
        line |= {"load": round(os.getloadavg()[0], 1), "measured": time.strftime("%Y-%m-%d")}
        document[kind].append(line)
        print(json.dumps(line), flush=True)
        if asked.out:
            asked.out.parent.mkdir(parents=True, exist_ok=True)
            asked.out.write_text(json.dumps(document, indent=1) + "\n")

    done = {(line["framework"], line["world"]) for line in document["fedmf"]}
    wanted = [(name, world) for world in [*asked.worlds, *asked.clients] for name in asked.frameworks]
    for name, world in wanted if asked.only != "closed" else ():
        if (name, world) not in done:
            line = _tried(f"{name} on {world}", partial(measure, world, name, asked.cache, asked.patience))
            note("fedmf", {"framework": name, "world": world} | line)
    have = {line["form"] for line in document["closed"]}
    for form in FORMS if asked.only != "fedmf" else ():
        if form not in have:
            line = _tried(form, partial(apart, closed_form, form, asked.data, asked.data_dir))
            note("closed", {"form": form, "data": asked.data} | line)


if __name__ == "__main__":
    main()
