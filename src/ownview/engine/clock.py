"""Where a round's time goes."""

from __future__ import annotations

import time

import torch


class Clock:
    """Attributes time to parts: `lap` ends a part that began at the last lap."""

    def __init__(self) -> None:
        self.last = time.perf_counter()
        self.parts: dict[str, float] = {}

    def lap(self, part: str) -> None:
        """Add the seconds since the last lap to `part`."""
        now = time.perf_counter()
        self.parts[part] = self.parts.get(part, 0.0) + now - self.last
        self.last = now

    def seconds(self) -> dict[str, float]:
        """Seconds by part."""
        return self.parts


def clock_on(device: torch.device) -> Clock:
    """A clock that waits for a device's queued work."""
    return _GpuClock() if device.type == "cuda" else Clock()


class _GpuClock(Clock):
    """Marks the GPU's queue, so that the host need not wait until the end."""

    def __init__(self) -> None:
        self.marks: list[tuple[str, torch.cuda.Event]] = []
        self.lap("")

    def lap(self, part: str) -> None:
        mark = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
        mark.record()
        self.marks.append((part, mark))

    def seconds(self) -> dict[str, float]:
        self.marks[-1][1].synchronize()  # and not for what another queue does for the next round
        parts: dict[str, float] = {}
        for (_, before), (part, after) in zip(self.marks, self.marks[1:], strict=False):
            parts[part] = parts.get(part, 0.0) + before.elapsed_time(after) / 1000
        return parts
