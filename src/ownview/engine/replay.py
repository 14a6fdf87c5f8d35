"""The same work many times over: on a GPU it is recorded once and replayed without the host's help.

An epoch of many small batches keeps the host busier than the GPU. A CUDA graph launches all its kernels at once; they
are the same kernels on the same memory, so results do not change by a bit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

Work = Callable[[], None]

Pool = Any
"""Memory that recorded work of some stacks has to itself, by PyTorch's name for it; None where nothing is recorded."""

_IDLE_SHARE = 0.1
"""Of the device's memory, how much may lie idle between rounds."""


class Recorder:
    """Turns work into work that is recorded where that helps. One recorder serves one engine."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.warm = False
        self.stays = 0
        if device.type == "cuda":
            _set_up_products(device)
        self.renew()

    def renew(self) -> None:
        """Let go of the memory of earlier recordings, once a round, but for those that somebody holds.

        Recordings that are replayed one after the other may all work in the same memory. That memory lives as long as
        a recording that uses it, hence the latest one is held on to. Where every round has other shapes, what earlier
        ones needed would pile up; and while a recording is made, memory that lies idle cannot be taken back. So it is
        given back here, once there is much more of it than the last time: what recordings that are held work in lies
        idle between rounds too, and stays.
        """
        self.latest: torch.cuda.CUDAGraph | None = None
        self.pool = self.pool_of_its_own()
        if self.device.type == "cuda":
            idle = torch.cuda.memory_reserved(self.device) - torch.cuda.memory_allocated(self.device)
            if idle - self.stays > _IDLE_SHARE * torch.cuda.get_device_properties(self.device).total_memory:
                torch.cuda.empty_cache()
                self.stays = torch.cuda.memory_reserved(self.device) - torch.cuda.memory_allocated(self.device)

    def pool_of_its_own(self) -> Pool:
        """Memory for recordings that are replayed while others are."""
        return torch.cuda.graph_pool_handle() if self.device.type == "cuda" else None

    def repeated(self, work: Work, times: int, pool: Pool) -> Repeated:
        """Work to be called `times` times a round; it must use the same tensors every time and wait for nothing."""
        return Repeated(self, work, times, pool)


class Repeated:
    """Work that is recorded when it is known to come more than once.

    The very first work of a recorder runs plainly once, because libraries set themselves up then.

    Args:
        recorder: of the engine.
        work: what is done.
        times: a round.
        pool: where what is recorded works.
    """

    def __init__(self, recorder: Recorder, work: Work, times: int, pool: Pool) -> None:
        self.recorder, self.work, self.times, self.pool = recorder, work, times, pool
        self.calls = 0
        self.graph: torch.cuda.CUDAGraph | None = None

    def __call__(self) -> None:
        """Do it once more."""
        self.calls += 1
        recorder = self.recorder
        if recorder.device.type != "cuda" or not recorder.warm or (self.times < 2 and self.calls < 2):
            recorder.warm = True
            self.work()
            return
        self.graph = self.graph or self._recorded()
        self.graph.replay()

    def forget(self) -> None:
        """Drop what is recorded: the work is another now."""
        self.graph = None

    def _recorded(self) -> torch.cuda.CUDAGraph:
        device = self.recorder.device
        graph = torch.cuda.CUDAGraph()
        stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
        stream.wait_stream(torch.cuda.current_stream(device))
        with torch.cuda.stream(stream):
            graph.capture_begin(pool=self.pool)
            try:
                self.work()
            finally:
                graph.capture_end()
        torch.cuda.current_stream(device).wait_stream(stream)
        self.recorder.latest = graph
        return graph


def _set_up_products(device: torch.device) -> None:
    """Have the library for matrix products set itself up, forward and backward, which run in threads of their own.

    It must not happen while a recording is made, and a method's first phase, which runs plainly once, may have no
    product to differentiate while its second has.
    """
    square = torch.ones(2, 2, device=device, requires_grad=True)
    torch.autograd.grad((square @ square).sum(), square)
