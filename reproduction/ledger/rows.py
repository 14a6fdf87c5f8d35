"""Every row of every published table, and the two experiments behind it: as its paper measured, and honestly.

None of this hangs on the machine: rows whose data is not here are among them. Runs that differ in nothing but the seed
go by one name, that of seed 0.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from ownview.runs.experiment import Experiment
from ownview.runs.table import grouped
from ownview.studies.bench.suite import load_suite, plan
from ownview.studies.grid import folder_name
from reproduction.papers import CITATIONS, Figure, Setup, select, settings_of
from reproduction.plan import experiment, missing

MAIN = {"PFedRec": "1", "FedRAP": "3-4", "PFedCLR": "1", "FedEM": "1", "PLGC": "II"}
"""By paper the number of its main table."""

BARE = "none"
"""Federation setting `privacy` of uploads that nothing protects."""

UNSEEN = "unseen"
"""The suite of data that no paper uses."""


@dataclass(frozen=True)
class Asked:
    """An experiment of seed 0, the name that its seeds share, and what decides its result."""

    experiment: Experiment
    name: str
    identity: Mapping[str, Any] = field(repr=False, compare=False)

    @classmethod
    def of(cls, asked: Experiment) -> Asked:
        """With its name."""
        identity = asked.identity()
        return cls(asked, folder_name(asked, identity), identity)

    def seed(self, number: int) -> tuple[str, Experiment]:
        """The run of one seed: its name and what to do."""
        made = replace(self.experiment, seed=number)
        return folder_name(made, {**self.identity, "seed": number}), made

    def bare(self) -> Asked:
        """The same without noise on uploads."""
        made = self.experiment
        return Asked.of(replace(made, federation=replace(made.federation, privacy=BARE)))

    def shortened(self, rounds: int | None) -> Asked:
        """With so many rounds; itself where None."""
        return self if rounds is None else Asked.of(replace(self.experiment, rounds=rounds))


@dataclass(frozen=True)
class LedgerRow:
    """A row of a published table on one dataset.

    Args:
        figures: one a metric.
        setup: settings and protocol; None where none are written.
        here: as the paper measured; None where it cannot be run, for the `reason`.
        honest: the same under the honest protocol; None where nothing is ranked.
        reason: why it cannot be run.
    """

    figures: tuple[Figure, ...]
    setup: Setup | None
    here: Asked | None = None
    honest: Asked | None = None
    reason: str = ""

    @property
    def one(self) -> Figure:
        """Any of its figures: paper, table, data and method are the same for all."""
        return self.figures[0]

    @property
    def main(self) -> bool:
        """Whether it stands in its paper's main table."""
        return self.one.number == MAIN[self.one.paper]

    @property
    def own(self) -> bool:
        """Whether the row is the paper's own system in its main table; PLGC stands there as a plug-in."""
        return self.main and (self.one.method == self.one.paper or self.one.method.endswith(f"+{self.one.paper}"))

    @property
    def noise(self) -> str:
        """What protects its uploads, as federation setting `privacy` says it; empty where nothing does."""
        privacy = BARE if self.here is None else self.here.experiment.federation.privacy
        return "" if privacy == BARE else privacy

    @property
    def group(self) -> str:
        """The range of interactions whose users it is about; empty for all of them."""
        return "" if self.setup is None or self.setup.inactive is None else str(self.setup.inactive)


@cache
def rows() -> tuple[LedgerRow, ...]:
    """All of them, paper by paper and table by table."""
    found: list[LedgerRow] = []
    for paper in CITATIONS:
        settings = settings_of(paper)
        lines = grouped(((one.table, one.data, one.method), one) for one in select(paper))
        found += [_row(tuple(group), settings.setup(group[0])) for group in lines.values()]
    return tuple(found)


def _row(figures: tuple[Figure, ...], setup: Setup | None) -> LedgerRow:
    if setup is None:
        return LedgerRow(figures, None, reason="no settings yet")
    if lacks := missing(setup):
        return LedgerRow(figures, setup, reason=f"needs {lacks}")
    honest = None if figures[0].candidates == "-" else _asked(setup, honest=True)
    return LedgerRow(figures, setup, _asked(setup, honest=False), honest)


def _asked(setup: Setup, *, honest: bool) -> Asked:
    return Asked.of(experiment(setup, setup.honest if honest else setup.protocol))


def chosen(
    papers: Collection[str], data: Collection[str], tables: Sequence[str] = (), *, noise: bool = False
) -> list[LedgerRow]:
    """Rows of some papers, tables and data; all where none are named.

    Args:
        papers: as `find_paper` spells them.
        data: datasets of the catalogue.
        tables: of those papers, as `select` knows them; one that a paper does not have is an error.
        noise: those alone whose uploads carry noise.
    """
    asked = {(one.paper, one.table) for paper in papers for one in select(paper, tables)}
    return [
        row
        for row in rows()
        if (not papers or (row.one.paper, row.one.table) in asked)
        and (not data or (row.setup is not None and row.setup.dataset in data))
        and (row.noise or not noise)
    ]


@cache
def without_noise() -> Mapping[str, Asked]:
    """By the name of every row that has noise on its uploads, the same without."""
    return {row.here.name: row.here.bare() for row in rows() if row.noise and row.here is not None}


def datasets() -> list[str]:
    """Those behind the published figures, by their names here."""
    return list(dict.fromkeys(row.setup.dataset for row in rows() if row.setup is not None))


@cache
def unseen() -> tuple[tuple[str, Asked], ...]:
    """What is run on data that no paper uses, by the row's name: the suite's runs of seed 0."""
    planned: Sequence[tuple[str, Experiment]] = [
        (one.row, one.experiment) for one in plan(load_suite(UNSEEN), Path()) if one.seed == 0
    ]
    return tuple((row, Asked.of(made)) for row, made in planned)
