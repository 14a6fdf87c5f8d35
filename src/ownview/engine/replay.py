"""The same work many times over: on a GPU it is recorded once and replayed without the host's help.

An epoch of many small batches keeps the host busier than the GPU. A CUDA graph launches all its kernels at once; they
are the same kernels on the same memory, so results do not change by a bit.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

Work = Callable[[], None]

_IDLE_SHARE = 0.1
"""Of the device's memory, how much may lie idle between rounds."""


class Recorder:
    """Turns work into work that is recorded where that helps. One recorder serves one engine."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.warm = False
        if device.type == "cuda":
            _set_up_products(device)
        self.renew()

    def renew(self) -> None:
        """Let go of the memory of earlier recordings, once a round.

        Recordings are replayed one after the other, so those of a round may all work in the same memory. That memory
        lives as long as a recording that uses it, hence the latest one is held on to. Every round has other shapes, so
        what earlier ones needed would pile up; and while a recording is made, memory that lies idle cannot be taken
        back. So it is given back here, once there is much of it.
        """
        self.latest: torch.cuda.CUDAGraph | None = None
        self.pool = torch.cuda.graph_pool_handle() if self.device.type == "cuda" else None
        if self.device.type == "cuda":
            idle = torch.cuda.memory_reserved(self.device) - torch.cuda.memory_allocated(self.device)
            if idle > _IDLE_SHARE * torch.cuda.get_device_properties(self.device).total_memory:
                torch.cuda.empty_cache()

    def repeated(self, work: Work, times: int) -> Work:
        """Work to be called `times` times; it must use the same tensors every time and wait for nothing.

        The very first work of a recorder runs plainly once, because libraries set themselves up then.
        """
        if self.device.type != "cuda" or times < 2:
            return work
        graph: torch.cuda.CUDAGraph | None = None

        def replayed() -> None:
            nonlocal graph
            if not self.warm:
                self.warm = True
                work()
                return
            graph = graph or self._record(work)
            graph.replay()

        return replayed

    def _record(self, work: Work) -> torch.cuda.CUDAGraph:
        graph = torch.cuda.CUDAGraph()
        stream = torch.cuda.Stream(self.device)  # type: ignore[no-untyped-call]
        stream.wait_stream(torch.cuda.current_stream(self.device))
        with torch.cuda.stream(stream):
            graph.capture_begin(pool=self.pool)
            try:
                work()
            finally:
                graph.capture_end()
        torch.cuda.current_stream(self.device).wait_stream(stream)
        self.latest = graph
        return graph


def _set_up_products(device: torch.device) -> None:
    """Have the library for matrix products set itself up, forward and backward, which run in threads of their own.

    It must not happen while a recording is made, and a method's first phase, which runs plainly once, may have no
    product to differentiate while its second has.
    """
    square = torch.ones(2, 2, device=device, requires_grad=True)
    torch.autograd.grad((square @ square).sum(), square)
