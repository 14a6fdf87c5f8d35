"""How long a model in use takes to be updated, to forget, and to be solved again; and a fit of the same rows.

    python -m benchmarks.living_sums ml-1m
    python -m benchmarks.lived results/living.json --measure  # with the server's, and the pages' tables

The first 99 % of the rows by time are fitted; the last 1 % come as a day's update; then single people are updated and
forgotten, in the sums alone and end to end. End to end is the command as it is typed, from the start of its process to
its end, by the clock and of the processor. Of single people in the sums: the median and the slowest of so many, drawn
by seed 0, in a process that has the store open.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.lived import add_record
from ownview.data.datasets.catalog import load
from ownview.data.interactions import Interactions
from ownview.sums.histories import History
from ownview.sums.living import kept

_PEOPLE = 20
Line = dict[str, Any]


def main() -> None:
    """Measure, and print or record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", nargs="?", default="ml-1m")
    parser.add_argument("--method", default="fedease")
    parser.add_argument("--record", type=Path)
    asked = parser.parse_args()
    data = load(asked.data)
    with tempfile.TemporaryDirectory() as folder:
        lines = _measured(data, asked.method, Path(folder))
    found = {
        "data": {"name": data.name, "people": data.num_users, "items": data.num_items, "rows": len(data)},
        "method": asked.method,
        "lines": lines,
    }
    print(json.dumps(found, indent=2))
    if asked.record:
        add_record(asked.record, "sums", found)


def _measured(data: Interactions, method: str, folder: Path) -> list[Line]:
    assert data.timestamp is not None
    model, end = str(folder / "model"), int(data.timestamp.max())
    late = np.zeros(len(data), dtype=bool)
    late[np.argsort(data.timestamp, kind="stable")[-(len(data) // 100) :]] = True
    first, day, row = (str(folder / name) for name in ("first.csv", "day.csv", "row.csv"))
    _write(data.select(~late), first)
    _write(data.select(late), day)
    fitted = data.select(~late).users
    names = [str(one) for one in np.random.default_rng(0).choice(fitted, 2 * _PEOPLE, replace=False)]
    Path(row).write_text(f"user,item,timestamp\n{names[0]},{data.items[7]},{end + 2}\n", encoding="utf-8")
    lines = [
        _command("a fit of the first 99 %", "fit", method, "--data", first, "--out", model),
        _command("the store made of them, once", "sums", "show", model),
        _command(f"a day's {int(late.sum()):,} rows", "update", model, day, "--json"),
        *_in_the_sums(Path(model), names, end),
        _command("one person's update", "update", model, row, "--json"),
        _command("one person forgotten", "forget", model, names[1], "--json"),
    ]
    if method == "fedease":
        lines.append(
            _command("solved with lambda 300", "sums", "solve", model, "--set", "regularization=300", "--json")
        )
    return lines


def _command(what: str, *words: str) -> Line:
    """Of a command, from beginning to end; as on most machines, Python keeps what it has compiled."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    line, begun = [sys.executable, "-m", "ownview", *words], time.perf_counter()
    process = subprocess.Popen(line, stdout=subprocess.PIPE, text=True, env=environment)
    assert process.stdout is not None
    said = process.stdout.read()
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"ownview {' '.join(words)}: {process.returncode}")
    found: Line = {"what": what, "seconds": time.perf_counter() - begun, "processor": used.ru_utime + used.ru_stime}
    found |= _load()
    if "--json" in words:
        answer = json.loads(said)
        found |= {"inside": answer["seconds"], "how": answer["how"]}
    return found


def _in_the_sums(model: Path, names: list[str], end: int) -> list[Line]:
    random, update, forget = np.random.default_rng(1), [], []
    with kept(model) as (_, store):
        assert store is not None
        items = np.array(sorted(store.journal.items()), dtype=np.int64)
        for name in names[:_PEOPLE]:
            one = store.history(name)
            assert one is not None
            after = one.plus(History(random.choice(items, 1), np.array([end + 1]), np.array([10**9])))
            update.append(_clocked(lambda name=name, after=after: store.put({name: after}, {})))  # type: ignore[misc]
        for name in names[_PEOPLE:]:
            forget.append(_clocked(lambda name=name: store.forget(name)))  # type: ignore[misc]
    with kept(model):  # writes the version that these changes have not yet
        pass
    found = []
    for word, each in (("update", update), ("forget", forget)):
        clock, processor = ([one[k] for one in each] for k in (0, 1))
        line = {"what": f"one person's {word} in the sums", "seconds": statistics.median(clock), **_load()}
        found.append({**line, "processor": statistics.median(processor), "slowest": max(clock), "people": len(each)})
    return found


def _load() -> dict[str, float]:
    """Processes that want a core, over the last minute."""
    return {"load": round(os.getloadavg()[0], 1)}


def _clocked(work: Callable[[], Any]) -> tuple[float, float]:
    clock, processor = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - clock, time.process_time() - processor


def _write(data: Interactions, path: str) -> None:
    assert data.timestamp is not None
    users, items = data.users[data.user].tolist(), data.items[data.item].tolist()
    with Path(path).open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["user", "item", "timestamp"])
        rows.writerows(zip(users, items, data.timestamp.tolist(), strict=True))


if __name__ == "__main__":
    main()
