"""Repeated work: on a GPU it is recorded once as a CUDA graph and replayed.

An epoch of many small batches keeps the host busier than the GPU. A CUDA graph launches all its kernels at once; they
are the same kernels on the same memory, so results do not change by a bit.
"""

from __future__ import annotations

import functools
import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import torch

Work = Callable[[], None]

_IDLE_SHARE = 0.1
"""Of the device's memory, how much may lie idle between rounds."""

QUEUES = 8
"""Stacks that a GPU works on at once; others stand in line behind them."""


@functools.cache
def queue(device: torch.device, number: int) -> torch.cuda.Stream:
    """A side stream of a GPU, a different one for every number below 32.

    Recorded and eager work on one stream share cuBLAS's workspace, so all work of one stack stays on one stream.
    """
    taken = {queue(device, earlier).cuda_stream for earlier in range(number)}
    while True:  # PyTorch hands out 32 of them in turns
        found = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
        if found.cuda_stream not in taken:
            return found


class Pool:
    """Memory shared by recordings that are replayed one after the other.

    PyTorch refuses to record into memory of which no recording is left, so the latest one is held on to.
    """

    def __init__(self, device: torch.device) -> None:
        self.handle: Any = torch.cuda.graph_pool_handle() if device.type == "cuda" else None
        self.latest: torch.cuda.CUDAGraph | None = None


class Recorder:
    """Records work where that helps. One recorder serves one engine."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.warm, self.rehearses = False, False
        self.stays = 0
        if device.type == "cuda":
            _set_up_products(device)
            _standing(device)
        self.renew()

    def renew(self) -> None:
        """Free memory of earlier recordings, once a round, except of those still referenced.

        Where every round has other shapes, what earlier ones needed would pile up; and while a recording is made,
        memory that lies idle cannot be taken back. So it is given back here, once there is much more of it than the
        last time: what recordings that are held work in lies idle between rounds too, and stays.
        """
        self.pool = Pool(self.device)
        if self.device.type == "cuda":
            idle = torch.cuda.memory_reserved(self.device) - torch.cuda.memory_allocated(self.device)
            if idle - self.stays > _IDLE_SHARE * torch.cuda.get_device_properties(self.device).total_memory:
                torch.cuda.synchronize(self.device)  # memory may be taken away from under work on another queue
                torch.cuda.empty_cache()
                self.stays = torch.cuda.memory_reserved(self.device) - torch.cuda.memory_allocated(self.device)


class Repeated:
    """Work that is recorded when it is known to come more than once.

    The very first work of a recorder runs plainly once, because libraries set themselves up then.

    Args:
        recorder: of the engine.
        times: how often it comes in a round.
        pool: where what is recorded works.
    """

    def __init__(self, recorder: Recorder, times: int, pool: Pool) -> None:
        self.recorder, self.times, self.pool = recorder, times, pool
        self.calls = 0
        self.graph: torch.cuda.CUDAGraph | None = None

    def __call__(self, work: Work) -> None:
        """Do it once more: the same work on the same tensors every time, which must wait for nothing.

        It is an argument of every call: stored here it would make a reference cycle, freed only by collection.
        """
        self.calls += 1
        recorder = self.recorder
        if recorder.device.type != "cuda" or not recorder.warm or self._first_runs_plainly:
            recorder.warm = True
            work()
            return
        self.graph = self.graph or self._recorded(work)
        self.graph.replay()

    @property
    def _first_runs_plainly(self) -> bool:
        """Whether to run unrecorded first: the work may never repeat, and compilation cannot be recorded."""
        return self.calls < 2 and (self.times < 2 or self.recorder.rehearses)

    def forget(self) -> None:
        """The work has changed: drop its recording, and record again only if it repeats."""
        self.graph, self.calls = None, 0

    def _recorded(self, work: Work) -> torch.cuda.CUDAGraph:
        device = self.recorder.device
        here = torch.cuda.current_stream(device)
        usual = torch.cuda.default_stream(device)
        aside = queue(device, 0) if here == usual else here  # nothing can be recorded on the usual one
        graph = torch.cuda.CUDAGraph()
        aside.wait_stream(here)
        with torch.cuda.stream(aside), _nothing_collected():
            graph.capture_begin(pool=self.pool.handle)
            try:
                work()
            except BaseException:
                with suppress(RuntimeError):  # the first error is reported
                    graph.capture_end()
                raise
            graph.capture_end()
        here.wait_stream(aside)
        self.pool.latest = graph
        return graph


@contextmanager
def _nothing_collected() -> Iterator[None]:
    """Pause garbage collection: a capture fails if an older graph is destroyed meanwhile."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _set_up_products(device: torch.device) -> None:
    """Have the library for matrix products set itself up, forward and backward, which run in threads of their own.

    It must not happen while a recording is made, and a method's first phase, which runs plainly once, may have no
    product to differentiate while its second has.
    """
    square = torch.ones(2, 2, device=device, requires_grad=True)
    torch.autograd.grad((square @ square).sum(), square)


@functools.cache
def _standing(device: torch.device) -> torch.cuda.CUDAGraph:
    """A recording that is never replayed and never dropped, made while the GPU is idle.

    PyTorch allocates shared random state with the first recording and frees it with the last. It lies in memory of the
    stream being recorded, which pending work may still use, and every other recording writes into it from a stream of
    its own, unsynchronised. So one recording stays: otherwise PyTorch frees the shared random state, and later reads
    are corrupt.
    """
    number = torch.zeros((), device=device)
    torch.cuda.synchronize(device)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.stream(queue(device, 0)), _nothing_collected():
        graph.capture_begin()
        number.add_(1)  # a recording of nothing is warned of
        graph.capture_end()
    torch.cuda.synchronize(device)
    return graph
