"""Runs of a suite, and its two result files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from ownview.base.files import drop_unfinished, write_text
from ownview.runs.batch import OnRunRound
from ownview.runs.findings.audits import findings_of
from ownview.runs.run import open_run
from ownview.runs.table import grouped
from ownview.studies.bench.results import Document, document, write_document
from ownview.studies.bench.results_page import page
from ownview.studies.bench.suite import Suite
from ownview.studies.grid import Planned, carry_out, carry_out_in_order

RESULTS, PAGE = "results.json", "results.md"


def carried_out(
    planned: Sequence[Planned], jobs: int, memory: str, data_dir: Path | None, on_round: OnRunRound
) -> dict[Path, str]:
    """Run what is not there yet; the folders of runs that failed, and why."""
    # One thread a run: results hang on nothing that differs from one start to the next.
    carry = partial(carry_out, jobs=jobs, memory=memory, data_dir=data_dir, on_round=on_round, threads=1)
    return carry_out_in_order(planned, carry)


def written(
    suite: Suite, planned: Sequence[Planned], failures: Mapping[Path, str], folder: Path, data_dir: Path | None
) -> Document:
    """The results of runs that have finished, in the folder's two files."""
    finished = ((one.data, open_run(one.folder)) for one in planned if one.folder not in failures)
    for runs in grouped(finished).values():  # what the probes find lies in the run folders then
        findings_of(runs, probe=True, data_dir=data_dir)
    found = document(suite, planned, failures)
    write_document(folder / RESULTS, found)
    drop_unfinished(folder / PAGE)
    write_text(folder / PAGE, page([found]))
    return found
