"""The grid that every study is: rows of settings in layers, the runs they ask for, and the folders they are kept in.

A suite of `ownview bench` and the settings behind a paper's tables are two ways to write one down. A row's experiment
is made in layers: that of the row it is like, its own, and what it says of one dataset. A preset lies under all of
them. Tables of settings are merged, everything else is replaced.

Equal experiments share a folder, and finished runs are taken as they are: a set of runs that was stopped, or killed at
any moment, goes on by the same command.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ownview.base.files import make_folder
from ownview.base.lock import sole_worker
from ownview.config.layers import Layer, check, merged, require_known
from ownview.config.presets.loading import preset
from ownview.registry import offers_model, offers_plugin
from ownview.runs.batch import OnFailure, OnFinished, OnRunRound, Task, run_each
from ownview.runs.experiment import Experiment
from ownview.runs.files.folder import RunFolder
from ownview.runs.files.sources import sources


def folder_name(asked: Experiment, identity: Mapping[str, Any] | None = None) -> str:
    """Words for people and ten digits for the machine: equal experiments on equal files have equal names.

    What the user's own files hold is part of it: after an edit of a method or of a file of ratings the run has another
    name, and the old result is not taken for it.

    Args:
        asked: the experiment.
        identity: its `identity()`, where that is known already: making it takes most of the time.
    """
    words = f"{asked.label()}-{asked.data_label()}-{asked.protocol.name}-seed{asked.seed}"
    decides = {**(identity or asked.identity()), **sources(asked)}
    digits = hashlib.sha256(json.dumps(decides, sort_keys=True).encode()).hexdigest()[:10]
    return f"{re.sub(r'[^A-Za-z0-9._-]+', '-', words)}-{digits}"


def unfinished(work: Sequence[Task]) -> list[Task]:
    """What is not there yet, begun or not."""
    return [(made, folder) for made, folder in work if not RunFolder(folder).finished]


def carry_out(
    work: Sequence[Task],
    *,
    jobs: int,
    memory: str,
    data_dir: Path | None,
    on_round: OnRunRound,
    threads: int | None = None,
    on_finished: OnFinished | None = None,
    on_failure: OnFailure | None = None,
) -> dict[Path, str]:
    """Run what is not there yet; the folders of runs that failed, and why.

    Args:
        work: every run once, all in one folder, locked against other processes.
        jobs: runs side by side.
        memory: for each of them.
        data_dir: where datasets are.
        on_round: called after every round of every run.
        threads: of each run; an equal share of the cores where None.
        on_finished: called for every run once it has finished; may remove its folder.
        on_failure: called for every run that fails by itself, while the others go on.
    """
    failures: dict[Path, str] = {}

    def failed(folder: Path, reason: str) -> None:
        failures[folder] = reason
        if on_failure is not None:
            on_failure(folder, reason)

    place = work[0][1].parent
    make_folder(place)
    with sole_worker(place):
        run_each(
            work, jobs=jobs, memory=memory, data_dir=data_dir, on_round=on_round, on_failure=failed,
            on_finished=on_finished, threads=threads, go_on="the same command goes on",
        )  # fmt: skip
    return failures


def carry_out_in_order(
    planned: Sequence[Planned], carry: Callable[[Sequence[Task]], dict[Path, str]]
) -> dict[Path, str]:
    """Runs that train, then those that blend them; the folders of runs that failed, and why.

    Args:
        planned: in any order.
        carry: carries out some of them, as `carry_out` does.
    """
    failures = carry(each_once((one.experiment, one.folder) for one in planned if not one.parts))
    ready = []
    for one in planned:
        lost = [part for part in one.parts if part.folder in failures]
        if lost:
            failures[one.folder] = f"it blends {lost[0].row}, which failed: {failures[lost[0].folder]}"
        elif one.parts:
            ready.append((one.experiment, one.folder))
    return failures | (carry(each_once(ready)) if ready else {})


LAYER: dict[str, type] = {
    "method": str, "settings": Mapping, "plugins": list, "federation": Mapping, "rounds": int, "measure_every": int,
    "inactive": str, "preset": str, "settings_tried": int, "tried_on": str,
}  # fmt: skip
"""What a layer may say, and the kinds of values."""


@dataclass(frozen=True)
class Row:
    """A row of a table.

    Args:
        name: what the table calls it.
        experiment: its own layer.
        data: by dataset, what differs there.
        like: the row whose layers lie under these.
        tables: of a paper that have the row; a suite is one table and names none.
    """

    name: str
    experiment: Layer
    data: Mapping[str, Layer]
    like: Row | None = None
    tables: tuple[str, ...] = ()

    def layer(self, data: str) -> Layer:
        """All layers on one dataset, merged."""
        below = {} if self.like is None else self.like.layer(data)
        return merged([below, self.experiment, self.data.get(data, {})])

    def on(self, data: str, rounds: int) -> Layer:
        """What an experiment file would say; `rounds` where no layer says other."""
        layer = dict(self.layer(data))
        name = layer.pop("preset", None)
        found = {} if name is None else preset(str(layer["method"]), name, data).experiment()
        return merged([{"rounds": rounds}, found, layer])

    def require_sound(self, labels: Collection[str], owner: str, source: str) -> None:
        """Refuse layers that say unknown things, or are about data that `owner` ("the suite") does not have."""
        where = f"{source}: row {self.name}"
        check(self.experiment, LAYER, f"{where}, experiment")
        for label, layer in self.data.items():
            require_known(label, labels, f"{where}: {owner} has no data {label!r}")
            check(layer, LAYER, f"{where}, data {label}")


@dataclass(frozen=True)
class Planned:
    """One run of a grid.

    Args:
        row: it belongs to.
        experiment: what to do.
        folder: where.
        parts: runs that must be finished before it begins, because it blends their models.
    """

    row: str
    experiment: Experiment
    folder: Path
    parts: tuple[Planned, ...] = ()

    @property
    def data(self) -> str:
        """What tables call the data."""
        return self.experiment.data_label()

    @property
    def protocol(self) -> str:
        """The protocol's name."""
        return self.experiment.protocol.name

    @property
    def seed(self) -> int:
        """Seed of the run."""
        return self.experiment.seed


def task(asked: Experiment, runs: Path, seed: int, rounds: int | None, device: str) -> Task:
    """One seed of what is asked for, kept under its configuration in `runs`; `rounds` instead of its own."""
    made = replace(asked, seed=seed, rounds=rounds or asked.rounds, device=device)
    return made, runs / folder_name(made)


def each_once(every: Iterable[Task]) -> list[Task]:
    """Every run once, however many rows need it."""
    return list({folder: (made, folder) for made, folder in every}.values())


def lacking(layers: Iterable[Layer]) -> list[tuple[str, str]]:
    """Kind and name of methods and plug-ins that the layers name and this version does not have, each once."""
    every = list(layers)
    methods = [("method", str(layer["method"])) for layer in every if "method" in layer]
    plugins = [one.get("name") for layer in every for one in layer.get("plugins", []) if isinstance(one, Mapping)]
    found = [one for one in methods if not one[1].endswith(".py") and not offers_model(one[1])]
    return list(dict.fromkeys([*found, *(("plug-in", str(name)) for name in plugins if not offers_plugin(str(name)))]))
