"""CPU-seconds and memory of this process and of all that it started, from /proc: Ray's workers belong to no caller."""

from __future__ import annotations

import os
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")


def of_tree() -> float:
    """Seconds that this process and its living descendants have used, with what their dead children had used."""
    used: dict[int, float] = {}
    parents: dict[int, int] = {}
    for place in Path("/proc").iterdir():
        if place.name.isdigit():
            try:
                fields = (place / "stat").read_text().rsplit(")", 1)[1].split()
            except OSError:
                continue
            parents[int(place.name)] = int(fields[1])
            used[int(place.name)] = sum(map(int, fields[11:15])) / _TICKS
    mine = {os.getpid()}
    while more := {one for one, parent in parents.items() if parent in mine} - mine:
        mine |= more
    return sum(used[one] for one in mine if one in used)


def peak_megabytes() -> int:
    """Of this process alone."""
    status = Path("/proc/self/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("VmHWM")).split()[1]) // 1024
