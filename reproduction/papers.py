"""The papers: the figures they print, one a row of published.csv, and the settings behind every row.

settings/PAPER.toml has a grid a paper, with a reason for every choice: `[[rows]]` name the row they are `like`, their
own `experiment`, and what differs under `data`.
"""

from __future__ import annotations

import csv
import importlib.resources
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from ownview.base.errors import SettingError, suggestion
from ownview.config.layers import Layer, check, parse_toml, require_known
from ownview.data.datasets.catalog import catalog, min_interactions
from ownview.evaluation.groups import ActivityRange
from ownview.evaluation.named_protocols import HONEST, custom
from ownview.evaluation.protocol import Protocol
from ownview.studies.grid import Row

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
    text = (importlib.resources.files("reproduction") / "published.csv").read_text(encoding="utf-8")
    _, *rows = csv.reader(text.splitlines())
    return tuple(
        Figure(paper, table, candidates, data, method, metric, float(value))
        for paper, table, candidates, data, method, metric, value in rows
    )


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
        SettingError: a table or dataset that is not there; names the nearest and lists all.
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
    return tuple(sorted(found, key=lambda figure: _place(figure.number)))


def _table_names(found: Iterable[Figure]) -> dict[str, str]:
    """Every way to name a table, in small letters, and the table it means; its number first."""
    known: dict[str, str] = {}
    for figure in found:
        for alias in (figure.number, *figure.number.split("-"), figure.table):
            known.setdefault(alias.lower(), figure.table)
    return known


def _place(number: str) -> int:
    """1, 2, 10 rather than 1, 10, 2; Roman numbers as they come."""
    first = number.split("-", maxsplit=1)[0]
    return int(first) if first.isdigit() else 0


def _one_of(kind: str, name: str, known: dict[str, str]) -> str:
    if name.lower() in known:
        return known[name.lower()]
    near = suggestion(name, known)
    near = near if "did you mean" in near else ""
    raise SettingError(f"unknown {kind}: {name!r}{near}; choose from {', '.join(dict.fromkeys(known.values()))}")


_ROW: dict[str, type] = {"tables": list, "method": str, "like": str, "experiment": Mapping, "data": Mapping}
_FILE: dict[str, type] = {"rounds": int, "protocol": Mapping, "data": Mapping, "tables": Mapping, "rows": list}


@dataclass(frozen=True)
class DataChoice:
    """What the paper's dataset is here, and the fewest rows a user needs."""

    dataset: str
    min_interactions: int


@dataclass(frozen=True)
class Setup:
    """What one published row needs on one dataset.

    Args:
        experiment: method, settings, plugins, federation and rounds, as an experiment file writes them.
        dataset: its name in the catalogue.
        protocol: how the paper measured.
        honest: the honest protocol with the paper's filter of users.
        inactive: the row is about users with so many interactions.
    """

    experiment: Layer
    dataset: str
    protocol: Protocol
    honest: Protocol
    inactive: ActivityRange | None = None


@dataclass(frozen=True)
class PaperSettings:
    """A settings file.

    Args:
        source: its name, for errors.
        rounds: of rows that say nothing else.
        protocols: by the table's number, how it was measured.
        data: by the paper's name of the dataset.
        rows: by the paper's name of the method.
    """

    source: str
    rounds: int
    protocols: Mapping[str, Protocol]
    data: Mapping[str, DataChoice]
    rows: Mapping[str, Row]

    def setup(self, figure: Figure) -> Setup | None:
        """What the figure's row needs; None where no settings are written for it."""
        row = self.rows.get(figure.method)
        if row is None or figure.number not in row.tables:
            return None
        layer = dict(row.on(figure.data, self.rounds))
        choice = self.data[figure.data]
        inactive = layer.pop("inactive", None)
        return Setup(
            experiment=layer,
            dataset=choice.dataset,
            protocol=_filtered(self.protocols[figure.number], choice),
            honest=_filtered(HONEST, choice),
            inactive=None if inactive is None else self._inactive(inactive, row.name),
        )

    def _inactive(self, text: str, row: str) -> ActivityRange:
        try:
            return ActivityRange.parse(text)
        except SettingError as error:
            raise SettingError(f"{self.source}: row {row}: {error}") from None


