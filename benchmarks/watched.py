"""Watch a command until it ends: how long it takes, how long it says nothing, and how much memory it holds.

    python -m benchmarks.shop orders.csv
    python -m benchmarks.watched --minutes 15 --silence 10 --gigabytes 8 -- ownview start orders.csv

Prints what the command prints, each line behind the seconds since the beginning, then a line of JSON. Ends with 1
where a limit was passed or the command failed. Memory is the largest sum over the command's processes of what each has
to itself and its share of the rest (PSS), looked at twice a second: Linux alone has that.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import selectors
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO

_EVERY = 0.5
"""Seconds between two looks at the memory."""


@dataclass(frozen=True)
class Watched:
    """A command that has ended.

    Args:
        code: that it ended with.
        wall_seconds: from begin to end.
        cpu_seconds: of all its processes.
        longest_silence: seconds in which it wrote nothing, its beginning and its end counted.
        after: the last line before that silence.
        peak_gigabytes: of memory, 10^9 bytes.
        load: of the machine at the end, mean of the last five minutes.
        cores: of the machine.
    """

    code: int
    wall_seconds: float
    cpu_seconds: float
    longest_silence: float
    after: str
    peak_gigabytes: float
    load: float
    cores: int


def watched(command: list[str]) -> Watched:
    """Run a command to its end."""
    began = last = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, bufsize=0)
    assert process.stdout is not None
    silence, line, after, peak = 0.0, "", "", 0
    with selectors.DefaultSelector() as ready:
        ready.register(process.stdout, selectors.EVENT_READ)
        while True:
            output = _read(ready, process.stdout)
            now = time.monotonic()
            peak = max(peak, _memory(process.pid))
            if output is None:
                continue
            if now - last > silence:
                silence, after = now - last, line
            last = now
            if not output:
                break
            line = output.decode(errors="replace").rstrip().rpartition("\n")[2] or line
            sys.stdout.write(f"{now - began:7.1f} {output.decode(errors='replace')}")
            sys.stdout.flush()
    code = process.wait()
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = time.monotonic() - began
    return Watched(
        code, round(seconds, 1), round(used.ru_utime + used.ru_stime, 1), round(silence, 1), after,
        round(peak / 1e9, 2), round(os.getloadavg()[1], 1), os.cpu_count() or 1,
    )  # fmt: skip


def _read(ready: selectors.BaseSelector, pipe: IO[bytes]) -> bytes | None:
    """What was written meanwhile; nothing at the end, None where there was nothing in a while."""
    return os.read(pipe.fileno(), 1 << 16) if ready.select(_EVERY) else None


def _memory(root: int) -> int:
    """Bytes that a process and all below it hold; processes that end meanwhile count as nothing."""
    total, processes = 0, [root]
    while processes:
        one = Path(f"/proc/{processes.pop()}")
        try:
            rollup = (one / "smaps_rollup").read_text().splitlines()
            total += next((1024 * int(row.split()[1]) for row in rollup if row.startswith("Pss:")), 0)
            for task in (one / "task").iterdir():
                processes += map(int, (task / "children").read_text().split())
        except OSError:
            continue
    return total


def main() -> None:
    """Watch what stands behind `--`."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=15.0)
    parser.add_argument("--silence", type=float, default=10.0, help="seconds")
    parser.add_argument("--gigabytes", type=float, default=8.0)
    parser.add_argument("command", nargs="+")
    given = parser.parse_args()
    seen = watched(given.command)
    passed = {
        "the command failed": seen.code != 0,
        f"longer than {given.minutes:g} minutes": seen.wall_seconds > 60 * given.minutes,
        f"silent for more than {given.silence:g} s": seen.longest_silence > given.silence,
        f"more than {given.gigabytes:g} GB": seen.peak_gigabytes > given.gigabytes,
    }
    limits = [words for words, true in passed.items() if true]
    print(json.dumps({**asdict(seen), "command": given.command, "passed_limits": limits}))
    raise SystemExit(bool(limits))


if __name__ == "__main__":
    main()
