"""What a command printed and how it ended."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple


class Outcome(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def words(self) -> str:
        """What was printed, without the line breaks of a narrow page."""
        return " ".join(self.out.split())


def stopped(arguments: list[str], runs: Path, number: signal.Signals) -> Outcome:
    """A command in a process of its own, sent a signal as soon as the first run under `runs` has finished a round."""
    process = subprocess.Popen(
        [sys.executable, "-m", "ownview", *arguments],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    deadline = time.monotonic() + 120
    while not list(runs.glob("*/rounds.jsonl")):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.01)
    process.send_signal(number)
    out, err = process.communicate(timeout=120)
    return Outcome(process.returncode, out, err)
