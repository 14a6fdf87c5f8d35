"""Every federated method beside what the machine cannot go below.

    python -m benchmarks.methods --out results/speed/NAME-OF-MACHINE.json   # 20 CPU-minutes; goes on where it stopped
    python -m benchmarks.methods --methods fedmf pfedrec --clients 1000     # a minute, nothing written
    python -m benchmarks.methods --render                                   # committed results into the pages

Every case runs in a process of its own with one thread and counts CPU-seconds, so that waiting for others does not
count; caches and memory are shared all the same, so compare within one file. What is measured is written at once and
kept: to measure it again, name it with `--again`. Worlds are generated, so that any machine can run it.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from benchmarks.floor import bandwidth
from benchmarks.measuring import RESEARCH, Case, Measured, apart, measured
from benchmarks.rendering import in_short, rendered
from ownview.base.files import write_json, write_text
from ownview.registry import METHODS
from ownview.seam.method import Method

WORLD = "ml-100k-sized"
GROWING = "fedmf"
RESULTS = Path("results/speed")
PAGES = {Path("docs/speed.md"): rendered, Path("README.md"): in_short}
"""What is made of all results together, by page."""


def cases(methods: Sequence[str], growth: Sequence[int]) -> list[Case]:
    """What is measured: every method, slower ways to train where clients train, and growth with the clients."""
    found = [Case(name, "vector", WORLD) for name in methods]
    found += [Case(name, "loop", WORLD) for name in methods if issubclass(METHODS[name], Method)]
    found += [Case(name, "research", WORLD) for name in methods if name in RESEARCH]
    return found + [Case(GROWING, "vector", str(count)) for count in growth]


def about(path: Path | None) -> dict[str, Any]:
    """The class of the machine, which is the file's name, and nothing that tells one of them from another; and how."""
    return {
        "machine": "this machine" if path is None else path.stem, "processor": platform.machine(),
        "cores": os.cpu_count(), "torch": torch.__version__, "world": WORLD,
        "measured": "CPU-seconds of one thread, every case in a process of its own",
    }  # fmt: skip


def kept(path: Path | None) -> dict[str, Any]:
    """What a file has of this machine already; refuses one of another."""
    this = about(path)
    if path is None or not path.exists():
        return {"about": this, "cases": []}
    try:
        document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        there = {name: document["about"][name] for name in this}
        document["cases"] = list(document["cases"])
    except (ValueError, KeyError, TypeError):
        raise SystemExit(f"{path}: expected a file that this benchmark wrote; move it away") from None
    for name, value in this.items():
        if there[name] != value:
            raise SystemExit(f"{path}: measured with {name} {there[name]!r}, here it is {value!r}; name another file")
    return document


def everything(wanted: Sequence[Case], path: Path | None, *, again: bool) -> None:
    """Measure what is not there yet, and write it down case by case."""
    document = kept(path)
    there = [Case(**one["case"]) for one in document["cases"]]
    if "copy_bytes_per_second" not in document["about"]:
        document["about"]["copy_bytes_per_second"] = apart(bandwidth)
    for case in wanted:
        if case in there and not again:
            continue
        found = apart(measured, case)
        print(line(found), flush=True)
        document["cases"] = [one for one in document["cases"] if one["case"] != asdict(case)] + [asdict(found)]
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_json(path, document)


def line(one: Measured) -> str:
    """What a case has come to."""
    parts = " / ".join(f"{one.seconds.get(part, 0.0):.2f}" for part in ("sample", "train", "server"))
    said = f"{one.case.method:12} {one.case.engine:9} {one.clients:8,} clients {one.total:9.2f} s a round ({parts})"
    return f"{said}, {one.rounds} rounds, {one.peak_memory_bytes / 1e6:,.0f} MB, load {one.load}"


def main(given: Sequence[str] | None = None) -> None:
    """Measure and write, or put what is written into the pages."""
    parser = argparse.ArgumentParser(description="Speed of every federated method.")
    parser.add_argument("--methods", nargs="+", choices=sorted(METHODS), default=sorted(METHODS))
    parser.add_argument("--clients", nargs="*", type=int, default=[1_000, 10_000, 100_000], help="growth of FedMF")
    parser.add_argument("--out", type=Path, help="JSON, kept up to date; nothing is written without")
    parser.add_argument("--again", action="store_true", help="measure also what is in the file")
    parser.add_argument("--floor", action="store_true", help="the machine's bandwidth alone")
    parser.add_argument("--render", action="store_true", help=f"{RESULTS}/*.json into the pages, and nothing else")
    asked = parser.parse_args(given)
    if asked.floor:
        print(f"{apart(bandwidth) / 1e9:.1f} GB a second read and written by one core")
    elif asked.render:
        documents = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(RESULTS.glob("*.json"))]
        for page, made in PAGES.items():
            write_text(page, made(page.read_text(encoding="utf-8"), documents))
    else:
        everything(cases(asked.methods, asked.clients), asked.out, again=asked.again)


if __name__ == "__main__":
    main()
