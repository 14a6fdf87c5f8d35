"""Where training runs: device, precision, memory and engine."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import torch

from ownview.base.display.amounts import readable
from ownview.base.errors import DeviceError, SettingError, suggestion

UNKNOWN = 8 * 10**9
"""Where the system does not say: a modest machine."""


def free_memory(meminfo: Path = Path("/proc/meminfo"), container: Path = Path("/sys/fs/cgroup")) -> int:
    """Available bytes: free memory and the file cache, within the container's limit.

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


_UNITS = {"": 1, "b": 1, "kb": 1e3, "mb": 1e6, "gb": 1e9, "kib": 2**10, "mib": 2**20, "gib": 2**30}


TOO_LARGE = "and the setting memory allows"
"""Part of every error about memory that does not suffice."""


ENGINES = ("vector", "loop", "compiled")
"""A stack of clients at once, one client at a time, and a stack whose steps are compiled."""


@dataclass(frozen=True)
class Workers:
    """Processes that share the clients; see `ownview.cluster`.

    Args:
        count: how many; 0 for as many as there are free CPUs, or GPUs.
        address: of a Ray cluster that runs already; empty for workers on this machine.
        folder: where workers keep what their clients hold, readable by all of them; None for a temporary one.
    """

    count: int = 0
    address: str = ""
    folder: Path | None = None


@dataclass(frozen=True)
class Machine:
    """Settings of the machine. None of them changes a result beyond rounding.

    Args:
        device: cpu or cuda.
        dtype: float32, or float64 for checks.
        memory: bytes that training may take in all.
        engine: one of `ENGINES`.
        dense: give clients full tables instead of touched rows (for checks).
        block_clients: clients side by side at most.
        workers: that share the clients; None where this process has all of them.
    """

    device: torch.device
    dtype: torch.dtype = torch.float32
    memory: int = 4 * 10**9
    engine: str = "vector"
    dense: bool = False
    block_clients: int = 128
    workers: Workers | None = None

    @property
    def bytes_per_value(self) -> int:
        """4 or 8."""
        return torch.finfo(self.dtype).bits // 8

    @property
    def block_bytes(self) -> int:
        """Bytes of a block: half of the memory, and on a CPU no more than fits its caches well."""
        half = self.memory // 2
        return half if self.device.type == "cuda" else min(half, 512 * 10**6)

    @property
    def ranking_bytes(self) -> int:
        """Bytes of a block of ranked users: scores are read repeatedly, so a CPU's cache is the limit."""
        return self.block_bytes if self.device.type == "cuda" else min(self.block_bytes, 64 * 10**6)

    def require(self, needed: int, what: str, advice: str = "raise --memory or lower embedding_size") -> None:
        """Raise if values kept between rounds do not fit in memory; the error ends with `advice`."""
        if needed > self.memory:
            raise DeviceError(f"{what} need {readable(needed)} {TOO_LARGE} {readable(self.memory)}; {advice}")


def machine(
    device: str = "auto", memory: str = "auto", engine: str = "vector", workers: Workers | None = None
) -> Machine:
    """Read settings as people write them: device auto, cpu or cuda; memory auto or such as 4GB."""
    if engine not in ENGINES:
        raise SettingError(f"unknown engine {engine!r}{suggestion(engine, ENGINES)}")
    chosen = _device(device)
    amount = _half_of_free(chosen) if memory == "auto" else parse_bytes(memory)
    side_by_side = 1 << 16 if chosen.type == "cuda" else 128  # on a GPU memory and time decide: see `planning`
    return Machine(chosen, memory=amount, engine=engine, block_clients=side_by_side, workers=workers)


def share(device: str, memory: str, jobs: int) -> str:
    """Default memory of each of several concurrent runs: an equal share of half of the free memory."""
    if memory != "auto" or jobs <= 1:
        return memory
    return f"{_half_of_free(_device(device)) // jobs}b"


def parse_bytes(text: str) -> int:
    """'4GB', '512 MiB' or '1000000' as a number of bytes."""
    found = re.fullmatch(r"\s*(\d{1,18}(?:\.\d{1,18})?)\s*([a-zA-Z]*)\s*", text)
    if found is None or found[2].lower() not in _UNITS or float(found[1]) <= 0:
        raise SettingError(f"memory {text!r}: expected a size such as 4GB or 512MiB")
    return int(float(found[1]) * _UNITS[found[2].lower()])


def _device(name: str) -> torch.device:
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if re.fullmatch(r"cpu|cuda(:\d+)?", name) is None:
        raise DeviceError(f"unknown device {name!r}; choose auto, cpu, cuda, or a GPU's number as in cuda:1")
    if name.startswith("cuda") and not torch.cuda.is_available():
        raise DeviceError(f"device {name!r} asked for, but no CUDA device is available; use --device cpu")
    return torch.device(name)


def _half_of_free(device: torch.device) -> int:
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0] // 2)
    return free_memory() // 2
