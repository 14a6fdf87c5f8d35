"""A benchmark suite: rows of methods, datasets, protocols and seeds, read from TOML.

title = "A first look"
about = "What it is for, in a sentence."
rounds = 30
seeds = 3                               # 0, 1 and 2
protocols = ["honest", "paper"]
metrics = ["recall@20"]                 # in which rows are compared too, beside HR@10 and NDCG@10
data = ["ml-100k", "filmtrust"]         # or files; paths begin in the folder of the suite's own file

[[rows]]
name = "fedem"                          # what tables call it; the method and its plug-ins where not given
method = "fedem"                        # settings, plugins, federation and rounds as in an experiment file
settings = { merged_rows = "trained" }
preset = "tuned"                        # settings found for the method, under those of the row
protocols = ["honest"]                  # some of the suite's, for a row that is not measured under all
only = ["ml-100k"]                      # some of the suite's data, for a row that asks for more than others have
seeds = 1                               # fewer than the suite's, for a row that is the same with every seed
beside = "fedease"                      # a row that this one is compared with besides the best of the table
[rows.data.ml-100k]                     # what differs on one dataset
settings = { alpha = 1.1 }

[[rows]]
name = "both"
blends = ["fedem", "fedease"]           # instead of a method: the finished models of other rows, blended at home
every_seed = ["fedem"]                  # of these the models of all seeds are parts, not that of its own alone
"""

from __future__ import annotations

import importlib.resources
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import Any

from ownview.base.errors import DataError, SettingError, UnknownNameError
from ownview.blends.blend import Blend
from ownview.config.layers import Layer, check, parse_toml, require_known, toml_text
from ownview.data.datasets.catalog import not_here, require_data_dir
from ownview.evaluation.metrics import BY_CUTOFF
from ownview.evaluation.named_protocols import protocol as protocol_by_name
from ownview.runs.batch import MOST_SEEDS
from ownview.runs.blended_runs import blend_beside
from ownview.runs.experiment import Experiment
from ownview.studies.bench.files import files_beside, with_files_beside
from ownview.studies.grid import LAYER, Planned, Row, lacking, task

_ROW: dict[str, type] = {
    "name": str, "data": Mapping, "blends": list, "protocols": list, "only": list, "seeds": int, "beside": str,
    "every_seed": list, **LAYER,
}  # fmt: skip
_FILE: dict[str, type] = {
    "title": str, "about": str, "rounds": int, "seeds": int, "protocols": list, "metrics": list, "data": list,
    "rows": list,
}  # fmt: skip


@dataclass(frozen=True)
class SuiteRow(Row):
    """A row of a suite.

    Args:
        protocols: of the suite that it is measured under.
        only: data of the suite that it is measured on.
        seeds: 0, 1, ... up to this number.
        blends: names of the rows whose finished models it blends; none for a row that trains.
        every_seed: those of them whose models of all seeds are parts.
        beside: name of the row that it is compared with besides the best; empty for none.
    """

    protocols: tuple[str, ...] = ()
    only: tuple[str, ...] = ()
    seeds: int = 1
    blends: tuple[str, ...] = ()
    every_seed: tuple[str, ...] = ()
    beside: str = ""


@dataclass(frozen=True)
class Suite:
    """A grid.

    Args:
        name: of the file, without folder and ending.
        title: for people.
        about: what it is for.
        rounds: of rows that say nothing else.
        seeds: 0, 1, ... up to this number.
        protocols: names, or .toml files.
        data: names of datasets, or files.
        rows: one a method.
        files: by how `data` and `protocols` name it, where a file lies: beside the suite's own.
        file: its own file as the command named it, of a full path the name alone; empty where it comes with Ownview.
        metrics: in which rows are compared, beside those that every table has.
    """

    name: str
    title: str
    about: str
    rounds: int
    seeds: int
    protocols: tuple[str, ...]
    data: tuple[str, ...]
    rows: tuple[SuiteRow, ...]
    files: Mapping[str, str] = field(default_factory=dict)
    file: str = ""
    metrics: tuple[str, ...] = ()

    def row(self, name: str) -> SuiteRow:
        """By name."""
        return next(row for row in self.rows if row.name == name)

    def label(self, data: str) -> str:
        """What tables call a dataset or a file of `data`."""
        return Path(self.files[data]).name if data in self.files else data

    def experiment(self, row: Row, data: str, protocol: str) -> Experiment:
        """What a row asks for on some data under a protocol."""
        asked, under = (self.files.get(name, name) for name in (data, protocol))
        made = {**row.on(data, self.rounds), "data": asked, "protocol": under}
        experiment = Experiment.from_dict(made, f"suite {self.name}, row {row.name}")
        experiment.model()
        return experiment


