"""How long a trained model takes to be read, to recommend to one user, to a new person, and to everybody.

    ownview run fedease --data ml-1m --out runs/fedease-ml-1m
    python -m benchmarks.recommending runs/fedease-ml-1m

Seconds by the clock and of the processor, with as many threads as PyTorch takes by itself. One user is the median of
twenty.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import torch

from ownview.base.errors import SettingError
from ownview.runs.run import Run, open_run

_USERS = 20
_HISTORY = 10


def main() -> None:
    """Measure some runs, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+", type=Path, help="folders of finished runs")
    parser.add_argument("-k", type=int, default=10)
    asked = parser.parse_args()
    print(f"{torch.get_num_threads()} threads, lists of {asked.k}; seconds by the clock (of the processor)")
    print("| run | read | one user | a new person | everybody | users |")
    print("| --- | --- | --- | --- | --- | --- |")
    for path in asked.runs:
        print(f"| {' | '.join(_row(open_run(path), asked.k))} |", flush=True)


def _row(run: Run, k: int) -> list[str]:
    users = run.folder.read_tensors("recommended")[1]["samples"][:_USERS]
    ids = [one["user"] for one in users]
    read = _timed(lambda: run.recommend(ids[0], k))
    single = [_timed(lambda one=one: run.recommend(one, k)) for one in ids]  # type: ignore[misc]
    history = [f"id:{one.item}" for one in run.recommend(ids[0], _HISTORY)]
    new = "cannot"
    try:
        run.recommend(run.newcomer(history), k)
        new = _words(*_timed(lambda: run.recommend(run.newcomer(history), k)))
    except SettingError:
        pass
    all_users = _timed(lambda: run.recommend_many(k=k))
    count = run.recommend_many(k=1).height
    one = [statistics.median(part) for part in zip(*single, strict=True)]
    return [run.folder.path.name, _words(*read), _words(*one), new, _words(*all_users), f"{count:,}"]


def _timed(work: Callable[[], object]) -> tuple[float, float]:
    clock, processor = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - clock, time.process_time() - processor


def _words(clock: float, processor: float) -> str:
    return f"{clock:.3g} ({processor:.3g})"


if __name__ == "__main__":
    main()
