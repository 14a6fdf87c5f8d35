"""Many experiments at once: several processes side by side, each with its share of the cores."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from functools import partial
from multiprocessing.managers import SyncManager
from pathlib import Path
from queue import Empty, Queue

import torch

from ownview.experiment import Experiment
from ownview.runs.run import Run, open_run, resume, run

Task = tuple[Experiment, Path]
"""What to do and the folder it goes to."""

Progress = Callable[[Path, int, dict[str, float]], None]
"""Told after every round: the run's folder, the round, its metrics."""


def run_all(
    tasks: Sequence[Task], *, jobs: int, memory: str, data_dir: Path | None, on_round: Progress | None = None
) -> list[Run]:
    """Carry out all tasks; folders that exist are finished or, if finished, taken as they are.

    Args:
        tasks: in the order of the returned runs.
        jobs: processes side by side; each has an equal share of the cores.
        memory: for each of them.
        data_dir: where datasets are.
        on_round: progress.
    """
    told = on_round or (lambda folder, number, metrics: None)
    if jobs <= 1 or len(tasks) <= 1:
        for experiment, folder in tasks:
            _one(experiment, folder, memory, data_dir, partial(told, folder))
    else:
        _side_by_side(tasks, jobs, memory, data_dir, told)
    return [open_run(folder) for _, folder in tasks]


def _side_by_side(tasks: Sequence[Task], jobs: int, memory: str, data_dir: Path | None, told: Progress) -> None:
    spawn = multiprocessing.get_context("spawn")
    threads = max(1, (os.cpu_count() or 1) // jobs)
    with SyncManager(ctx=spawn) as manager:
        news: Queue[tuple[Path, int, dict[str, float]]] = manager.Queue()
        with ProcessPoolExecutor(
            jobs, mp_context=spawn, initializer=torch.set_num_threads, initargs=(threads,)
        ) as pool:
            waiting: set[Future[None]] = {
                pool.submit(_reporting, experiment, folder, memory, data_dir, news) for experiment, folder in tasks
            }
            while waiting:
                done, waiting = wait(waiting, timeout=0.2, return_when=FIRST_COMPLETED)
                _tell(news, told)
                for future in done:
                    if future.exception() is not None:
                        pool.shutdown(wait=False, cancel_futures=True)
                    future.result()


def _tell(news: Queue[tuple[Path, int, dict[str, float]]], told: Progress) -> None:
    while True:
        try:
            told(*news.get_nowait())
        except Empty:
            return


def _reporting(
    experiment: Experiment,
    folder: Path,
    memory: str,
    data_dir: Path | None,
    news: Queue[tuple[Path, int, dict[str, float]]],
) -> None:
    _one(experiment, folder, memory, data_dir, lambda number, metrics: news.put((folder, number, metrics)))


def _one(
    experiment: Experiment,
    folder: Path,
    memory: str,
    data_dir: Path | None,
    on_round: Callable[[int, dict[str, float]], None],
) -> None:
    if (folder / "experiment.toml").is_file():
        resume(folder, memory=memory, data_dir=data_dir, on_round=on_round, asked=_asked(experiment))
    else:
        run(experiment, out=folder, memory=memory, data_dir=data_dir, on_round=on_round)


def _asked(experiment: Experiment) -> dict[str, object]:
    """What must agree with a run found on disk; device and rounds are resolved only when a run starts."""
    values = experiment.to_dict()
    return {name: values[name] for name in ("method", "data", "seed", "protocol", "federation", "settings")}