def suites() -> list[Suite]:
    """Those that come with Ownview, by name."""
    files = importlib.resources.files("ownview.studies") / "suites"
    found = [(file.name, file.read_text(encoding="utf-8")) for file in files.iterdir() if file.name.endswith(".toml")]
    return [parse(text, name.removesuffix(".toml"), name) for name, text in sorted(found)]


def load_suite(name: str) -> Suite:
    """A suite by name, or from a .toml file."""
    if name.endswith(".toml"):
        path = Path(name)
        return parse(toml_text(path, "suite"), path.stem, name, path.resolve().parent)
    known = {suite.name: suite for suite in suites()}
    if name not in known:
        raise UnknownNameError("suite", name, [*known, "a .toml file"])
    return known[name]


def parse(text: str, name: str, source: str, folder: Path | None = None) -> Suite:
    """Read a suite; `source` names it in errors, and paths in it begin in `folder`, that of its file.

    Raises:
        SettingError: not TOML, an unknown or missing entry, rows of one name, or names this version does not have (all
            of them are listed).
    """
    values = parse_toml(text, source)
    check(values, _FILE, source)
    protocols, data = (_texts(values, key, source) for key in ("protocols", "data"))
    rounds, seeds = values.get("rounds", 100), values.get("seeds", 1)
    if rounds < 1:
        raise SettingError(f"{source}: rounds = {rounds}: expected a whole number at least 1")
    if not 1 <= seeds <= MOST_SEEDS:
        raise SettingError(f"{source}: seeds = {seeds}: expected a whole number from 1 to {MOST_SEEDS:,}")
    files = {} if folder is None else files_beside([*data, *protocols], folder)
    given = [one if folder is None else with_files_beside(one, folder) for one in values.get("rows", [])]
    rows = tuple(_row(one, source, data, protocols, seeds) for one in given)
    if not rows:
        raise SettingError(f"{source}: expected [[rows]], one for every method")
    names = [row.name for row in rows]
    if twice := sorted({one for one in names if names.count(one) > 1}):
        raise SettingError(f"{source}: two rows are called {twice[0]!r}; give one of them another name")
    asked = [protocol_by_name(files.get(one, one)) for one in protocols]
    metrics = _texts(values, "metrics", source) if "metrics" in values else ()
    for protocol, one in zip(protocols, asked, strict=True):
        known = [f"{name}@{cut}" for cut in one.cutoffs for name in BY_CUTOFF]
        for metric in metrics:
            require_known(metric, known, f"{source}: metrics: {metric!r} is not measured under {protocol}")
    _require_known(rows, source)
    _require_blends(rows, source)
    for row in rows:
        if row.beside:
            require_known(row.beside, set(names) - {row.name}, f"{source}: row {row.name}: no other row {row.beside!r}")
    about = values.get("title", name), values.get("about", "")
    file = "" if folder is None else source if not Path(source).is_absolute() else Path(source).name
    made = Suite(name, *about, rounds, seeds, protocols, data, rows, files, file, metrics)
    labels = [made.label(one) for one in data]
    if twice := sorted({one for one in labels if labels.count(one) > 1}):
        raise SettingError(f"{source}: two of data are called {twice[0]!r} in tables; rename one of the files")
    return made


def _row(values: Any, source: str, data: tuple[str, ...], protocols: tuple[str, ...], seeds: int) -> SuiteRow:
    check(values, _ROW, f"{source}: a row")
    if "blends" in values:
        values = {"method": Blend.name, **values}
    method = values.get("method")
    if method is None:
        raise SettingError(f"{source}: a row has no method; expected method = 'pfedrec', say")
    plugins = [str(one.get("name", "")) if isinstance(one, Mapping) else str(one) for one in values.get("plugins", [])]
    name = values.get("name", " + ".join([Path(method).stem if method.endswith(".py") else method, *plugins]))
    mine = _texts(values, "protocols", f"{source}: row {name}") if "protocols" in values else protocols
    only = _texts(values, "only", f"{source}: row {name}") if "only" in values else data
    for what, asked, known in (("protocol", mine, protocols), ("data", only, data)):
        for one in asked:
            require_known(one, known, f"{source}: row {name}: the suite has no {what} {one!r}")
    own = values.get("seeds", seeds)
    if not 1 <= own <= seeds:
        raise SettingError(f"{source}: row {name}: seeds = {own}: expected 1 to {seeds}, the suite's")
    blends = _texts(values, "blends", f"{source}: row {name}") if "blends" in values else ()
    every_seed = _texts(values, "every_seed", f"{source}: row {name}") if "every_seed" in values else ()
    for one in every_seed:
        require_known(one, blends, f"{source}: row {name}: every_seed names {one!r}, which it does not blend")
    layer = {key: values[key] for key in values if key in LAYER}
    row = SuiteRow(
        name,
        layer,
        values.get("data", {}),
        protocols=mine,
        only=only,
        seeds=own,
        blends=blends,
        every_seed=every_seed,
        beside=values.get("beside", ""),
    )
    row.require_sound(data, "the suite", source)
    return row


