"""The same work many times over: on a GPU it is recorded once and replayed without the host's help.

An epoch of many small batches keeps the host busier than the GPU. A CUDA graph launches all its kernels at once; they
are the same kernels on the same memory, so results do not change by a bit.
"""

from __future__ import annotations

from collections.abc import Callable

import torch


class Replayed:
    """Calls `work`, which must read and write the same tensors every time and wait for nothing.

    On a GPU the first call runs plainly (libraries set themselves up), the second is recorded, and from then on the
    recording is replayed. On a CPU every call runs plainly.
    """

    def __init__(self, work: Callable[[], None], device: torch.device) -> None:
        self.work, self.device = work, device
        self.calls = 0
        self.graph: torch.cuda.CUDAGraph | None = None

    def __call__(self) -> None:
        """Do the work once more."""
        self.calls += 1
        if self.device.type != "cuda" or self.calls == 1:
            self.work()
            return
        if self.graph is None:
            self.graph = self._recorded()
        self.graph.replay()

    def _recorded(self) -> torch.cuda.CUDAGraph:
        graph = torch.cuda.CUDAGraph()
        stream = torch.cuda.Stream(self.device)
        stream.wait_stream(torch.cuda.current_stream(self.device))
        with torch.cuda.stream(stream):
            graph.capture_begin()
            try:
                self.work()
            finally:
                graph.capture_end()
        torch.cuda.current_stream(self.device).wait_stream(stream)
        return graph
