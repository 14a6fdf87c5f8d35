"""How long a model in use takes to be updated, to forget, and to be solved again; and a fit of the same rows.

    python -m benchmarks.living_sums ml-1m --threads 2

The first 99 % of the rows by time are fitted; the last 1 % come as a day's update; then single people are updated and
forgotten, in the sums alone and end to end. Seconds by the clock, and of the processor in brackets; of single people
the median and the slowest of so many, drawn by seed 0. The load of the machine is told before and after.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

import ownview as ov
from ownview.data.datasets.catalog import load
from ownview.data.interactions import Interactions
from ownview.sums.histories import History
from ownview.sums.living import forget_user, kept, solve_model, update_model

_PEOPLE = 20


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", nargs="?", default="ml-1m")
    parser.add_argument("--method", default="fedease")
    parser.add_argument("--threads", type=int, default=2)
    asked = parser.parse_args()
    torch.set_num_threads(asked.threads)
    data = load(asked.data)
    assert data.timestamp is not None
    late = np.zeros(len(data), dtype=bool)
    late[np.argsort(data.timestamp, kind="stable")[-(len(data) // 100) :]] = True
    print(f"{asked.method} on {asked.data}: {data}; {asked.threads} threads, load {os.getloadavg()[0]:.1f}")
    print("| what | seconds (of the processor) | how |")
    print("| --- | --- | --- |")
    with tempfile.TemporaryDirectory() as folder:
        _measured(data, data.select(~late), data.select(late), asked.method, Path(folder))
    print(f"load {os.getloadavg()[0]:.1f} at the end")


def _measured(data: Interactions, first: Interactions, late: Interactions, method: str, folder: Path) -> None:
    model = folder / "model"
    _told("a fit of the first 99 %, with lists", lambda: ov.fit(method, first, out=model) and "")
    _told("store made of them, once", lambda: _touch(model))
    _told(f"a day's {len(late):,} rows, end to end", lambda: update_model(model, late, "late").how)
    random = np.random.default_rng(0)
    names = [str(one) for one in random.choice(first.users, 2 * _PEOPLE, replace=False)]
    with kept(model) as (_, store):
        assert store is not None
        items = np.array(sorted(store.journal.items()), dtype=np.int64)
        update, forget = [], []
        for name in names[:_PEOPLE]:
            one = store.history(name)
            assert one is not None
            more = random.choice(items, 1)
            row = History(more, np.array([int(data.timestamp.max()) + 1]), np.array([10**9]))  # type: ignore[union-attr]
            after = one.plus(row)
            update.append(_clocked(lambda name=name, after=after: store.put({name: after}, {})))  # type: ignore[misc]
        for name in names[_PEOPLE:]:
            forget.append(_clocked(lambda name=name: store.forget(name)))  # type: ignore[misc]
    for word, each in (("update", update), ("forget", forget)):
        clock, processor = ([one[k] for one in each] for k in (0, 1))
        told = f"{1000 * statistics.median(clock):.0f} ms ({1000 * statistics.median(processor):.0f} ms), slowest "
        print(f"| one person's {word} in the sums | {told}{1000 * max(clock):.0f} ms | {_PEOPLE} people |", flush=True)
    _touch(model)
    later = Interactions.from_rows(
        "row", np.array([names[0]], dtype=object), np.array([str(data.items[7])], dtype=object),
        timestamp=np.array([int(data.timestamp.max()) + 2]),  # type: ignore[union-attr]
    )  # fmt: skip
    _told("one person's update, end to end", lambda: update_model(model, later, "row").how)
    _told("one person forgotten, end to end", lambda: forget_user(model, names[1])[0].how)
    if method == "fedease":
        _told("solved with lambda 300", lambda: solve_model(model, {"regularization": 300.0}).how)


def _touch(model: Path) -> str:
    with kept(model):
        return ""


def _clocked(work: Callable[[], Any]) -> tuple[float, float, Any]:
    clock, processor = time.perf_counter(), time.process_time()
    found = work()
    return time.perf_counter() - clock, time.process_time() - processor, found


def _told(what: str, work: Callable[[], Any]) -> None:
    clock, processor, how = _clocked(work)
    print(f"| {what} | {clock:.2f} ({processor:.2f}) | {how if isinstance(how, str) else ''} |", flush=True)


if __name__ == "__main__":
    main()
