"""Many experiments at once: several processes side by side, each with its share of the cores."""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from multiprocessing.managers import SyncManager
from pathlib import Path
from queue import Empty, Queue
from threading import Event
from typing import NamedTuple

import torch

from ownview.base.errors import DeviceError, MemoryLackError, OutputError, OwnviewError, UnwrittenError
from ownview.base.failures import NO_MEMORY, lacks_memory
from ownview.base.trust import Permissions, inherit, permissions
from ownview.runs.experiment import Experiment
from ownview.runs.files.folder import RunFolder, going_on
from ownview.runs.parents import end_with_parent, runs_forked
from ownview.runs.run import OnRound, Run, open_run, resume, run
from ownview.runs.smaller_forms import form_in
from ownview.runs.training.signals import Signals
from ownview.runs.training.training_rounds import InterruptedRunError

MOST_SEEDS = 1000
"""Of a comparison, a suite or a reproduction: more is a slip of the keyboard."""

Task = tuple[Experiment, Path]
"""What to do and the folder it goes to."""

OnRunRound = Callable[[Path, int, dict[str, float]], None]
"""Called after every round with the run's folder, the round, its metrics, none where it was not measured."""

OnFailure = Callable[[Path, str], None]
"""Called for a run that failed by itself, with its folder, and why."""

OnFinished = Callable[[Path], None]
"""Called for a run that has finished, or had before, with its folder, which is not read again."""

News = Queue[tuple[Path, int, dict[str, float]]]


class BatchError(OwnviewError):
    """One of several runs or trials failed, or all were stopped by a signal."""

    def __init__(self, message: str, exit_code: int) -> None:
        super().__init__(message)
        self.exit_code = exit_code


class _Failure(NamedTuple):
    """An error of a run in another process, in a form that every error can be sent in.

    `alone`: other runs need not mind. Not so a full disk, or a signal to stop.
    `crowded`: memory was lacking, which runs beside it may have held.
    """

    folder: Path
    message: str
    exit_code: int
    alone: bool
    crowded: bool

    @classmethod
    def of(cls, folder: Path, error: OwnviewError) -> _Failure:
        alone = not isinstance(error, OutputError | InterruptedRunError)
        return cls(folder, str(error), error.exit_code, alone, isinstance(error, MemoryLackError))


def free_cores(device: str) -> int:
    """Cores idle over the last minute, at least 1; on a GPU runs come one after the other."""
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
    on_round: OnRunRound | None = None,
    on_failure: OnFailure | None = None,
    threads: int | None = None,
    go_on: str | None = None,
) -> list[Run]:
    """Carry out all tasks as `run_each` does; the runs, but those that failed."""
    failed = run_each(
        tasks, jobs=jobs, memory=memory, data_dir=data_dir, on_round=on_round, on_failure=on_failure, threads=threads,
        go_on=go_on,
    )  # fmt: skip
    return [open_run(folder) for _, folder in tasks if folder not in failed]


