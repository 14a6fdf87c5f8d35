"""Many experiments at once: several processes side by side, each with its share of the cores."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from functools import partial
from multiprocessing.managers import SyncManager
from pathlib import Path
from queue import Empty, Queue
from threading import Event, Thread
from typing import NamedTuple

import torch

from ownview.base.errors import DeviceError, OutputError, OwnviewError
from ownview.runs.experiment import Experiment
from ownview.runs.folder import RunFolder
from ownview.runs.run import Run, open_run, resume, run
from ownview.runs.signals import Signals
from ownview.runs.training import InterruptedRunError

Task = tuple[Experiment, Path]
"""What to do and the folder it goes to."""

Progress = Callable[[Path, int, dict[str, float]], None]
"""Told after every round: the run's folder, the round, its metrics, none where it was not measured."""

OnFailure = Callable[[Path, str], None]
"""Told of a run that failed by itself: its folder, and why."""

News = Queue[tuple[Path, int, dict[str, float]]]


class BatchError(OwnviewError):
    """One of several runs failed, or all were told to stop."""

    def __init__(self, message: str, exit_code: int) -> None:
        super().__init__(message)
        self.exit_code = exit_code


class _Failure(NamedTuple):
    """An error of a run in another process, in a form that every error can be sent in.

    `alone`: other runs need not mind. Not so a full disk, or being told to stop.
    """

    folder: Path
    message: str
    exit_code: int
    alone: bool

    @classmethod
    def of(cls, folder: Path, error: OwnviewError) -> _Failure:
        alone = not isinstance(error, OutputError | InterruptedRunError)
        return cls(folder, str(error), error.exit_code, alone)


def free_cores(device: str) -> int:
    """Cores that nobody was using over the last minute, at least 1; on a GPU runs come one after the other."""
    if device.startswith("cuda") or (device == "auto" and torch.cuda.is_available()):
        return 1
    busy = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    return max(1, (os.cpu_count() or 1) - round(busy))


