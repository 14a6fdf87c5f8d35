"""`python -m reproduction run --all --attack`: what one upload gives away under the noise of published tables."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.table import Column, Table

from ownview.base.display.amounts import counted
from ownview.base.errors import DataError, DeviceError, TrainingError
from ownview.cli.display.progress import progress
from ownview.cli.display.terminal import Console
from ownview.cli.options import print_json
from ownview.data.datasets.catalog import require_data_dir
from ownview.engine.machine import machine
from ownview.studies.bench.results import UPLOADS
from reproduction.ledger.rows import LedgerRow
from reproduction.ledger.uploads import Target, UploadRecord, attacked, read_uploads, targets, together

_FIGURES = ("precision", "recall", "precision at k", "AUC")


def attack_uploads(
    rows: Sequence[LedgerRow],
    number: int,
    folder: Path,
    *,
    device: str,
    memory: str,
    data_dir: Path | None,
    listing: bool,
    quiet: bool,
) -> None:
    """Attack what is not recorded yet; every attack is recorded at once, so that the same command goes on.

    Args:
        rows: with noise on their uploads.
        number: of the round whose upload is attacked.
        folder: that has the record.
        device: cpu, cuda or auto.
        memory: what training may take.
        data_dir: where datasets are.
        listing: show what is recorded and attack nothing.
        quiet: print JSON and nothing else.
    """
    require_data_dir(data_dir)
    machine(device, memory)  # a device that is not there is one error, not one an upload
    wanted = targets(rows, number, data_dir)
    if not wanted:
        raise DataError("no row with noise on uploads among these has its data here; see: ownview data ls")
    path = folder / UPLOADS
    record = read_uploads(path)
    left = [] if listing else [one for one in wanted if one.key not in record.attacks]
    failures: list[str] = []
    with progress(counted(len(left), "upload"), max(len(left), 1), quiet=quiet) as advance:
        for one in left:
            where = f"{one.asked.experiment.label()} on {one.asked.experiment.data_label()}"
            try:
                record = together([record, attacked(one, device, memory, data_dir)])
                record.write(path)
            except (DeviceError, TrainingError) as error:  # too little memory for one says nothing of the others
                failures.append(f"{where}: {error}")
            advance(where)
    _tell(wanted, record, path, quiet=quiet)
    if failures:
        raise TrainingError(f"{len(failures)} of {counted(len(left), 'upload')} could not be attacked: {failures[0]}")


def _tell(wanted: Sequence[Target], record: UploadRecord, path: Path, *, quiet: bool) -> None:
    if quiet:
        every = [record.attacks.get(one.key, {"row": one.asked.name, "round": one.round}) for one in wanted]
        print_json({"record": str(path), "attacks": every})
        return
    console = Console(highlight=False)
    figures = (Column(name, justify="right") for name in _FIGURES)
    table = Table("method", "data", "privacy", "attack", *figures, box=None, pad_edge=False)
    for one in wanted:
        experiment, found = one.asked.experiment, record.attacks.get(one.key)
        values = {} if found is None else found["values"]
        cells = (f"{values[name]:.3f}" if name in values else "" for name in _FIGURES)
        said = "not run" if found is None else found["attack"]
        table.add_row(experiment.label(), experiment.data_label(), experiment.federation.privacy, said, *cells)
    console.print(table)
    done = sum(one.key in record.attacks for one in wanted)
    console.print(f"{done} of {counted(len(wanted), 'upload')} attacked; their record is {path}", markup=False)
