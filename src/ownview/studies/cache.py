"""Runs kept by configuration: equal experiments share a folder, finished ones are taken as they are.

Serves everything that is declared as a set of runs: published tables, and benchmark suites. A set that was stopped, or
killed at any moment, goes on by the same command.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ownview.base.files import make_folder
from ownview.runs.batch import Progress, Task, run_all
from ownview.runs.experiment import Experiment
from ownview.runs.folder import RunFolder
from ownview.runs.lock import sole_worker


def folder_name(asked: Experiment) -> str:
    """Words for people and ten digits for the machine: equal experiments have equal names."""
    words = f"{asked.label()}-{asked.data_label()}-{asked.protocol.name}-seed{asked.seed}"
    return f"{re.sub(r'[^A-Za-z0-9._-]+', '-', words)}-{fingerprint(asked.identity())}"


def fingerprint(values: Mapping[str, Any]) -> str:
    """Ten hexadecimal digits that differ where the values do."""
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:10]


def unfinished(work: Sequence[Task]) -> list[Task]:
    """What is not there yet, begun or not."""
    return [(made, folder) for made, folder in work if not RunFolder(folder).finished]


def carry_out(
    work: Sequence[Task],
    *,
    jobs: int,
    memory: str,
    data_dir: Path | None,
    on_round: Progress,
    threads: int | None = None,
) -> dict[Path, str]:
    """Run what is not there yet; the folders of runs that failed, and why.

    Args:
        work: every run once, all in one folder, which nobody else may work on meanwhile.
        jobs: runs side by side.
        memory: for each of them.
        data_dir: where datasets are.
        on_round: told after every round of every run.
        threads: of each run; an equal share of the cores where None.
    """
    failures: dict[Path, str] = {}
    place = work[0][1].parent
    make_folder(place)
    with sole_worker(place):
        run_all(
            work, jobs=jobs, memory=memory, data_dir=data_dir, on_round=on_round, on_failure=failures.__setitem__,
            threads=threads, go_on="the same command goes on",
        )  # fmt: skip
    return failures
