"""Carrying the ledger's runs out: what is known is not run again, and every run is noted as soon as it ended or failed.

The folder of runs has a record of its own, ledger.json, which is written anew after every run: the same command goes on
where it was stopped or killed, also where the runs' folders are gone.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from ownview.base.files import writing
from ownview.data.datasets.catalog import entry_of as data_entry
from ownview.data.datasets.catalog import find, how_to_get
from ownview.runs.batch import OnRunRound
from ownview.runs.files.folder import RunFolder
from ownview.studies.bench.results import LEDGER, write_document
from ownview.studies.grid import carry_out
from reproduction.ledger.lines import names
from reproduction.ledger.order import Wanted
from reproduction.ledger.reckoning import Reckoning
from reproduction.ledger.record import Record, entry_of, left_out, read_record, together
from reproduction.ledger.rows import datasets, rows


class Keeper:
    """Keeps the record of a folder of runs in step with the runs.

    Args:
        folder: that has ledger.json; runs are below it.
        taken: records of elsewhere, the oldest first; the folder's own counts before them.
        data_dir: where datasets are.
        short: the runs are shorter than the papers', and nothing that is recorded elsewhere is what they ask for.
    """

    def __init__(
        self, folder: Path, taken: Sequence[Record] = (), data_dir: Path | None = None, *, short: bool = False
    ) -> None:
        self.path, self.short = folder / LEDGER, short
        own = [read_record(self.path)] if self.path.is_file() else []
        absent = {name: how_to_get(data_entry(name)) for name in datasets() if find(name, data_dir) is None}
        self.record = self._joined([*taken, *own, Record(not_found=absent)])
        self.groups = _groups()

    def _joined(self, records: Sequence[Record]) -> Record:
        if not self.short:
            return together(records, names())
        every = [one for record in records for one in (*record.runs.values(), *record.left.values())]
        return together(records, list(dict.fromkeys(one["row"] for one in every)))

    def left(self, runs: Iterable[Wanted]) -> list[Wanted]:
        """What is not recorded yet."""
        return [one for one in runs if one.run not in self.record.runs]

    def take_up(self, runs: Iterable[Wanted], *, remove: bool = False) -> int:
        """Record what has finished; how many runs that were.

        Args:
            runs: any.
            remove: their folders, once they are recorded.
        """
        new = [one for one in self.left(runs) if RunFolder(one.planned.folder).finished]
        if new:
            entries = {one.run: entry_of(one.planned, one.name, self.groups.get(one.name, ())) for one in new}
            protocols = {one.planned.protocol: one.planned.experiment.protocol.plain() for one in new}
            self._write(Record(entries, protocols=protocols, not_found=self.record.not_found))
        for folder in (one.planned.folder for one in new if remove):
            with writing(folder):
                shutil.rmtree(folder)
        return len(new)

    def leave_out(self, one: Wanted, reason: str, seconds: float | None = None) -> None:
        """Note that a run came to nothing, or was not begun."""
        entry = left_out(one.planned, one.name, reason, seconds)
        self._write(Record(left={one.run: entry}, not_found=self.record.not_found))

    def _write(self, new: Record) -> None:
        self.record = self._joined([self.record, new])
        write_document(self.path, self.record.plain())


def _groups() -> dict[str, list[str]]:
    """By the name of a row, the groups of users that published figures are about."""
    found: dict[str, list[str]] = {}
    for row in rows():
        for asked in (row.here, row.honest):
            if asked is not None and row.group:
                found.setdefault(asked.name, []).append(row.group)
    return found


def within(runs: Sequence[Wanted], keeper: Keeper, longest: float | None, device: str) -> list[Wanted]:
    """Runs that take no longer than `longest` seconds by what like runs took; the others are noted as too large.

    Args:
        runs: that are not recorded.
        keeper: whose record says what took how long, and takes the notes.
        longest: seconds; all runs stay where None.
        device: the kind of machine they would run on.
    """
    if longest is None:
        return list(runs)
    reckoning, short = Reckoning(keeper.record, device), []
    for one in runs:
        seconds = reckoning.seconds(one.planned.experiment, one.work)
        if seconds is None or seconds <= longest:
            short.append(one)
        else:
            keeper.leave_out(one, f"about {seconds / 3600:.1f} hours on {device}, by what like runs took", seconds)
    return short


def carry(
    runs: Sequence[Wanted],
    keeper: Keeper,
    *,
    jobs: int,
    memory: str,
    data_dir: Path | None,
    on_round: OnRunRound,
    on_finished: Callable[[Wanted], None],
    remove: bool = False,
) -> dict[Path, str]:
    """Run all of them; the folders of those that failed, and why.

    Args:
        runs: that are not recorded.
        keeper: takes them up.
        jobs: side by side.
        memory: for each of them.
        data_dir: where datasets are.
        on_round: called after every round of every run.
        on_finished: called for every run that was taken up.
        remove: a run's folder, once it is recorded.
    """
    by_folder = {one.planned.folder: one for one in runs}

    def finished(folder: Path) -> None:
        keeper.take_up([by_folder[folder]], remove=remove)
        on_finished(by_folder[folder])

    return carry_out(
        [(one.planned.experiment, one.planned.folder) for one in runs],
        jobs=jobs, memory=memory, data_dir=data_dir, on_round=on_round, on_finished=finished, threads=1,
        on_failure=lambda folder, reason: keeper.leave_out(by_folder[folder], reason),
    )  # fmt: skip


def recorded(folder: Path, record: Record) -> Record:
    """The record of a folder of results together with another."""
    path = folder / LEDGER
    before = [read_record(path)] if path.is_file() else []
    return together([*before, record], names())
