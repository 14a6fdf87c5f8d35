"""How much memory a new process may take."""

from __future__ import annotations

from pathlib import Path

UNKNOWN = 8 * 10**9
"""Where the system does not say: a modest machine."""


def free_memory(meminfo: Path = Path("/proc/meminfo"), container: Path = Path("/sys/fs/cgroup")) -> int:
    """Bytes that can still be had: what is free or gives way (the file cache does), within the container's limit.

    Args:
        meminfo: the kernel's account of the machine; systems without one count as `UNKNOWN`.
        container: the control group (version 2) the process lives in; without a limit there the machine's counts.
    """
    return int(min(_of_machine(meminfo), _of_container(container)))


def _of_machine(meminfo: Path) -> int:
    try:
        lines = meminfo.read_text(encoding="utf-8").splitlines()
    except OSError:
        return UNKNOWN
    sizes = dict(line.split(":", 1) for line in lines if ":" in line)
    return int(sizes["MemAvailable"].split()[0]) * 1024 if "MemAvailable" in sizes else UNKNOWN


def _of_container(folder: Path) -> float:
    try:
        limit, taken = ((folder / name).read_text(encoding="utf-8") for name in ("memory.max", "memory.current"))
        details = (folder / "memory.stat").read_text(encoding="utf-8").splitlines()
    except OSError:
        return float("inf")
    if limit.strip() == "max":
        return float("inf")
    gives_way = sum(int(line.split()[1]) for line in details if line.startswith("inactive_file "))
    return max(0, int(limit) - int(taken) + gives_way)