def _require_blends(rows: Sequence[SuiteRow], source: str) -> None:
    """A row blends rows that train, under protocols that all of them have."""
    trains = {row.name: row for row in rows if not row.blends}
    for row in rows:
        for name in row.blends:
            require_known(name, trains, f"{source}: row {row.name}: there is no row {name!r} that trains")
            lacks = [one for one in row.protocols if one not in trains[name].protocols]
            if lacks:
                raise SettingError(
                    f"{source}: row {row.name} is asked under {lacks[0]}, {name}, which it blends, is not; "
                    "expected protocols that both have"
                )


def _texts(values: Layer, key: str, source: str) -> tuple[str, ...]:
    found = values.get(key, ["honest"] if key == "protocols" else ["goodbooks"])
    if not found or not all(isinstance(one, str) for one in found) or len(set(found)) < len(found):
        raise SettingError(f"{source}: {key} = {found!r}: expected a list of different names")
    return tuple(found)


def _require_known(rows: Sequence[Row], source: str) -> None:
    """One error for everything this version does not have."""
    found = lacking(layer for row in rows for layer in (row.experiment, *row.data.values()))
    if found:
        listed = ", ".join(f"{kind} {name!r}" for kind, name in found)
        raise SettingError(
            f"{source}: this version does not have {listed}; leave those rows out (`ownview ls methods`)"
        )


def part_of(
    suite: Suite, methods: Sequence[str], data: Sequence[str], seeds: int | None = None, protocols: Sequence[str] = ()
) -> Suite:
    """Rows of these names or methods, and rows they blend, on these data under these protocols; all where none is."""
    names = {row.name: {row.name, str(row.experiment["method"])} for row in suite.rows}
    every = set().union(*names.values())
    asked_and_known = (
        ("--method", methods, every), ("--data", data, [*suite.data, *map(suite.label, suite.data)]),
        ("--protocol", protocols, suite.protocols),
    )  # fmt: skip
    for option, asked, known in asked_and_known:
        for name in asked:
            require_known(name, known, f"{option} {name}: not in suite {suite.name}")
    asked_for = [row for row in suite.rows if not methods or names[row.name] & set(methods)]
    needed = {name for row in asked_for for name in (row.name, *row.blends)}
    number = seeds or suite.seeds
    rows = tuple(
        replace(row, seeds=number if row.seeds == suite.seeds else min(row.seeds, number))
        for row in suite.rows
        if row.name in needed
    )
    chosen = tuple(one for one in suite.data if not data or one in data or suite.label(one) in data)
    under = tuple(one for one in suite.protocols if not protocols or one in protocols)
    return replace(suite, rows=rows, data=chosen, seeds=number, protocols=under)


def plan(suite: Suite, runs: Path, rounds: int | None = None, device: str = "auto") -> list[Planned]:
    """Every run once: by dataset, then by seed, so that what a stopped suite has can be compared."""
    return [
        _planned(suite, row, data, protocol, seed, runs, rounds, device)
        for data, seed, row, protocol in asked_of(suite)
    ]


def asked_of(suite: Suite) -> list[tuple[str, int, SuiteRow, str]]:
    """Data, seed, row and protocol of every run."""
    every = product(suite.data, range(suite.seeds), suite.rows, suite.protocols)
    return [one for one in every if one[1] < one[2].seeds and one[3] in one[2].protocols and one[0] in one[2].only]


def _planned(
    suite: Suite, row: SuiteRow, data: str, protocol: str, seed: int, runs: Path, rounds: int | None, device: str
) -> Planned:
    """One run, and those it blends: of the same seed, or of the last that a row with fewer has, or of every seed."""
    asked, parts = suite.experiment(row, data, protocol), []
    for name in row.blends:
        part = suite.row(name)
        for one in range(part.seeds) if name in row.every_seed else (min(seed, part.seeds - 1),):
            parts.append(_planned(suite, part, data, protocol, one, runs, rounds, device))
    if parts:
        asked = blend_beside(asked, [(one.experiment, one.folder.name) for one in parts])
    return Planned(row.name, *task(asked, runs, seed, rounds, device), parts=tuple(parts))


def require_data(planned: Sequence[Planned], data_dir: Path | None) -> None:
    """One error for all datasets that are not here."""
    require_data_dir(data_dir)
    names = {one.data: one.experiment.data for one in planned}
    absent = {name: why for name, asked in names.items() if (why := not_here(asked, data_dir)) is not None}
    if absent:
        how = "; ".join(f"{names[name]}: {why}" for name, why in absent.items())
        present = " ".join(f"--data {name}" for name in names if name not in absent)
        raise DataError(f"data not found: {how}" + (f"; or run the rest with {present}" if present else ""))
