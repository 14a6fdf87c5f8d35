"""Run folders as the report sees them, which runs are seeds of each other, and what to call them.

Runs belong together when everything but the seed, the protocol and what was merely looked at is equal. Variants of one
method get as many of the settings in which they differ behind their name as tell them apart. What an older folder lacks
is None or empty.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from torch import Tensor

from ownview.base.errors import OutputError
from ownview.evaluation.findings import Finding
from ownview.evaluation.named_protocols import pooled
from ownview.evaluation.protocol import Protocol
from ownview.runs.experiment import Experiment
from ownview.runs.files.folder import no_such_run
from ownview.runs.findings.audits import kept
from ownview.runs.run import Run, open_run
from ownview.runs.summaries.sample_lists import misfit
from ownview.runs.table import grouped

Tensors = dict[str, Tensor]


class SeenRun(Run):
    """A finished run, read without its data and without its method; each of its files is read once."""

    @property
    def name(self) -> str:
        """The folder's name and that of its parent: enough to find it again, and no path of this machine."""
        path = self.folder.path.resolve()
        return f"{path.parent.name}/{path.name}"

    @cached_property
    def rounds(self) -> list[dict[str, Any]]:
        """Lines of rounds.jsonl."""
        return self.folder.read_rounds()

    @cached_property
    def provenance(self) -> dict[str, Any]:
        """Versions and data."""
        return self.folder.read_provenance()

    @cached_property
    def users(self) -> dict[str, list[str]]:
        """Columns of users.csv."""
        return self.folder.read_users()

    @cached_property
    def recommended(self) -> tuple[Tensors, dict[str, Any]] | None:
        """Lists of all users, and sample users; None for runs of versions that did not write them."""
        return self._tensors("recommended", misfit)

    @cached_property
    def watched(self) -> tuple[Tensors, dict[str, Any]] | None:
        """What watched clients hold; None where no client was watched."""
        return self._tensors("watched", _wrongly_watched)

    @cached_property
    def findings(self) -> list[Finding] | None:
        """What probes found about the data under the protocol; None where no comparison has had them at work."""
        return kept(self.folder, self.experiment)

    def _tensors(self, name: str, wrong_with: Callable[..., str | None]) -> tuple[Tensors, dict[str, Any]] | None:
        """The file's tensors and description; None without the file; an error where they do not hold together."""
        found = self.folder.read_tensors(name) if self.folder.has_tensors(name) else None
        if found is not None and (wrong := wrong_with(*found)):
            raise OutputError(f"{self.folder.path / f'{name}.safetensors'}: is damaged: {wrong}")
        return found


def _wrongly_watched(tensors: Tensors, about: Mapping[str, Any]) -> str | None:
    """What is wrong with the description of watched clients; None where all is well."""
    users, positions = about["users"], about.get("positions")
    if not users:
        return "it names no user"
    if positions is not None and len(positions) != len(users):
        return f"{len(positions)} positions of {len(users)} users"
    mixed = [value for name, value in tensors.items() if ".weights of " in name]
    if positions is not None and any(
        value.dim() != 1 or not 0 <= at < len(value) for value in mixed for at in positions
    ):
        return "a position beyond the clients whose uploads are mixed"
    return None


def read_run(path: Path) -> SeenRun:
    """A finished run's folder; others are refused with what to do."""
    opened = open_run(path)
    return SeenRun(opened.folder, opened.experiment, opened.result)


def find_runs(paths: list[Path]) -> list[Path]:
    """Run folders among the paths: a path that is no run itself stands for the runs right inside it.

    Raises:
        OutputError: a path is not there, or is neither a run nor holds one.
    """
    found: list[Path] = []
    for path in paths:
        if not path.exists():
            raise no_such_run(path)
        inside = [path] if _is_run(path) else sorted(one for one in path.glob("*") if _is_run(one))
        inside = inside or sorted(one for one in path.glob("runs/*") if _is_run(one))  # of a suite
        if not inside:
            raise OutputError(f"{path}: not a run folder, and none lies in it: expected experiment.toml there")
        found += inside
    return list({one.resolve(): one for one in found}.values())


