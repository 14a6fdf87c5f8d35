"""One line a figure: what was published, what it is here over seeds, what it is worth honestly, and a verdict.

Verdicts go by the difference of the mean over seeds from the published figure; those of bytes and seconds by that
difference as a share of the published one. All seeds that were recorded count; none is chosen.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from ownview.engine.machine import TOO_LARGE
from ownview.runs.table import OverSeeds, grouped
from ownview.studies.bench.suite import load_suite
from ownview.studies.grid import folder_name
from reproduction.ledger.record import Entry, Record
from reproduction.ledger.rows import Asked, LedgerRow, rows, unseen
from reproduction.papers import Figure
from reproduction.plan import COSTS

NEAR, FAIR = 0.03, 0.05
"""How far a figure may lie from the published one."""


class Verdict(StrEnum):
    """How a figure came out."""

    NEAR = "within .03"
    FAIR = "within .05"
    LOWER = "lower"
    HIGHER = "higher"
    NOT_RUN = "not run yet"
    NO_DATA = "data not to be had"
    TOO_LARGE = "too large"
    FAILED = "failed"

    @property
    def ran(self) -> bool:
        """Whether there is a figure to judge."""
        return self in (Verdict.NEAR, Verdict.FAIR, Verdict.LOWER, Verdict.HIGHER)


@dataclass(frozen=True)
class Seeds:
    """A figure over seeds: the value of each, by number."""

    by_seed: Mapping[int, float]

    @property
    def over(self) -> OverSeeds:
        """Mean and spread."""
        return OverSeeds(tuple(self.by_seed[seed] for seed in sorted(self.by_seed)))

    def plain(self) -> dict[str, Any]:
        """For the file."""
        return {"mean": self.over.mean, "spread": self.over.spread, "seeds": sorted(self.by_seed)}


@dataclass(frozen=True)
class Line:
    """One published figure.

    Args:
        row: it stands in.
        figure: as published.
        here: as its paper measured.
        honest: the same settings under the honest protocol.
        verdict: how it came out.
        why: more words, where there is no figure.
    """

    row: LedgerRow
    figure: Figure
    here: Seeds | None
    honest: Seeds | None
    verdict: Verdict
    why: str = ""

    @property
    def difference(self) -> float | None:
        """Here minus published."""
        return None if self.here is None else self.here.over.mean - self.figure.value

    def plain(self) -> dict[str, Any]:
        """For the file."""
        one = self.figure
        about = {name: getattr(one, name) for name in ("paper", "table", "data", "method", "metric")}
        return {
            **about,
            "published": one.value,
            "here": self.here and self.here.plain(),
            "difference": self.difference,
            "honest": self.honest and self.honest.plain(),
            "verdict": str(self.verdict),
            "why": self.why,
        }


def names() -> list[str]:
    """Of everything the ledger asks for, in order; each once."""
    of_rows = [one.name for row in rows() for one in (row.here, row.honest) if one is not None]
    return list(dict.fromkeys([*of_rows, *(one.name for _, one in unseen())]))


def lines(record: Record, suites: Iterable[Mapping[str, Any]] = ()) -> list[Line]:
    """Every published figure.

    Args:
        record: of the ledger's own runs.
        suites: records of suites; runs of theirs that are what a row asks for count too, unless the ledger has them.
    """
    known = grouped((one["row"], one) for one in _all_runs(record, suites))
    left = grouped((one["row"], one) for one in record.left.values())
    return [_line(row, figure, record, known, left) for row in rows() for figure in row.figures]


@dataclass(frozen=True)
class UnseenLine:
    """A row on data that no paper uses, under one protocol."""

    row: str
    data: str
    protocol: str
    found: Mapping[str, Seeds]


def unseen_lines(record: Record) -> list[UnseenLine]:
    """All rows of the suite, run or not: by metric what they reach."""
    known = grouped((one["row"], one) for one in record.runs.values())
    return [
        UnseenLine(
            row,
            one.experiment.data,
            one.experiment.protocol.name,
            {metric: found for metric in ("HR@10", "NDCG@10") if (found := _seeds(one, metric, "", known)) is not None},
        )
        for row, one in unseen()
    ]


def _all_runs(record: Record, suites: Iterable[Mapping[str, Any]]) -> list[Entry]:
    own = list(record.runs.values())
    mine = {(one["row"], one["seed"]) for one in own}
    return own + [one for one in _of_suites(suites) if (one["row"], one["seed"]) not in mine]


def _of_suites(suites: Iterable[Mapping[str, Any]]) -> list[Entry]:
    """Runs of suites that a row asks for. Whatever is called otherwise is not looked at: names take time to make."""
    asked = set(names())
    words = {name.rpartition("-")[0] for name in asked}
    found = {}
    for document in suites:
        alike = [one for one in document["runs"] if re.sub(r"-seed\d+-[0-9a-f]+$", "-seed0", one["run"]) in words]
        if not alike or "file" in document:  # only suites that come with Ownview ask for rows of the ledger
            continue
        suite = load_suite(document["suite"])
        keys = dict.fromkeys((one["method"], one["data"], one["protocol"]) for one in alike)
        called = {key: folder_name(suite.experiment(suite.row(key[0]), *key[1:])) for key in keys}
        for one in alike:
            name = called[one["method"], one["data"], one["protocol"]]
            if name in asked:
                found[name, one["seed"]] = {**one, "row": name}
    return list(found.values())


def _line(
    row: LedgerRow,
    figure: Figure,
    record: Record,
    known: Mapping[str, Sequence[Entry]],
    left: Mapping[str, Sequence[Entry]],
) -> Line:
    here, honest = (_seeds(one, figure.metric, row.group, known) for one in (row.here, row.honest))
    if here is not None:
        return Line(row, figure, here, honest, verdict_of(figure, here.over.mean))
    if row.setup is not None and row.setup.dataset in record.not_found:
        return Line(row, figure, None, honest, Verdict.NO_DATA)
    if row.here is not None and (entries := left.get(row.here.name)):
        verdict = Verdict.TOO_LARGE if entries[0]["kind"] == "too large" else Verdict.FAILED
        return Line(row, figure, None, honest, verdict, _in_short(entries[0]["reason"]))
    return Line(row, figure, None, honest, Verdict.NOT_RUN, row.reason)


def verdict_of(figure: Figure, mean: float) -> Verdict:
    """By the difference, of bytes and seconds as a share of the published figure."""
    difference = mean - figure.value
    if figure.metric in COSTS:
        difference /= figure.value
    away = round(abs(difference), 6)  # 0.48 - 0.45 is not above 0.03
    if away <= NEAR:
        return Verdict.NEAR
    if away <= FAIR:
        return Verdict.FAIR
    return Verdict.LOWER if difference < 0 else Verdict.HIGHER


def _seeds(
    asked: Asked | None, metric: str, group: str, known: Mapping[str, Sequence[Entry]]
) -> Seeds | None:  # fmt: skip
    entries = [] if asked is None else known.get(asked.name, [])
    values = {one["seed"]: _value(one, metric, group) for one in entries}
    measured = {seed: value for seed, value in values.items() if value is not None}
    return Seeds(measured) if measured else None


def _value(one: Entry, metric: str, group: str) -> float | None:
    if metric in COSTS:
        return one.get("cost", {}).get(metric)  # type: ignore[no-any-return]
    if group:
        return one.get("groups", {}).get(group, {}).get(metric)  # type: ignore[no-any-return]
    return one["test"].get(metric)  # type: ignore[no-any-return]


def _in_short(reason: str) -> str:
    """What it needs, where it does not fit; else the whole reason."""
    needed, words, _ = reason.partition(f" {TOO_LARGE} ")
    return needed if words else reason
