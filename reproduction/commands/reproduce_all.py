"""`run --all`: every published figure as one plan that can be stopped, shared and put together."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from rich.table import Column, Table

from ownview.base.display.amounts import counted
from ownview.base.errors import SettingError, TrainingError
from ownview.cli.display.progress import clock_words
from ownview.cli.display.terminal import Console
from ownview.cli.options import print_json
from ownview.config.layers import require_known
from ownview.data.datasets.catalog import find, require_data_dir
from ownview.engine.machine import machine, share
from ownview.runs.batch import free_cores
from ownview.studies.bench.results import LEDGER, read_all, suites_in, write_document
from reproduction.commands.ledger_progress import Outlook, shown
from reproduction.ledger.carrying import Keeper, carry, recorded, within
from reproduction.ledger.lines import Line, Verdict, lines
from reproduction.ledger.order import Stage, Wanted, Wishes, part_of, wanted
from reproduction.ledger.reckoning import Reckoning
from reproduction.ledger.record import Record, read_record
from reproduction.ledger.rows import chosen, datasets, unseen

ON_A_GPU = 4
"""Runs side by side on a GPU, which one alone leaves mostly idle."""


@dataclass(frozen=True)
class Asked:
    """What the options say.

    Args:
        wishes: about the runs.
        papers: whose rows; all where empty.
        data: datasets of the catalogue; all where empty.
        tables: of the one paper that is named; all where empty.
        noise: only rows whose uploads carry noise.
        part: K/N, or None for everything.
        folder: of runs and their record.
        record: folder whose ledger.json takes the runs up; None for none.
        take: records of elsewhere.
        gather: run nothing.
        longest: hours that a run may take by what like runs took.
        lean: remove a run's folder once it is recorded.
        jobs: side by side; None for as many as cores are free.
        memory: for all of them together where "auto", else for each.
        listing: show the plan and run nothing.
        quiet: print JSON and nothing else.
    """

    wishes: Wishes
    papers: Sequence[str]
    data: Sequence[str]
    tables: Sequence[str]
    noise: bool
    part: str | None
    folder: Path
    record: Path | None
    take: Sequence[Path]
    gather: bool
    longest: float | None
    lean: bool
    jobs: int | None
    memory: str
    listing: bool
    quiet: bool


def stages_of(names: Sequence[str]) -> list[Stage]:
    """By name; an error names the nearest."""
    for name in names:
        require_known(name, [str(one) for one in Stage], f"--stage {name}: no such stage")
    return [Stage(name) for name in names]


def reproduce_all(asked: Asked) -> None:
    """Run what is left of the plan, record it, and say how far the ledger is."""
    _check(asked)
    taken = [read_record(path) for path in asked.take]
    if asked.record is not None and (asked.record / LEDGER).is_file():
        taken.insert(0, read_record(asked.record / LEDGER))
    keeper = Keeper(asked.folder, taken, asked.wishes.data_dir, short=asked.wishes.rounds is not None)
    new = [one for one in unseen() if not asked.data or one[1].experiment.data in asked.data]
    rows = chosen(asked.papers, asked.data, asked.tables, noise=asked.noise)
    plan = wanted(rows, asked.wishes, keeper.record.runs.values(), [] if asked.papers or asked.noise else new)
    plan = plan if asked.part is None else part_of(plan, asked.part)
    if asked.listing:
        _list(plan, keeper, asked)
        return
    keeper.take_up(plan, remove=asked.lean)
    failures = {} if asked.gather else _run(plan, keeper, asked)
    record, found = _figures(keeper.record, asked)
    _tell(plan, record, found, asked)
    if failures:
        raise TrainingError(f"{len(failures)} of {len(plan)} runs failed; {keeper.path} says which and why")


def _check(asked: Asked) -> None:
    require_data_dir(asked.wishes.data_dir)
    require_published(asked.data)
    if asked.record is not None and asked.wishes.rounds is not None:
        raise SettingError("--record: not with --quick or --rounds, which reproduce nothing")


def require_published(data: Sequence[str]) -> None:
    """Refuse datasets that nothing is about; an error names the nearest."""
    known = [*datasets(), *(one.experiment.data for _, one in unseen())] if data else []
    for name in data:
        require_known(name, known, f"--data {name}: no published figure and no row is about it")


def _run(plan: Sequence[Wanted], keeper: Keeper, asked: Asked) -> dict[Path, str]:
    device = asked.wishes.device
    kind = _kind(device)
    longest = None if asked.longest is None else asked.longest * 3600
    left = within(keeper.left(plan), keeper, longest, kind)
    if not left:
        return {}
    jobs = asked.jobs or (free_cores(device) if kind == "cpu" else min(ON_A_GPU, os.cpu_count() or 1))
    outlook = Outlook(left, _weights(left, Reckoning(keeper.record, kind)), time.monotonic)
    with shown(outlook, quiet=asked.quiet) as on_round:
        return carry(
            left, keeper, jobs=jobs, memory=share(device, asked.memory, min(jobs, len(left))),
            data_dir=asked.wishes.data_dir, on_round=on_round, on_finished=outlook.run_done, remove=asked.lean,
        )  # fmt: skip


def _kind(device: str) -> str:
    """As provenance calls it: cpu, or the GPU's name."""
    place = machine(device).device
    return "cpu" if place.type == "cpu" else torch.cuda.get_device_name(place)


