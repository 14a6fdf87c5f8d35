"""`python -m reproduction run`: a published table run again, its figures beside those reached here."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markdown import Markdown
from rich.markup import escape
from rich.table import Column, Table

from ownview.base.display.amounts import counted
from ownview.base.errors import DataError, SettingError, TrainingError
from ownview.base.files import make_folder
from ownview.cli.display.progress import progress
from ownview.cli.display.terminal import Console
from ownview.cli.options import RUNS, AsJson, DataDir, Device, Jobs, Memory, print_json
from ownview.data.datasets.catalog import require_data_dir
from ownview.runs.batch import MOST_SEEDS, free_cores
from ownview.runs.table import grouped
from ownview.studies.grid import carry_out, unfinished
from reproduction.commands.reproduce_all import Asked, reproduce_all, require_published, stages_of
from reproduction.commands.reproduce_attacks import attack_uploads
from reproduction.ledger.order import SEEDS, Wishes
from reproduction.ledger.rows import chosen
from reproduction.paper_report import Report, markdown, to_dict, write
from reproduction.papers import CITATIONS, find_paper, select, settings_of
from reproduction.plan import Line, Options, Status, missing, plan, results, tasks

QUICK_ROUNDS = 3


def command(
    paper: Annotated[str | None, typer.Argument(help="PFedRec, FedRAP, PFedCLR, FedEM or PLGC.")] = None,
    table: Annotated[
        list[str] | None, typer.Option("--table", help="A table's number (--list); may be repeated. All if not given.")
    ] = None,
    data: Annotated[
        list[str] | None, typer.Option("--data", help="One of the paper's datasets; may be repeated. All if not given.")
    ] = None,
    seeds: Annotated[
        int | None,
        typer.Option("--seeds", help="Runs of each row, with seeds 0, 1, ...; 3 if not given.", min=1, max=MOST_SEEDS),
    ] = None,
    rounds: Annotated[int | None, typer.Option("--rounds", help="Instead of the paper's.", min=1)] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="A first look: 3 rounds, 1 seed, in a folder apart; reproduces nothing.")
    ] = False,
    honest: Annotated[
        bool, typer.Option("--honest/--no-honest", help="Run the same settings under protocol honest too.")
    ] = True,
    out: Annotated[
        Path | None, typer.Option("--out", help="Folder of runs and report; runs/reproduce/PAPER if not given.")
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Every table of every paper, or of PAPER: the ledger, as one plan.")
    ] = False,
    stage: Annotated[
        list[str] | None,
        typer.Option(
            "--stage", help="With --all: main, twins, seeds, rest, unseen, rest-seeds, scattered; repeatable."
        ),
    ] = None,
    noise: Annotated[
        bool, typer.Option("--noise", help="With --all: only rows with noise on uploads, such as PFedRec's Table 7.")
    ] = False,
    attack: Annotated[
        bool,
        typer.Option(
            "--attack",
            help="With --all: attack one upload of rows with noise instead; of round --rounds, 1 if not given.",
        ),
    ] = False,
    part: Annotated[
        str | None, typer.Option("--part", help="With --all: K/N, one of N parts that several machines share.")
    ] = None,
    record: Annotated[
        Path | None, typer.Option("--record", help="With --all: folder whose ledger.json takes the runs up.")
    ] = None,
    take: Annotated[
        list[Path] | None,
        typer.Option("--take", help="With --all: a ledger.json of elsewhere, whose runs count as made; repeatable."),
    ] = None,
    gather: Annotated[
        bool, typer.Option("--gather", help="With --all: run nothing, put together what there is.")
    ] = False,
    longest: Annotated[
        float | None,
        typer.Option("--longest", help="With --all: hours; leave out runs that take longer, by what like runs took."),
    ] = None,
    lean: Annotated[
        bool, typer.Option("--lean", help="With --all: remove a run's folder, models and all, once it is recorded.")
    ] = False,
    jobs: Jobs = None,
    device: Device = "auto",
    memory: Memory = "auto",
    data_dir: DataDir = None,
    listing: Annotated[bool, typer.Option("--list", help="Show papers, tables and their data.")] = False,
    as_json: AsJson = False,
) -> None:
    """Run what a published table needs and put its figures beside those reached here.

    Finished runs are kept and taken up again: the same command goes on where it was stopped.
    """
    if everything:
        papers = [] if paper is None else [find_paper(paper)]
        if table and not papers:
            raise SettingError("--table: with --all, name the paper whose table it is")
        if attack:
            refused = {"stage": stage, "part": part, "take": take, "gather": gather, "longest": longest, "lean": lean}
            _require_none("not with --attack", **refused, quick=quick, jobs=jobs, seeds=seeds)
            require_published(data or ())
            rows = chosen(papers, data or (), table or (), noise=True)
            attack_uploads(
                rows, rounds or 1, record or out or RUNS / "reproduce" / "all",
                device=device, memory=memory, data_dir=data_dir, listing=listing, quiet=as_json,
            )  # fmt: skip
            return
        folder = (out or RUNS / "reproduce" / "all") / ("quick" if quick else "")
        wishes = Wishes(
            folder / "runs", seeds or (1 if quick else SEEDS), rounds or (QUICK_ROUNDS if quick else None), honest,
            device, data_dir, stages_of(stage or ()),
        )  # fmt: skip
        asked = Asked(
            wishes, papers, data or (), table or (), noise, part, folder, record, take or (), gather, longest, lean,
            jobs, memory, listing, as_json,
        )  # fmt: skip
        reproduce_all(asked)
        return
    _require_none(
        "only with --all, the plan of every published figure", stage=stage, noise=noise, attack=attack, part=part,
        record=record, take=take, gather=gather, longest=longest, lean=lean,
    )  # fmt: skip
    if listing:
        _list(list(CITATIONS) if paper is None else [find_paper(paper)], table or (), data or (), as_json)
        return
    if paper is None:
        raise SettingError(f"name a paper: {', '.join(CITATIONS)}; see python -m reproduction run --list")
    require_data_dir(data_dir)
    name = find_paper(paper)
    figures = select(name, table or (), data or ())
    folder = (out or RUNS / "reproduce" / name.lower()) / ("quick" if quick else "")
    options = Options(
        runs=folder / "runs", seeds=seeds or (1 if quick else 3), rounds=rounds or (QUICK_ROUNDS if quick else None),
        honest=honest, device=device, data_dir=data_dir,
    )  # fmt: skip
    lines = plan(figures, settings_of(name), options)
    _require_some(name, lines)
    work = tasks(lines)
    left = unfinished(work)
    with progress(
        counted(len(left), "run"), max(sum(one.rounds_needed for one, _ in left), 1), quiet=as_json
    ) as advance:
        failures = carry_out(
            work, jobs=jobs or free_cores(device), memory=memory, data_dir=data_dir,
            on_round=lambda run, number, metrics: advance(run.name),
        )  # fmt: skip
    report = Report(name, results(lines, failures), options, quick, _command_line())
    make_folder(folder)
    write(report, folder)
    if as_json:
        print_json({**to_dict(report), "folder": str(folder)})
    else:
        _show(report, folder)
    if failures:
        raise TrainingError(f"{len(failures)} of {len(work)} runs failed; the report says which and why")


def _require_none(why: str, **options: Any) -> None:
    given = [name for name, value in options.items() if value]
    if given:
        raise SettingError(f"--{given[0]}: {why}")


def _require_some(paper: str, lines: Sequence[Line]) -> None:
    """An error that names what is missing where not a single row can be run."""
    if any(line.status is Status.PLANNED for line in lines):
        return
    absent = dict.fromkeys(line.reason for line in lines if line.status is Status.NO_DATA)
    if absent:
        raise DataError(f"nothing of {paper} can be run here: data not found: {'; '.join(absent)}")
    why = dict.fromkeys(f"{line.one.method}: {line.reason}" for line in lines)
    raise SettingError(f"nothing of {paper} that was asked for can be run yet: {'; '.join(why)}")


def _command_line() -> str:
    """What was typed, without the folders of this machine."""
    words = ["python", "-m", "reproduction", *sys.argv[1:]]
    for option in ("--data-dir", "--out"):
        if option in words:
            place = words.index(option)
            words = words[:place] + words[place + 2 :]
    return shlex.join(word for word in words if not word.startswith(("--data-dir=", "--out=")))


def _show(report: Report, folder: Path) -> None:
    console = Console(highlight=False)
    console.print(Markdown(markdown(report, settings=False)))
    if report.warning:
        console.print(report.warning, style="bold red")
    console.print(f"report.md, report.json and every run are in {folder}", soft_wrap=True, markup=False)


def _list(papers: Sequence[str], tables: Sequence[str], data: Sequence[str], as_json: bool) -> None:
    if tables and len(papers) > 1:
        raise SettingError("--table: name the paper whose table it is")
    rows = [row for paper in papers for row in _listed(paper, tables, data)]
    if as_json:
        print_json({"tables": rows})
        return
    counts = [Column(name.replace("_", " "), justify="right") for name in _COUNTS]
    table = Table("paper", "table", *counts, box=None, pad_edge=False)
    for row in rows:
        table.add_row(*(escape(str(row[column])) for column in ("paper", "table", *_COUNTS)))
    console = Console(highlight=False)
    console.print(table)
    for paper in papers:
        every = dict.fromkeys(data for row in rows if row["paper"] == paper for data in row["data"])
        console.print(f"{paper}'s data: {', '.join(every)}", markup=False)
    total = {name: sum(row[name] for row in rows) for name in _COUNTS}
    console.print(
        f"{total['figures']} figures, {total['with_settings']} with settings, {total['known_methods']} of methods this "
        "version has. Run a table with: python -m reproduction run PAPER --table NUMBER; it needs the data "
        "(ownview data ls)"
    )


_COUNTS = ("figures", "with_settings", "known_methods")


def _listed(paper: str, tables: Sequence[str], wanted: Sequence[str]) -> list[dict[str, Any]]:
    rows = []
    for table, found in grouped((figure.table, figure) for figure in select(paper, tables, wanted)).items():
        setups = [setup for figure in found if (setup := settings_of(paper).setup(figure)) is not None]
        counts = len(found), len(setups), sum(not missing(setup) for setup in setups)
        data = list(dict.fromkeys(figure.data for figure in found))
        rows.append({"paper": paper, "table": table, **dict(zip(_COUNTS, counts, strict=True)), "data": data})
    return rows
