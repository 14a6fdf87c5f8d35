"""The figures the papers print: facts, one a row of published.csv, and how a person names them."""

from __future__ import annotations

import csv
import importlib.resources
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache

from ownview.base.errors import SettingError, suggestion

CITATIONS = {
    "PFedRec": "Zhang et al., Dual Personalization on Federated Recommendation, IJCAI 2023",
    "FedRAP": "Li, Long and Zhou, Federated Recommendation with Additive Personalization, ICLR 2024",
    "PFedCLR": "Beyond Personalization: Federated Recommendation with Calibration via Low-rank Decomposition",
    "FedEM": "Breaking the Aggregation Bottleneck in Federated Recommendation: A Personalized Model Merging Approach",
    "PLGC": "A Model-agnostic Strategy to Mitigate Embedding Degradation in Personalized Federated Recommendation",
}
"""The papers, in the order they are listed."""


@dataclass(frozen=True)
class Figure:
    """One published number.

    Args:
        paper: as in `CITATIONS`.
        table: its number and, where it needs one, a few words: "8 full ranking".
        candidates: what the held-out item was ranked against: sampled-99, full, or - where nothing was ranked.
        data: the paper's dataset; "amazon-instant-video>=10" is a dataset with a filter of its own.
        method: as the paper calls the row.
        metric: HR@10, NDCG@10, HR@5, NDCG@5, client MB, server MB, max client + server s.
        value: a share between 0 and 1, or the unit that the metric names.
    """

    paper: str
    table: str
    candidates: str
    data: str
    method: str
    metric: str
    value: float

    @property
    def number(self) -> str:
        """The table's number: what --table asks for."""
        return self.table.split(" ", maxsplit=1)[0]


@cache
def figures() -> tuple[Figure, ...]:
    """Every published figure, in the order of the file."""
    text = (importlib.resources.files("ownview.studies.reproduction") / "published.csv").read_text(encoding="utf-8")
    return tuple(
        Figure(
            row["paper"], row["table"], row["candidates"], row["dataset"], row["method"], row["metric"],
            float(row["value"]),
        )
        for row in csv.DictReader(text.splitlines())
    )  # fmt: skip


def find_paper(name: str) -> str:
    """A paper as `CITATIONS` spells it, whatever its capital letters."""
    return _one_of("paper", name, {paper.lower(): paper for paper in CITATIONS})


def select(paper: str, tables: Sequence[str] = (), data: Sequence[str] = ()) -> tuple[Figure, ...]:
    """A paper's figures, table by table.

    Args:
        paper: as `find_paper` returns it.
        tables: numbers ("8"), whole names ("8 full ranking"), or one of a printed pair ("3" for 3-4); all where empty.
        data: the paper's datasets or, for one with a filter of its own, the name before ">="; all where empty.

    Raises:
        SettingError: a table or dataset that is not there; tells the nearest and lists all.
    """
    found = [figure for figure in figures() if figure.paper == paper]
    if tables:
        known = _table_names(found)
        asked = {_one_of(f"table of {paper}", name, known) for name in tables}
        found = [figure for figure in found if figure.table in asked]
    if data:
        labels = {alias: figure.data for figure in found for alias in (figure.data.split(">=")[0], figure.data)}
        where = f"data of {paper}" + (f", table {', '.join(tables)}" if tables else "")
        asked = {_one_of(where, name, labels) for name in data}
        found = [figure for figure in found if figure.data in asked]
    order = _in_order(figure.number for figure in found)
    return tuple(sorted(found, key=lambda figure: order.index(figure.number)))


def _table_names(found: Iterable[Figure]) -> dict[str, str]:
    """Every way to name a table, in small letters, and the table it means; its number first."""
    known: dict[str, str] = {}
    for figure in found:
        for alias in (figure.number, *figure.number.split("-"), figure.table):
            known.setdefault(alias.lower(), figure.table)
    return known


def _in_order(numbers: Iterable[str]) -> list[str]:
    """1, 2, 10 rather than 1, 10, 2; Roman numbers as they come."""

    def place(number: str) -> tuple[int, int]:
        first = number.split("-", maxsplit=1)[0]
        return (int(first), 0) if first.isdigit() else (0, 0)

    return sorted(dict.fromkeys(numbers), key=place)


def _one_of(kind: str, name: str, known: dict[str, str]) -> str:
    if name.lower() in known:
        return known[name.lower()]
    near = suggestion(name, known)
    near = near if "did you mean" in near else ""
    raise SettingError(f"unknown {kind}: {name!r}{near}; choose from {', '.join(dict.fromkeys(known.values()))}")
