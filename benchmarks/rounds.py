"""Seconds of a round by part on the device at hand, and with `--profile` what they go to.

    python -m benchmarks.rounds --device cuda --twice --profile --out rounds.json    # six methods, a world like ml-1m
    python -m benchmarks.rounds --device cpu --world ml-100k-sized --methods fedmf

A method around another is written plugin:method. Settings are the methods' defaults; PLGC around FedMF has those of its
row in the suite `large`, because its paper takes one pass over large batches. The first rounds, in which work is
recorded, kernels are compiled and memory is asked for, are told apart as the time until the device is in its stride.
`--twice` runs everything again and compares every value bit for bit. The world is generated, so that any machine can
run it.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import statistics
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile

from benchmarks.worlds import SIZES, generated
from ownview.data.splitting.splits import Split, leave_one_out
from ownview.engine.machine import ENGINES, machine
from ownview.federation.options import FederationOptions
from ownview.registry import METHODS, PLUGINS
from ownview.round.federation import Federation
from ownview.round.scorers import scorer_of
from ownview.seam.method import Federated
from ownview.studies.bench.suite import load_suite

USUAL = ("fedmf", "pfedrec", "fedrap", "pfedclr", "fedem", "plgc:fedmf")
IN_LARGE = {"plgc:fedmf": "fedmf + plgc"}
"""Rows of the suite `large` whose settings are taken, because the inner method's defaults are not the paper's."""
WARM = 3
"""Rounds that are not timed: work of one epoch is recorded in its second round."""


def method_named(name: str) -> Federated:
    """A method with its usual settings, or a plug-in around one."""
    if name in IN_LARGE:
        large = load_suite("large")
        model = large.experiment(large.row(IN_LARGE[name]), "ml-1m", "honest").model()
        assert isinstance(model, Federated)
        return model
    outer, _, inner = name.rpartition(":")
    method = METHODS[inner]()
    return PLUGINS[outer](inner=method) if outer else method


def measured(
    name: str, split: Split, device: str, rounds: int, *, profiled: bool, engine: str = "vector"
) -> dict[str, Any]:
    """One method: seconds by part, memory, and a digest of every value at the end."""
    place = machine(device, "auto" if device == "cuda" else "4GB", engine)
    _settle(place.device, forget=True)
    one = Federation(method_named(name), split, split.known_items(), FederationOptions(), 0, place)
    start = time.perf_counter()
    for number in range(1, WARM + 1):
        one.round(number)
    _settle(place.device)
    first = time.perf_counter() - start
    lines = []
    for number in range(WARM + 1, WARM + rounds + 1):
        start = time.perf_counter()
        report = one.round(number)
        _settle(place.device)
        lines.append({**report.seconds, "all": time.perf_counter() - start})
    found: dict[str, Any] = {part: statistics.median(line[part] for line in lines) for part in lines[0]}
    found |= {"rounds": [line["all"] for line in lines], "first rounds": first, "digest": digest(one)}
    found |= {"validation": _validation(one, split)}
    if place.device.type == "cuda":
        found["peak memory"] = torch.cuda.max_memory_allocated()
    if profiled:
        found["profile"] = _profile(one, WARM + rounds + 1)
    return found


def digest(one: Federation) -> str:
    """Of every bit that clients and server hold."""
    total = hashlib.sha256()
    for name, value in sorted(one.pack().items()):
        total.update(name.encode())
        total.update(value.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
    return total.hexdigest()


def _validation(one: Federation, split: Split) -> float:
    """Seconds in which everybody scores a hundred items, the second time."""
    users = torch.arange(split.num_users, device=one.machine.device)
    items = (users[:, None] * 7 + torch.arange(100, device=one.machine.device)) % split.num_items
    for _ in range(2):
        _settle(one.machine.device)
        start = time.perf_counter()
        scorer_of(one).scores(users, items)
        _settle(one.machine.device)
        took = time.perf_counter() - start
    return took


def _settle(device: torch.device, *, forget: bool = False) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize()
        if forget:
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()


def _profile(one: Federation, number: int) -> dict[str, Any]:
    """Where one round's time goes on the device: by kernel, and what is copied."""
    kinds = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if one.machine.device.type == "cuda" else [])]
    with profile(activities=kinds) as watched:
        one.round(number)
        _settle(one.machine.device)
    spent: dict[str, list[float]] = defaultdict(lambda: [0, 0.0])
    for event in watched.events() or []:
        if one.machine.device.type == "cpu" or event.device_type.name != "CPU":
            took = spent[event.name[:90]]
            took[0] += 1
            took[1] += event.device_time if one.machine.device.type == "cuda" else event.self_cpu_time_total
    ordered = sorted(spent.items(), key=lambda pair: -pair[1][1])
    return {
        "kernels": sum(int(count) for count, _ in spent.values()),
        "seconds": sum(micros for _, micros in spent.values()) / 1e6,
        "most": [[name, count, round(micros / 1e3, 3)] for name, (count, micros) in ordered[:40]],
    }


def main() -> None:
    """Measure, print a line a method, write JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--methods", nargs="+", default=list(USUAL))
    parser.add_argument("--world", choices=sorted(SIZES), default="ml-1m-sized")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--engine", choices=ENGINES, default="vector")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--twice", action="store_true", help="run again and compare every bit")
    parser.add_argument("--profile", action="store_true", help="say which kernels a round spends its time in")
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    split = leave_one_out(generated(asked.world), ties="file", untimed="appearance", seed=0)
    results: dict[str, Any] = {}
    for name in asked.methods:
        found = measured(name, split, asked.device, asked.rounds, profiled=asked.profile, engine=asked.engine)
        if asked.twice:
            again = measured(name, split, asked.device, asked.rounds, profiled=False, engine=asked.engine)
            found["repeats"] = again["digest"] == found["digest"]
        results[name] = found
        parts = " / ".join(f"{found.get(part, 0):.4f}" for part in ("sample", "train", "server"))
        print(
            f"{name:12} {found['all']:.4f} s a round ({parts}), first {WARM} {found['first rounds']:.2f} s, "
            f"validation {found['validation']:.4f} s, repeats {found.get('repeats', 'not tried')}",
            flush=True,
        )
        if asked.out:
            asked.out.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
