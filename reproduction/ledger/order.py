"""All runs that the ledger wants, each once, in the order they are worth: main tables, their honest twins, and on.

The order and the parts hang on the papers, the settings and the catalogue alone, so that several machines that share
the work agree on who does what. Only the last stage, ten seeds for rows that scatter, looks at what was recorded.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from statistics import stdev

from ownview.base.errors import SettingError
from ownview.data.datasets.catalog import find
from ownview.evaluation.named_protocols import HONEST
from ownview.studies.grid import Planned
from reproduction.ledger.reckoning import work
from reproduction.ledger.record import Entry
from reproduction.ledger.rows import Asked, LedgerRow

SEEDS = 3
"""Of every row."""

MANY_SEEDS = 10
"""Of rows whose seeds scatter."""

SCATTERS = 0.03
"""Standard deviation of HR@10 over seeds from which on a row gets more of them."""


class Stage(StrEnum):
    """What is run when; within a stage what takes least comes first."""

    MAIN = "main"
    TWINS = "twins"
    SEEDS = "seeds"
    REST = "rest"
    UNSEEN = "unseen"
    REST_SEEDS = "rest-seeds"
    SCATTERED = "scattered"

    @property
    def about(self) -> str:
        """In words."""
        return {
            Stage.MAIN: "main tables as their papers measured, seed 0",
            Stage.TWINS: "the same rows under protocol honest, seed 0",
            Stage.SEEDS: "further seeds of both",
            Stage.REST: "all other tables, under both protocols, seed 0",
            Stage.UNSEEN: "data that no paper uses, with defaults alone",
            Stage.REST_SEEDS: "further seeds of the other tables",
            Stage.SCATTERED: f"up to {MANY_SEEDS} seeds for rows of main tables whose seeds scatter",
        }[self]


@dataclass(frozen=True)
class Wanted:
    """One run.

    Args:
        stage: it belongs to.
        planned: experiment and folder; its row is what the paper, or the suite, calls it.
        name: that of its seed 0, which all its seeds share.
        work: how much there is to do, in units of `reckoning.work`.
    """

    stage: Stage
    planned: Planned
    name: str
    work: float

    @property
    def run(self) -> str:
        """The name of its folder, which decides what it is."""
        return self.planned.folder.name


@dataclass(frozen=True)
class Wishes:
    """What a person may choose.

    Args:
        runs: the folder the runs go to.
        seeds: of every row: 0, 1, ... up to this number.
        rounds: instead of the papers'.
        honest: whether twins are run.
        device: cpu, cuda or auto.
        data_dir: where datasets are.
        stages: all where empty.
    """

    runs: Path
    seeds: int = SEEDS
    rounds: int | None = None
    honest: bool = True
    device: str = "auto"
    data_dir: Path | None = None
    stages: Collection[Stage] = ()


def wanted(
    rows: Sequence[LedgerRow], wishes: Wishes, recorded: Iterable[Entry] = (), new: Sequence[tuple[str, Asked]] = ()
) -> list[Wanted]:
    """Every run once, in order; rows whose data is not here are left out.

    Args:
        rows: of the ledger.
        wishes: what a person chose.
        recorded: runs that are known, for rows that scatter.
        new: by the row's name, what is run on data that no paper uses.
    """
    found: dict[str, Wanted] = {}
    mine = [row for row in rows if row.setup is not None and find(row.setup.dataset, wishes.data_dir) is not None]
    main, others = ([row for row in mine if row.main is kind] for kind in (True, False))
    first, further = range(1), range(1, wishes.seeds)
    scattering = _scattering(recorded)
    new = [one for one in new if wishes.honest or one[1].experiment.protocol != HONEST]
    plan = (
        (Stage.MAIN, _as_published(main), first),
        (Stage.TWINS, _honest(main, wishes), first),
        (Stage.SEEDS, _as_published(main), further),
        (Stage.SEEDS, _honest(main, wishes), further),
        (Stage.REST, _as_published(others), first),
        (Stage.REST, _honest(others, wishes), first),
        (Stage.UNSEEN, new, range(wishes.seeds)),
        (Stage.REST_SEEDS, [*_as_published(others), *_honest(others, wishes)], further),
        (Stage.SCATTERED, [one for one in _as_published(main) if one[1].name in scattering], range(1, MANY_SEEDS)),
    )
    for stage, asked, seeds in plan:
        if not wishes.stages or stage in wishes.stages:
            for one in sorted(_runs(stage, asked, seeds, wishes), key=lambda one: (one.work, one.run)):
                found.setdefault(one.run, one)
    return list(found.values())


def part_of(runs: Sequence[Wanted], part: str) -> list[Wanted]:
    """Part k of n, written k/n: every n-th run, so that all parts are about as long and go through the same stages."""
    number, slash, of = part.partition("/")
    if not (slash and number.isdecimal() and of.isdecimal() and 1 <= int(number) <= int(of)):
        raise SettingError(f"--part {part}: expected K/N with 1 <= K <= N, such as 2/5")
    return list(runs[int(number) - 1 :: int(of)])


def _as_published(rows: Iterable[LedgerRow]) -> list[tuple[str, Asked]]:
    return [(row.one.method, row.here) for row in rows if row.here is not None]


def _honest(rows: Iterable[LedgerRow], wishes: Wishes) -> list[tuple[str, Asked]]:
    return [(row.one.method, row.honest) for row in rows if row.honest is not None and wishes.honest]


def _runs(stage: Stage, asked: Iterable[tuple[str, Asked]], seeds: Iterable[int], wishes: Wishes) -> list[Wanted]:
    found: dict[str, Wanted] = {}
    each = {one.name: (row, one) for row, one in asked}
    for row, one in each.values():
        short = one.shortened(wishes.rounds)
        amount = work(short.experiment)
        for seed in seeds:
            run, made = short.seed(seed)
            planned = Planned(row, replace(made, device=wishes.device), wishes.runs / run)
            found[run] = Wanted(stage, planned, short.name, amount)
    return list(found.values())


def _scattering(recorded: Iterable[Entry]) -> set[str]:
    """Names of rows with as many seeds as all have, whose HR@10 differs from one to the next."""
    values: dict[str, list[float]] = {}
    for one in recorded:
        values.setdefault(one["row"], []).append(one["test"]["HR@10"])
    return {name for name, known in values.items() if len(known) >= SEEDS and stdev(known) > SCATTERS}