def _weights(left: Sequence[Wanted], reckoning: Reckoning) -> dict[Path, float]:
    """By folder seconds, or units of work where nothing is known of this kind of machine."""
    known = {one.planned.folder: reckoning.seconds(one.planned.experiment, one.work) for one in left}
    return {one.planned.folder: known[one.planned.folder] or one.work for one in left}


def _figures(record: Record, asked: Asked) -> tuple[Record, list[Line]]:
    """The lines that come of a record; with --record, of that folder's too, which takes it up."""
    if asked.wishes.rounds is not None:
        return record, []
    if asked.record is None:
        return record, lines(record)
    whole = recorded(asked.record, record)
    found = lines(whole, read_all(asked.record).values() if suites_in(asked.record) else ())
    write_document(asked.record / LEDGER, whole.plain([one.plain() for one in found]))
    return whole, found


def _tell(plan: Sequence[Wanted], record: Record, found: Sequence[Line], asked: Asked) -> None:
    done = sum(one.run in record.runs for one in plan)
    verdicts = Counter(str(one.verdict) for one in found)
    values = {
        "folder": str(asked.folder),
        "runs": {"asked_for": len(plan), "finished": done},
        "figures": {str(one): verdicts[one] for one in Verdict if verdicts[one]},
        "left": [{name: one[name] for name in ("run", "kind", "reason")} for one in record.left.values()],
    }
    if asked.quiet:
        print_json(values)
        return
    console = Console(highlight=False)
    console.print(
        f"{done} of {counted(len(plan), 'run')} finished; their record is {asked.folder / LEDGER}", markup=False
    )
    if asked.wishes.rounds is not None:
        console.print(f"SHORTENED: {asked.wishes.rounds} rounds instead of the papers'. This reproduces nothing.")
    for one in record.left.values():
        console.print(f"{one['kind']}: {one['run']}: {one['reason']}", soft_wrap=True, markup=False)
    _show_figures(console, found)


def _show_figures(console: Console, found: Sequence[Line]) -> None:
    if not found:
        return
    ran = sum(one.verdict.ran for one in found)
    counts = Counter(one.verdict for one in found)
    words = ", ".join(f"{counts[verdict]} {verdict}" for verdict in Verdict if counts[verdict])
    console.print(f"{ran} of {len(found)} published figures have been run: {words}", markup=False)


def _list(plan: Sequence[Wanted], keeper: Keeper, asked: Asked) -> None:
    reckoning = Reckoning(keeper.record, _kind(asked.wishes.device))
    weights, known = _weights(plan, reckoning), bool(reckoning.known)
    rows: list[dict[str, Any]] = []
    for stage in Stage:
        mine = [one for one in plan if one.stage is stage]
        left = keeper.left(mine)
        seconds = sum(weights[one.planned.folder] for one in left) if known else None
        counts = {"runs": len(mine), "finished": len(mine) - len(left)}
        rows.append({"stage": str(stage), "about": stage.about, **counts, "seconds_left_one_by_one": seconds})
    if asked.quiet:
        runs = [{"run": one.run, "stage": str(one.stage), "work": one.work} for one in plan]
        print_json({"stages": rows, "runs": runs})
        return
    table = Table(
        "stage", "what", Column("runs", justify="right"), Column("finished", justify="right"), "left, one by one",
        box=None, pad_edge=False,
    )  # fmt: skip
    for row in rows:
        left_words = (
            "not known yet" if row["seconds_left_one_by_one"] is None else clock_words(row["seconds_left_one_by_one"])
        )
        table.add_row(row["stage"], row["about"], str(row["runs"]), str(row["finished"]), left_words)
    console = Console(highlight=False)
    console.print(table)
    absent = [name for name in datasets() if find(name, asked.wishes.data_dir) is None]
    if absent:
        console.print(
            f"Runs on data that is not here are not counted: {', '.join(absent)} (ownview data ls)", markup=False
        )