def run_all(
    tasks: Sequence[Task],
    *,
    jobs: int,
    memory: str,
    data_dir: Path | None,
    on_round: Progress | None = None,
    on_failure: OnFailure | None = None,
    threads: int | None = None,
    go_on: str | None = None,
) -> list[Run]:
    """Carry out all tasks; folders that exist are finished or, if finished, taken as they are.

    Args:
        tasks: in the order of the returned runs.
        jobs: processes side by side.
        memory: for each of them.
        data_dir: where datasets are.
        on_round: progress.
        on_failure: told of runs that fail by themselves (values that are not finite, say), while the others go on; they
            are not among the returned ones. Without it the first failure ends everything.
        threads: of each process; an equal share of the cores where None.
        go_on: how a stopped batch goes on, in words; by --resume where None.
    """
    told = on_round or (lambda folder, number, metrics: None)
    go_on = go_on or f"go on by the same command with --out {tasks[0][1].parent if tasks else ''} --resume"
    failed: set[Path] = set()

    def excused(failure: _Failure) -> bool:
        if on_failure is None or not failure.alone:
            return False
        failed.add(failure.folder)
        on_failure(failure.folder, failure.message)
        return True

    if jobs <= 1 or len(tasks) <= 1:
        with _threads(threads):
            _one_by_one(tasks, memory, data_dir, told, excused, go_on)
    else:
        share = threads or max(1, (os.cpu_count() or 1) // jobs)
        _side_by_side(tasks, jobs, share, memory, data_dir, told, excused, go_on)
    return [open_run(folder) for _, folder in tasks if folder not in failed]


def _one_by_one(
    tasks: Sequence[Task],
    memory: str,
    data_dir: Path | None,
    told: Progress,
    excused: Callable[[_Failure], bool],
    go_on: str,
) -> None:
    with Signals() as signals:
        for experiment, folder in tasks:
            try:
                _one(experiment, folder, memory, data_dir, partial(told, folder))
            except InterruptedRunError as stopped:
                raise _stopped(tasks, stopped.exit_code, go_on) from stopped
            except OwnviewError as error:
                if not excused(_Failure.of(folder, error)):
                    raise
            if signals.received:
                raise _stopped(tasks, 128 + signals.received, go_on)


def _side_by_side(
    tasks: Sequence[Task],
    jobs: int,
    threads: int,
    memory: str,
    data_dir: Path | None,
    told: Progress,
    excused: Callable[[_Failure], bool],
    go_on: str,
) -> None:
    """On a signal or an error in one run the others checkpoint after the round in progress and stop."""
    spawn = multiprocessing.get_context("spawn")
    failures: list[_Failure] = []
    manager = SyncManager(ctx=spawn)
    manager.start(_end_with_parent)
    with Signals() as signals, manager:
        news, stop = manager.Queue(), manager.Event()
        with ProcessPoolExecutor(jobs, mp_context=spawn, initializer=_settle, initargs=(threads,)) as pool:
            waiting: set[Future[_Failure | None]] = {
                pool.submit(_apart, experiment, folder, memory, data_dir, news, stop) for experiment, folder in tasks
            }
            while waiting:
                done, waiting = wait(waiting, timeout=0.2, return_when=FIRST_COMPLETED)
                _tell(news, told)
                failures += [failure for failure in _failures(done, go_on) if not excused(failure)]
                if failures or signals.received:
                    stop.set()
    if signals.received:
        raise _stopped(tasks, 128 + signals.received, go_on)
    if failures:
        raise BatchError(failures[0].message, failures[0].exit_code)


def _settle(threads: int) -> None:
    """Make a process ready for runs; Ctrl-C reaches it too, but its parent decides."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    torch.set_num_threads(threads)
    _end_with_parent()


def _end_with_parent() -> None:
    """End this process when its parent has: a killed parent cannot tell, and its runs must be free to be taken up."""
    parent = multiprocessing.parent_process()

    def wait_for_it() -> None:
        if parent is not None:
            parent.join()
            os._exit(1)

    Thread(target=wait_for_it, daemon=True).start()


@contextmanager
def _threads(number: int | None) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(number or before)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _failures(done: set[Future[_Failure | None]], go_on: str) -> list[_Failure]:
    try:
        return [failure for future in done if (failure := future.result()) is not None]
    except BrokenProcessPool:
        raise DeviceError(
            f"the process of a run was killed, most likely for lack of memory; lower --jobs: {go_on}"
        ) from None


def _stopped(tasks: Sequence[Task], exit_code: int, go_on: str) -> BatchError:
    finished = sum(RunFolder(folder).finished for _, folder in tasks)
    return BatchError(f"stopped with {finished} of {len(tasks)} runs finished; {go_on}", exit_code)


def _tell(news: News, told: Progress) -> None:
    while True:
        try:
            told(*news.get_nowait())
        except Empty:
            return


def _apart(
    experiment: Experiment, folder: Path, memory: str, data_dir: Path | None, news: News, stop: Event
) -> _Failure | None:
    """Carry out a task in a process of its own; once `stop` is set, as if that process were told to terminate."""

    def on_round(number: int, metrics: dict[str, float]) -> None:
        news.put((folder, number, metrics))
        if stop.is_set():
            signal.raise_signal(signal.SIGTERM)

    if stop.is_set():
        return None
    try:
        _one(experiment, folder, memory, data_dir, on_round)
    except OwnviewError as error:
        return _Failure.of(folder, error)
    return None


def _one(
    experiment: Experiment,
    folder: Path,
    memory: str,
    data_dir: Path | None,
    on_round: Callable[[int, dict[str, float]], None],
) -> None:
    if (folder / "experiment.toml").is_file():
        resume(folder, memory=memory, data_dir=data_dir, on_round=on_round, asked=experiment.identity())
    else:
        RunFolder(folder).drop_if_not_begun()
        run(experiment, out=folder, memory=memory, data_dir=data_dir, on_round=on_round)