def _is_run(path: Path) -> bool:
    return (path / "experiment.toml").is_file()


Settings = dict[str, Any]


@dataclass(frozen=True)
class Variant:
    """A method with its settings on one dataset; `runs` by what the page calls the protocol, seeds ascending.

    Cuts of one protocol are together, the protocol's own cut first.
    """

    label: str
    settings: Settings
    runs: dict[str, list[SeenRun]] = field(default_factory=dict)


def variants(runs: Sequence[SeenRun], names: Mapping[Protocol, str]) -> list[Variant]:
    """All variants of one dataset in the order they first come.

    Args:
        runs: on the same data.
        names: of the protocols.
    """
    by_seed = sorted(runs, key=_seed_and_cut)
    order = dict.fromkeys(json.dumps(settings_of(run.experiment), sort_keys=True) for run in runs)
    alike = grouped((json.dumps(settings_of(run.experiment), sort_keys=True), run) for run in by_seed)
    settings = [json.loads(key) for key in order]
    labels = _labels([alike[key][0].experiment.label() for key in order], settings)
    return [
        Variant(label, values, grouped((names[run.experiment.protocol], run) for run in alike[key]))
        for label, values, key in zip(labels, settings, order, strict=True)
    ]


def _seed_and_cut(run: SeenRun) -> tuple[int, bool, str]:
    name = run.experiment.protocol.name
    return run.experiment.seed, name != pooled(name), name


def settings_of(experiment: Experiment) -> Settings:
    """Everything that makes a method what it is, flat: settings, plug-ins' settings, federation, rounds."""
    values = experiment.to_dict()
    flat = {"method": experiment.label(), "rounds": values["rounds"], **values["settings"]}
    for plugin in values["plugins"]:
        flat |= {f"{plugin['name']}.{name}": value for name, value in plugin["settings"].items()}
    return flat | {f"federation.{name}": value for name, value in values["federation"].items()}


def protocol_names(runs: Iterable[SeenRun]) -> dict[Protocol, str]:
    """What the page calls every protocol: different ones that call themselves the same get a number.

    Cuts of one protocol have one name: they are pooled, as in all tables.
    """
    names: dict[Protocol, str] = {}
    for run in runs:
        protocol = run.experiment.protocol
        if protocol not in names:
            taken = sum(other.name == protocol.name for other in names)
            names[protocol] = pooled(protocol.name) if not taken else f"{protocol.name} ({taken + 1})"
    return names


def _labels(names: Sequence[str], settings: Sequence[Settings]) -> list[str]:
    labels = []
    for name, mine in zip(names, settings, strict=True):
        others = [values for other, values in zip(names, settings, strict=True) if other == name and values is not mine]
        # Runs of another version may have settings that this one has not, and the other way round.
        known = dict.fromkeys(key for values in (mine, *others) for key in values)
        differs = [key for key in known if any(other.get(key) != mine.get(key) for other in others)]
        enough = _enough(mine, others, differs)
        differing = [f"{key.removeprefix('federation.')}={_short(mine.get(key))}" for key in enough]
        differing += ["…"] if len(enough) < len(differs) else []
        labels.append(f"{name} ({', '.join(differing)})" if differing else name)
    return labels


def _enough(mine: Settings, others: Sequence[Settings], differs: Sequence[str]) -> list[str]:
    """Few settings that no other variant shares all of, the most telling first: names must fit into charts."""
    lines: list[str] = []
    while others:
        best = max(differs, key=lambda key: sum(other.get(key) != mine.get(key) for other in others))
        lines.append(best)
        others = [other for other in others if other.get(best) == mine.get(best)]
    return lines


def _short(value: Any) -> str:
    return "-".join(map(str, value)) if isinstance(value, list) else "unset" if value is None else str(value)
