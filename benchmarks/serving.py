"""How fast `ownview serve` answers, while models are swapped and workers killed, and whether its memory stays flat.

    python -m benchmarks.serving MODEL                                # 32 connections, 60 s
    python -m benchmarks.serving MODEL --swaps 20 --kills 5           # the same, disturbed
    python -m benchmarks.serving MODEL --requests 100000              # so many, and the memory before and after

The load is a closed loop: a connection sends its next request when it has its answer, so that the mean duration is the
number of connections by the rate. Requests are the histories of the model's users, every tenth with explanations. It
comes over loopback from a process on the same cores, whose share of the CPU is said beside the server's. A connection
that breaks because its worker was killed is made again and asks again, as `ServeClient` does; these are counted apart.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.lived import add_record
from ownview.serve.model import ServedModel
from ownview.serve.prepared import prepare

CONNECTIONS = 32
_LENGTH = re.compile(rb"content-length: (\d+)", re.IGNORECASE)


class Connection(asyncio.Protocol):
    """One connection of the closed loop."""

    def __init__(self, load: Load) -> None:
        self.load, self.buffer, self.begun = load, b"", 0.0
        self.transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Ask."""
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self._ask()

    def data_received(self, data: bytes) -> None:
        """Count a whole answer, and ask again."""
        self.buffer += data
        end = self.buffer.find(b"\r\n\r\n")
        if end < 0:
            return
        length = _LENGTH.search(self.buffer, 0, end)
        assert length is not None
        if len(self.buffer) < end + 4 + int(length[1]):
            return
        self.load.answered(self.buffer[9:12] == b"200", time.perf_counter() - self.begun)
        self.buffer = b""
        self._ask()

    def connection_lost(self, exc: Exception | None) -> None:
        """Connect again: requests without an answer are sent again."""
        if not self.load.over():
            self.load.again += 1
            self.load.open_soon()

    def _ask(self) -> None:
        assert self.transport is not None
        if self.load.over():
            self.transport.close()
            return
        self.begun = time.perf_counter()
        self.transport.write(self.load.next())


class Load:
    """A closed loop of connections.

    Args:
        address: of the server.
        requests: bytes that are sent in turn.
        seconds: it lasts; infinite where `most` ends it.
        most: requests after which it ends.
    """

    def __init__(self, address: tuple[str, int], requests: list[bytes], seconds: float, most: float) -> None:
        self.address, self.requests, self.most = address, requests, most
        self.until = time.perf_counter() + seconds
        self.durations: list[float] = []
        self.place = self.errors = self.again = self.refused = 0
        self.loop = asyncio.get_running_loop()
        self.opening: set[asyncio.Task[None]] = set()

    def over(self) -> bool:
        """Whether nothing more is asked."""
        return time.perf_counter() > self.until or len(self.durations) >= self.most

    def next(self) -> bytes:
        """What is asked next."""
        self.place = (self.place + 1) % len(self.requests)
        return self.requests[self.place]

    def answered(self, well: bool, seconds: float) -> None:
        """Count an answer."""
        self.durations.append(seconds)
        self.errors += not well

    def open_soon(self) -> None:
        """Open a connection."""
        task = self.loop.create_task(self._open())
        self.opening.add(task)
        task.add_done_callback(self.opening.discard)

    async def _open(self) -> None:
        try:
            await self.loop.create_connection(lambda: Connection(self), *self.address)
        except OSError:
            self.refused += 1

    async def run(self) -> None:
        """Until it is over."""
        for _ in range(CONNECTIONS):
            self.open_soon()
        while not self.over():
            await asyncio.sleep(0.05)
        await asyncio.sleep(0.5)


def requests_of(model: ServedModel) -> list[bytes]:
    """A POST for every user's history."""
    made = []
    for place in range(model.users):
        history = [model.items[i][0] for i in model.history_of(list(model._user)[place]) or ()]
        body = json.dumps({"history": history, "explain": place % 10 == 0}).encode()
        head = f"POST /v1/recommend HTTP/1.1\r\nhost: x\r\ncontent-length: {len(body)}\r\n\r\n"
        made.append(head.encode() + body)
    random.Random(0).shuffle(made)
    return made


