"""Studies from Python: the same words as the commands `tune`, `bench`, `blend` and `audit`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ownview.base.arguments import kind_of, kinds_checked
from ownview.base.errors import SettingError, TrainingError
from ownview.base.files import temporary_folder
from ownview.base.trust import named_by_user
from ownview.config.settings import Value
from ownview.data.datasets.catalog import load, min_interactions
from ownview.data.interactions import Interactions
from ownview.evaluation.findings import Finding
from ownview.evaluation.named_protocols import HONEST
from ownview.evaluation.probes import audit as probes_of
from ownview.evaluation.protocol import Protocol
from ownview.federation.options import FederationOptions
from ownview.runs.api import name_of, options_of, protocol_of
from ownview.runs.batch import free_cores
from ownview.runs.blended_runs import blend_of
from ownview.runs.experiment import Experiment
from ownview.runs.run import Run
from ownview.runs.run import run as run_experiment
from ownview.runs.table import Comparison
from ownview.studies.bench.results import tables
from ownview.studies.bench.running import carried_out, written
from ownview.studies.bench.suite import load_suite, part_of, plan, require_data
from ownview.studies.tuning.trials import Trial, TuningFolder, best_of
from ownview.studies.tuning.tune import METRICS, Tuning, searched
from ownview.studies.tuning.tune import tune as tune_settings


@dataclass(frozen=True, repr=False)
class Tuned:
    """What a tuning found.

    Args:
        experiment: what was asked, with the best settings.
        best: the trial that found them.
        trials: all, in the order they came.
        metric: on validation.
        folder: of the tuning: best.toml, suite.toml, trials.jsonl.
    """

    experiment: Experiment
    best: Trial
    trials: tuple[Trial, ...]
    metric: str
    folder: Path

    @property
    def settings(self) -> dict[str, Value]:
        """The best, for `ownview.run(METHOD, settings=...)`."""
        return dict(self.experiment.settings)

    def __repr__(self) -> str:
        found = ", ".join(f"{name}={value}" for name, value in self.best.settings.items())
        reached = "nothing" if self.best.value is None else f"{self.best.value:.4f}"
        return f"Tuned({self.experiment.label()}: validation {self.metric} {reached} with {found}; {self.folder})"


@kinds_checked("method", "data", "protocol", "federation")
def tune(  # noqa: PLR0913 - the same words as the command line
    method: str | Path,
    data: str | Path = "goodbooks",
    *,
    trials: int = 30,
    protocol: Protocol | str = HONEST,
    metric: str = METRICS[0],
    rounds: int = 100,
    measure_every: int = 1,
    seed: int = 0,
    search: Mapping[str, str | None] | None = None,
    settings: Mapping[str, Value] | None = None,
    federation: FederationOptions | Mapping[str, object] | None = None,
    pruner: str = "median",
    device: str = "auto",
    memory: str = "auto",
    out: str | Path | None = None,
) -> Tuned:
    """Find a method's best settings on validation; test is not looked at.

    Args:
        method: its name, or a .py file.
        data: a dataset's name or a file.
        trials: in all; with `out`, those of earlier calls included.
        protocol: how results are measured.
        metric: NDCG@10 or HR@10.
        rounds: of a whole trial.
        measure_every: rounds from one measurement to the next.
        seed: of the search and of every trial.
        search: by setting, LOW:HIGH[:log] or a,b,c; None for the space that it declares.
        settings: that are fixed.
        federation: who takes part and how the server combines.
        pruner: median, halving or none.
        device: auto, cpu or cuda.
        memory: what training may take.
        out: folder of the tuning; one that exists goes on. Without it a temporary one that goes with the process.
    """
    if not isinstance(method, str | Path):
        raise SettingError(f"tune: method is {kind_of(method)}; expected a name or a .py file")
    named_by_user(str(method))
    fixed = dict(settings or {})
    base = Experiment(
        method=str(method), data=name_of(data), settings=fixed, protocol=protocol_of(protocol), rounds=rounds,
        measure_every=measure_every, seed=seed, device=device, federation=options_of(federation),
    )  # fmt: skip
    asked = [name if space is None else f"{name}={space}" for name, space in (search or {}).items()]
    tuning = Tuning(base, searched(str(method), [], fixed, asked), trials, metric, pruner)
    folder = TuningFolder(temporary_folder() if out is None else Path(out))
    ended = tune_settings(tuning, folder, memory=memory)
    best = Experiment.load(folder.best)
    return Tuned(best, best_of(ended), tuple(ended), metric, folder.path)


@kinds_checked()
def bench(
    suite: str | Path,
    *,
    methods: Sequence[str] = (),
    data: Sequence[str] = (),
    protocols: Sequence[str] = (),
    seeds: int | None = None,
    rounds: int | None = None,
    jobs: int | None = None,
    device: str = "auto",
    memory: str = "auto",
    out: str | Path | None = None,
) -> list[Comparison]:
    """Run a suite of methods, datasets, protocols and seeds; one table a dataset.

    Args:
        suite: one that comes with Ownview, or a .toml file.
        methods: rows of the suite; all where none is named. Likewise `data` and `protocols`.
        data: datasets of the suite.
        protocols: of the suite.
        seeds: instead of the suite's number.
        rounds: instead of the suite's.
        jobs: runs side by side; as many as cores are free where None.
        device: auto, cpu or cuda.
        memory: for each run.
        out: folder of runs and results, where finished runs are taken up again; runs/bench/SUITE if None.
    """
    declared = load_suite(str(suite))
    folder = Path("runs") / "bench" / declared.name if out is None else Path(out)
    planned = plan(part_of(declared, methods, data, seeds, protocols), folder / "runs", rounds, device)
    require_data(planned, None)
    failures = carried_out(planned, jobs or free_cores(device), memory, None, lambda run, number, metrics: None)
    found = tables(written(declared, planned, failures, folder, None))
    if failures:
        place, why = next(iter(failures.items()))
        raise TrainingError(
            f"{len(failures)} of {len({one.folder for one in planned})} runs failed; {place.name}: {why}"
        )
    return found


@kinds_checked("runs", "like")
def blend(
    runs: Sequence[Run | str | Path],
    *,
    own: float = 0.0,
    like: Run | str | Path | None = None,
    memory: str = "auto",
    out: str | Path | None = None,
) -> Run:
    """Blend finished runs at home: standardised scores added up, weights by validation wins summed over clients.

    Args:
        runs: of the same data and protocol, or their folders.
        own: weight of own wins beside everybody's; 0 for the same weights for all.
        like: a measured blend of the same methods: its weights, for models of `ownview.fit`.
        memory: what it may take.
        out: folder for the run; without it a temporary one that goes with the process.
    """
    if isinstance(runs, str) or not isinstance(runs, Sequence) or not runs:
        found = "empty" if isinstance(runs, Sequence) and not runs else kind_of(runs)
        raise SettingError(f"runs is {found}; expected a list of runs or of their folders")
    experiment = blend_of([_folder(one) for one in runs], own, None if like is None else _folder(like))
    return run_experiment(experiment, out=None if out is None else Path(out), memory=memory)


@kinds_checked("data", "protocol")
def audit(
    data: Interactions | str | Path = "goodbooks", protocol: Protocol | str = HONEST, *, rounds: int = 100
) -> list[Finding]:
    """Probe a protocol on some data: leaks, repeated pairs, time, selection, and whether its ranking is sane.

    Args:
        data: interactions, or a dataset's name or file.
        protocol: how results would be measured.
        rounds: of negatives that the leak probe counts.
    """
    asked = protocol_of(protocol)
    source = data if isinstance(data, Interactions) else load(name_of(data))
    return probes_of(asked.prepare(source, min_interactions(name_of(data))), asked, rounds=rounds)


def _folder(one: Any) -> Path:
    if not isinstance(one, Run | str | Path):
        raise SettingError(f"a run came as {type(one).__name__}; expected a run or its folder")
    return one.folder.path if isinstance(one, Run) else Path(one)