@cache
def settings_of(paper: str) -> PaperSettings:
    """The settings that come with Ownview."""
    file = importlib.resources.files("reproduction") / "settings" / f"{paper.lower()}.toml"
    return parse(file.read_text(encoding="utf-8"), f"{paper.lower()}.toml", [f for f in figures() if f.paper == paper])


def parse(text: str, source: str, published: Iterable[Figure]) -> PaperSettings:
    """Read a settings file and hold it against the figures it is about.

    Raises:
        SettingError: not TOML, an unknown or missing entry, or a row that the paper does not have.
    """
    values = parse_toml(text, source)
    check(values, _FILE, source)
    published = list(published)
    data = {label: _data_choice(label, choice, source) for label, choice in values.get("data", {}).items()}
    for label in dict.fromkeys(figure.data for figure in published):
        if label not in data:
            raise SettingError(f"{source}: expected [data.{label!r}], which the paper has")
    rows: dict[str, Row] = {}
    for one in values.get("rows", []):
        row = _row(one, source, published, rows)
        rows[row.name] = row
    return PaperSettings(source, values.get("rounds", 100), _protocols(values, source, published), data, rows)


def _row(values: Layer, source: str, published: Iterable[Figure], before: Mapping[str, Row]) -> Row:
    check(values, _ROW, f"{source}: a row")
    method = values.get("method", "")
    where = f"{source}: row {method}"
    in_paper = {(figure.number, figure.method): figure.data for figure in published}
    known = {name for _, name in in_paper}
    require_known(method, known, f"{source}: the paper has no row {method!r}")
    if method in before:
        raise SettingError(f"{where} stands twice")
    numbers = [number for number, name in in_paper if name == method]
    for table in values.get("tables", []):
        if table not in numbers:
            raise SettingError(f"{where}: not in table {table!r} of the paper{suggestion(str(table), numbers)}")
    like = values.get("like")
    if like is not None:
        require_known(like, before, f"{where}: like = {like!r} names no earlier row")
    experiment = values.get("experiment", {})
    before_it = None if like is None else before[like]
    row = Row(method, experiment, values.get("data", {}), before_it, tuple(values.get("tables", [])))
    row.require_sound({figure.data for figure in published}, "the paper", source)
    if "method" not in experiment and like is None:
        raise SettingError(f"{where}: expected experiment = {{ method = ... }} or like = ...")
    return row


def _data_choice(label: str, values: Any, source: str) -> DataChoice:
    check(values, {"dataset": str, "min_interactions": int}, f"{source}: data {label}")
    name = values.get("dataset", label)
    require_known(name, catalog(), f"{source}: data {label}: unknown dataset {name!r}")
    return DataChoice(name, values.get("min_interactions", _usual_filter(name)))


def _protocols(values: Layer, source: str, published: Iterable[Figure]) -> dict[str, Protocol]:
    """The paper's way to measure and, for some tables, what they change of it."""
    changed: Mapping[str, Any] = values.get("tables", {})
    numbers = dict.fromkeys(figure.number for figure in published)
    for number, table in changed.items():
        require_known(number, numbers, f"{source}: the paper has no table {number!r}")
        check(table, {"protocol": Mapping}, f"{source}: table {number}")
    usual = {"base": "paper", **values.get("protocol", {})}
    every = {number: {**usual, **changed.get(number, {}).get("protocol", {})} for number in numbers}
    return {number: custom(measured, str(measured["base"])) for number, measured in every.items()}


def _filtered(protocol: Protocol, choice: DataChoice) -> Protocol:
    """With the paper's filter of users, where that is not the dataset's usual one."""
    if choice.min_interactions == _usual_filter(choice.dataset):
        return protocol
    fewest = choice.min_interactions
    return replace(protocol, name=f"{protocol.name}-from-{fewest}", min_interactions=fewest)


def _usual_filter(dataset: str) -> int:
    return min_interactions(dataset) or 0