def run_each(
    tasks: Sequence[Task],
    *,
    jobs: int,
    memory: str,
    data_dir: Path | None,
    on_round: OnRunRound | None = None,
    on_failure: OnFailure | None = None,
    on_finished: OnFinished | None = None,
    threads: int | None = None,
    go_on: str | None = None,
) -> set[Path]:
    """Carry out all tasks; folders that exist are finished or, if finished, taken as they are.

    Args:
        tasks: what to do, in this order.
        jobs: processes side by side.
        memory: for each of them.
        data_dir: where datasets are.
        on_round: progress.
        on_failure: called for runs that fail by themselves (values that are not finite, say), while the others go on.
            Without it the first failure ends everything. A run that lacks memory beside others has not failed yet: it
            goes on from its checkpoint when they are through, beside half as many, in the end alone.
        on_finished: called for every run once it has finished, in this process; may remove its folder.
        threads: of each process; an equal share of the cores where None.
        go_on: how a stopped batch goes on, in words; by --resume where None.

    Returns:
        folders of runs that failed by themselves.
    """
    go_on = go_on or f"go on by the same command with {going_on(tasks[0][1].parent if tasks else Path())}"
    each_round, done = on_round or (lambda folder, number, metrics: None), on_finished or (lambda folder: None)
    batch = _Batch(tasks, memory, data_dir, each_round, on_failure, done, go_on)
    if jobs <= 1 or len(tasks) <= 1:
        with _threads(threads):
            batch.one_by_one()
    else:
        batch.side_by_side(jobs, threads or max(1, (os.cpu_count() or 1) // jobs))
    return batch.failed


@dataclass
class _Batch:
    """What `run_all` is given, and the folders of runs that failed by themselves."""

    tasks: Sequence[Task]
    memory: str
    data_dir: Path | None
    on_round: OnRunRound
    on_failure: OnFailure | None
    on_finished: OnFinished
    go_on: str
    failed: set[Path] = field(default_factory=set)
    finished: set[Path] = field(default_factory=set)

    def one_by_one(self) -> None:
        with Signals() as signals:
            for task in self.tasks:
                try:
                    _one(task, self.memory, self.data_dir, self.go_on, partial(self.on_round, task[1]))
                    self._finish(task[1])
                except InterruptedRunError as stopped:
                    raise self._stopped(stopped.exit_code) from stopped
                except OwnviewError as error:
                    if not self._excused(_Failure.of(task[1], error)):
                        raise
                _give_back()
                if signals.received:
                    raise self._stopped(128 + signals.received)

    def side_by_side(self, jobs: int, threads: int) -> None:
        """Several at a time; what lacked memory goes on when the others are through, beside half as many."""
        tasks, at_once = self.tasks, jobs
        while tasks:
            tasks = self._in_processes(tasks, at_once, threads * jobs // at_once)
            at_once = max(1, at_once // 2)

    def _in_processes(self, tasks: Sequence[Task], jobs: int, threads: int) -> list[Task]:
        """The tasks that lacked memory beside others; one that lacks it alone has failed.

        On a signal or an error in one run the others checkpoint after the round in progress and stop.
        """
        processes = runs_forked()
        failures: list[_Failure] = []
        crowded: list[Task] = []
        manager = SyncManager(ctx=multiprocessing.get_context("spawn"))
        manager.start(end_with_parent)
        with Signals() as signals, manager:
            news, stop = manager.Queue(), manager.Event()
            settled = (threads, dict(os.environ), permissions())
            with ProcessPoolExecutor(jobs, mp_context=processes, initializer=_settle, initargs=settled) as pool:
                given = self.memory, self.data_dir, self.go_on
                each = {pool.submit(_apart, task, *given, news, stop): task for task in tasks}
                waiting = set(each)
                try:
                    while waiting:
                        done, waiting = wait(waiting, timeout=0.2, return_when=FIRST_COMPLETED)
                        _tell(news, self.on_round)
                        for future in done:
                            failure = self._failure(future)
                            if failure is None:
                                self._finish(each[future][1])
                            elif failure.crowded and jobs > 1:
                                crowded.append(each[future])
                            elif not self._excused(failure):
                                failures.append(failure)
                        if failures or signals.received:
                            stop.set()
                except BaseException:
                    stop.set()  # or the pool would carry out everything that waits before it reports
                    raise
        if signals.received:
            raise self._stopped(128 + signals.received)
        if failures:
            raise BatchError(failures[0].message, failures[0].exit_code)
        return crowded

    def _finish(self, folder: Path) -> None:
        if RunFolder(folder).finished:  # not one that was never begun, because all were stopped
            self.finished.add(folder)
            self.on_finished(folder)

    def _excused(self, failure: _Failure) -> bool:
        if self.on_failure is None or not failure.alone:
            return False
        self.failed.add(failure.folder)
        self.on_failure(failure.folder, failure.message)
        return True

    def _failure(self, future: Future[_Failure | None]) -> _Failure | None:
        try:
            return future.result()
        except BrokenProcessPool:
            raise DeviceError(
                f"the process of a run was killed, most likely for lack of memory; lower --jobs: {self.go_on}"
            ) from None

    def _stopped(self, exit_code: int) -> BatchError:
        finished = sum(folder in self.finished or RunFolder(folder).finished for _, folder in self.tasks)
        return BatchError(f"stopped with {finished} of {len(self.tasks)} runs finished; {self.go_on}", exit_code)


def _settle(threads: int, environment: Mapping[str, str], may_run: Permissions) -> None:
    """Make a process ready for runs; Ctrl-C reaches it too, but its parent decides.

    The environment is what it is now: the process it was forked from may have begun in another. Which Python files may
    run was decided where the user is.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.environ.clear()
    os.environ.update(environment)
    torch.set_num_threads(threads)
    inherit(may_run)
    end_with_parent()


@contextmanager
def _threads(number: int | None) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(number or before)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _tell(news: News, on_round: OnRunRound) -> None:
    while True:
        try:
            on_round(*news.get_nowait())
        except Empty:
            return


def _apart(task: Task, memory: str, data_dir: Path | None, go_on: str, news: News, stop: Event) -> _Failure | None:
    """Carry out a task in a process of its own; once `stop` is set, as if that process had received SIGTERM."""

    def on_round(number: int, metrics: dict[str, float]) -> None:
        news.put((task[1], number, metrics))
        if stop.is_set():
            signal.raise_signal(signal.SIGTERM)

    if stop.is_set():
        return None
    failure = None
    try:
        _one(task, memory, data_dir, go_on, on_round)
    except OwnviewError as error:
        failure = _Failure.of(task[1], error)
    _give_back()
    return failure


def _one(task: Task, memory: str, data_dir: Path | None, go_on: str, on_round: OnRound) -> None:
    experiment, folder = task
    try:
        if RunFolder(folder).begun:
            asked = form_in(RunFolder(folder), experiment).identity()
            resume(folder, memory=memory, data_dir=data_dir, on_round=on_round, asked=asked)
        else:
            RunFolder(folder).drop_if_not_begun()
            run(experiment, out=folder, memory=memory, data_dir=data_dir, on_round=on_round)
    except UnwrittenError as error:
        if not error.go_on:  # nothing was begun
            raise
        raise UnwrittenError(error.reason, go_on) from error
    except (MemoryError, RuntimeError) as error:
        if not lacks_memory(error):
            raise
        raise MemoryLackError(NO_MEMORY) from error


def _give_back() -> None:
    """Give the GPU memory back that a run no longer needs: a process keeps it otherwise, and runs beside it lack it.

    Where a run failed, not before its error is gone: that holds what the run held.
    """
    if torch.cuda.is_available():
        gc.collect()  # what a run held may hold itself
        torch.cuda.empty_cache()