@contextlib.contextmanager
def served(model: Path, workers: int) -> Iterator[tuple[subprocess.Popen[str], tuple[str, int]]]:
    """A server in a process of its own."""
    line = [sys.executable, "-m", "ownview", "serve", str(model), "--port", "0", "--workers", str(workers)]
    process = subprocess.Popen(line, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    try:
        found = None
        while found is None:
            said = process.stderr.readline()
            if not said:
                raise SystemExit("the server did not start")
            found = re.search(r"ready at http://([^:]+):(\d+)", said)
        yield process, (found[1], int(found[2]))
    finally:
        process.terminate()
        process.wait(60)


def children(pid: int) -> list[int]:
    """Workers of a server: its children that have a connection or more, which its resource tracker has not."""
    found = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()
    return [int(one) for one in found if b"resource_tracker" not in Path(f"/proc/{one}/cmdline").read_bytes()]


def memory(pids: list[int]) -> float:
    """MB that processes hold in main memory and share with none."""
    total = 0
    for pid in pids:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines()
        total += sum(int(line.split()[1]) for line in lines if line.startswith("Private_"))
    return total / 1e3


def cpu(pids: list[int]) -> float:
    """Seconds of CPU that processes have had."""
    ticks = 0
    for pid in pids:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


async def disturb(server: int, link: Path, folders: list[Path], swaps: int, kills: int, seconds: float) -> None:
    """Set the model's link to another folder, and kill a worker, evenly over the time."""
    moments = sorted(
        [((k + 0.5) / swaps, "swap") for k in range(swaps)] + [((k + 0.5) / kills, "kill") for k in range(kills)]
    )
    begun = time.perf_counter()
    for share, what in moments:
        await asyncio.sleep(max(0.0, share * 0.9 * seconds - (time.perf_counter() - begun)))
        if what == "kill":
            os.kill(random.choice(children(server)), signal.SIGKILL)
            continue
        folders.append(folders.pop(0))
        fresh = link.with_suffix(".new")
        fresh.symlink_to(folders[0])
        fresh.replace(link)


async def measure(given: argparse.Namespace, folders: list[Path], link: Path, requests: list[bytes]) -> dict[str, Any]:
    """One load on one server."""
    with served(link, given.workers) as (process, address):
        workers = children(process.pid)
        warm = Load(address, requests, 3.0, np.inf)
        await warm.run()
        before, used, own = memory(workers), cpu(workers), time.process_time()
        load = Load(address, requests, np.inf if given.requests else given.seconds, given.requests or np.inf)
        begun = time.perf_counter()
        work = [load.run()]
        if given.swaps or given.kills:
            work.append(disturb(process.pid, link, folders, given.swaps, given.kills, given.seconds))
        await asyncio.gather(*work)
        seconds = time.perf_counter() - begun - 0.5
        milliseconds = 1e3 * np.percentile(load.durations, [50, 95, 99, 99.9])
        same = children(process.pid) == workers
        with urllib.request.urlopen(f"http://{address[0]}:{address[1]}/metrics", timeout=30) as answer:
            said = answer.read().decode()
        counted = {
            name: int(re.findall(rf"^ownview_{name}_total (\d+)$", said, re.M)[0]) for name in ("swaps", "starts")
        }
        return {
            "requests": len(load.durations),
            "seconds": round(seconds, 1),
            "requests_a_second": round(len(load.durations) / seconds, 1),
            "milliseconds": dict(zip(("p50", "p95", "p99", "p99.9"), milliseconds.round(1).tolist(), strict=True)),
            "errors": load.errors,
            "refused": load.refused,
            "asked_again": load.again,
            "swaps_and_starts_of_workers": [counted["swaps"], counted["starts"]],
            "server_cpu_ms_a_request": round(1e3 * (cpu(workers) - used) / len(load.durations), 3) if same else None,
            "load_cpu_ms_a_request": round(1e3 * (time.process_time() - own) / len(load.durations), 3),
            "memory_mb": {"before": round(before, 1), "after": round(memory(workers), 1)} if same else None,
        }


def main() -> None:
    """Print one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--swaps", type=int, default=0)
    parser.add_argument("--kills", type=int, default=0)
    parser.add_argument("--requests", type=int, default=0)
    parser.add_argument("--record", type=Path, help="JSON that `benchmarks.lived` reads.")
    parser.add_argument("--case", default="32 connections", help="What the record calls it.")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as own:
        folder = prepare(given.model, Path(own) / "model")
        folders = [folder, Path(shutil.copytree(folder, Path(own) / "other"))]
        link = Path(own) / "link"
        link.symlink_to(folder)
        requests = requests_of(ServedModel(folder))
        quiet = os.getloadavg()[0]
        found = asyncio.run(measure(given, folders, link, requests))
    found = {"cores": len(os.sched_getaffinity(0)), "load_before": round(quiet, 1), **found}
    print(json.dumps(found, indent=2))
    if given.record:
        add_record(given.record, "serve", found, given.case)


if __name__ == "__main__":
    main()
