"""`ownview bench`: a declared grid of methods, data, protocols and seeds, into one table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Column, Table

from ownview.base.display.amounts import counted
from ownview.base.errors import SettingError, TrainingError
from ownview.cli.display.figures import figures, warn
from ownview.cli.display.progress import live
from ownview.cli.display.terminal import Console
from ownview.cli.options import RUNS, AsJson, DataDir, Device, Jobs, Memory, print_json
from ownview.cli.trusting import Trust
from ownview.runs.batch import MOST_SEEDS, free_cores
from ownview.runs.files.folder import RunFolder
from ownview.studies.bench.results import Document, combined, read_document, tables, write_document
from ownview.studies.bench.results_page import failed
from ownview.studies.bench.running import PAGE, RESULTS, carried_out, written
from ownview.studies.bench.suite import asked_of, load_suite, part_of, plan, require_data, suites
from ownview.studies.grid import Planned, unfinished


def command(
    suite: Annotated[str | None, typer.Argument(help="A suite (--list), or a .toml file.")] = None,
    method: Annotated[
        list[str] | None, typer.Option("--method", help="A row of the suite; may be repeated. All if not given.")
    ] = None,
    data: Annotated[
        list[str] | None, typer.Option("--data", help="A dataset of the suite; may be repeated. All if not given.")
    ] = None,
    protocol: Annotated[
        list[str] | None, typer.Option("--protocol", help="A protocol of the suite; may be repeated. All if not given.")
    ] = None,
    seeds: Annotated[
        int | None, typer.Option("--seeds", help="Instead of the suite's number.", min=1, max=MOST_SEEDS)
    ] = None,
    rounds: Annotated[int | None, typer.Option("--rounds", help="Instead of the suite's.", min=1)] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--out",
            "--resume",
            help="Folder of runs and results; one that exists goes on. runs/bench/SUITE if not given.",
        ),
    ] = None,
    record: Annotated[
        Path | None, typer.Option("--record", help="Folder whose SUITE.json takes the results up, to be committed.")
    ] = None,
    gather: Annotated[
        bool, typer.Option("--gather", help="Run nothing, put together what has finished in the folder.")
    ] = False,
    jobs: Jobs = None,
    device: Device = "auto",
    memory: Memory = "auto",
    data_dir: DataDir = None,
    trust: Trust = False,
    listing: Annotated[bool, typer.Option("--list", help="Show suites, or the runs of the one that is named.")] = False,
    as_json: AsJson = False,
) -> None:
    """Run a suite of methods, datasets, protocols and seeds, and put everything into one table.

    Finished runs are kept and taken up again: the same command goes on where it was stopped or killed.
    """
    if listing and suite is None:
        _list_suites(as_json)
        return
    if suite is None:
        raise SettingError(f"name a suite: {', '.join(one.name for one in suites())}; see ownview bench --list")
    declared = load_suite(suite)
    folder = out or RUNS / "bench" / declared.name
    planned = plan(part_of(declared, method or (), data or (), seeds, protocol or ()), folder / "runs", rounds, device)
    if listing:
        _list_runs(planned, as_json)
        return
    if record is not None and rounds is not None:
        raise SettingError("--rounds: not with --record, which takes up runs as the suite declares them")
    require_data(planned, data_dir)
    if gather:
        planned, failures = _finished(planned, folder), dict[Path, str]()
    else:
        failures = _carried_out(planned, declared.name, jobs or free_cores(device), memory, data_dir, quiet=as_json)
    found = written(declared, planned, failures, folder, data_dir)
    if record is not None:
        path, whole = record / f"{declared.name}.json", plan(declared, folder / "runs", device=device)
        before = read_document(path) if path.is_file() else None
        write_document(path, combined(declared, whole, found, before))
    _show(found, folder, as_json)
    if failures:
        asked = len({one.folder for one in planned})
        raise TrainingError(f"{len(failures)} of {asked} runs failed; {folder / PAGE} says which and why")


def _carried_out(
    planned: list[Planned], suite: str, jobs: int, memory: str, data_dir: Path | None, *, quiet: bool
) -> dict[Path, str]:
    """Run what is not there yet; the folders of runs that failed, and why."""
    with live(f"suite {suite}", planned, jobs, quiet=quiet) as on_round:
        return carried_out(planned, jobs, memory, data_dir, on_round)


def _finished(planned: list[Planned], folder: Path) -> list[Planned]:
    """Those of them that are there; rows of one dataset that were made at different times are compared then."""
    found = [one for one in planned if RunFolder(one.folder).finished]
    if not found:
        raise SettingError(f"--gather: none of the {len(planned)} runs has finished in {folder}")
    return found


def _show(found: Document, folder: Path, as_json: bool) -> None:
    if as_json:
        print_json({**found, "folder": str(folder)})
        return
    console = Console(highlight=False)
    shown = tables(found)
    for table in shown:
        console.print(figures(table, f"{table.data}, {counted(table.seeds, 'seed')}"))
        warn(console, table)
        console.print(table.settings, markup=False)
        console.print()
    about = "Test at the chosen round, mean over seeds; in brackets the 95 % interval over users."
    console.print("\n".join([about, *dict.fromkeys(table.legend for table in shown)]), markup=False)
    for line in failed(found):
        console.print(line, markup=False)
    console.print(f"{RESULTS}, {PAGE} and every run are in {folder}", soft_wrap=True, markup=False)


def _list_suites(as_json: bool) -> None:
    rows = [
        {
            "suite": one.name,
            "about": one.about,
            "methods": [row.name for row in one.rows],
            "data": list(one.data),
            "protocols": list(one.protocols),
            "seeds": one.seeds,
            "runs": len(asked_of(one)),
        }
        for one in suites()
    ]
    if as_json:
        print_json({"suites": rows})
        return
    console = Console(highlight=False)
    for row in rows:
        console.print(f"[bold]{row['suite']}[/]: {counted(int(str(row['runs'])), 'run')}. {escape(str(row['about']))}")
        for name in ("methods", "data", "protocols"):
            console.print(f"  {name}: {', '.join(row[name])}", markup=False)  # type: ignore[arg-type]
        console.print(f"  seeds: {row['seeds']}")


def _list_runs(planned: list[Planned], as_json: bool) -> None:
    left = {folder for _, folder in unfinished([(one.experiment, one.folder) for one in planned])}
    rows = [
        {
            "method": one.row, "data": one.data, "protocol": one.protocol, "seed": one.seed,
            "rounds": one.experiment.rounds_needed, "finished": one.folder not in left, "run": one.folder.name,
        }
        for one in planned
    ]  # fmt: skip
    if as_json:
        print_json({"runs": rows})
        return
    heads = [Column("run ends in" if column == "run" else column, overflow="fold") for column in rows[0]]
    table = Table(*heads, box=None, pad_edge=False)
    for row in rows:
        ending = str(row["run"]).rpartition("-")[2]  # what goes before is in the other columns
        texts = {**row, "finished": "yes" if row["finished"] else "no", "run": ending}.values()
        table.add_row(*(escape(str(text)) for text in texts))
    Console(highlight=False).print(table)
