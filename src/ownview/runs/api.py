"""The Python interface: the same words as the command line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path

from ownview.base.arguments import kind_of, kinds_checked
from ownview.base.errors import SettingError
from ownview.base.files import temporary_folder
from ownview.base.trust import named_by_user
from ownview.baselines.parts.central import Central
from ownview.blends.blend import Blend
from ownview.config.settings import Value
from ownview.data.interactions import Interactions
from ownview.evaluation.named_protocols import HONEST
from ownview.evaluation.named_protocols import protocol as protocol_by_name
from ownview.evaluation.protocol import Protocol
from ownview.federation.options import FederationOptions
from ownview.registry import MODELS, Model, build
from ownview.runs.batch import Task, run_all
from ownview.runs.experiment import Experiment, describe_model, require_whole
from ownview.runs.full_fit import fit_like, fit_of
from ownview.runs.loggers import Logger
from ownview.runs.run import OnRound, Run, open_run
from ownview.runs.run import run as run_experiment
from ownview.runs.table import Comparison
from ownview.seam.method import Federated


@kinds_checked("method", "data", "protocol", "federation", "rounds", "measure_every", "seed")
def run(  # noqa: PLR0913 - the same words as the command line
    method: Model | str,
    data: Interactions | str | Path = "goodbooks",
    *,
    settings: Mapping[str, Value] | None = None,
    protocol: Protocol | str = HONEST,
    rounds: int = 100,
    measure_every: int = 1,
    seed: int = 0,
    inactive: str = "",
    watch: Sequence[object] = (),
    federation: FederationOptions | Mapping[str, object] | None = None,
    engine: str = "vector",
    device: str = "auto",
    memory: str = "auto",
    out: str | Path | None = None,
    on_round: OnRound | None = None,
    loggers: Sequence[Logger] = (),
) -> Run:
    """Train a method on data and measure it.

    Args:
        method: a method such as `ownview.PFedRec()`, or its name, or a .py file.
        data: interactions, or a dataset's name or file.
        settings: of a method that is named, where they are not the defaults: {"learning_rate": 0.1}.
        protocol: how results are measured; honest unless said otherwise.
        rounds: of training.
        measure_every: rounds from one measurement of validation to the next.
        seed: equal seeds give equal results on one device.
        inactive: a range of interactions such as 20:30 (at least 20, fewer than 30) whose users get their own result.
        watch: users whose clients are watched closely; see `ownview.skew` and the run's watched.safetensors.
        federation: who takes part and how the server combines.
        engine: vector, or loop to run one client at a time.
        device: auto, cpu or cuda.
        memory: what training may take, such as 4GB.
        out: folder for the run; without it a temporary one that goes with the process.
        on_round: called with the round and its validation metrics, none where it was not measured.
        loggers: called when it begins, after every round, and when it has finished: `ownview.TensorBoard("folder")`, or
            anything with the methods of `ownview.Logger`.
    """
    experiment, model = experiment_of(method, data, settings)
    experiment = replace(
        experiment,
        protocol=protocol_of(protocol),
        inactive=inactive,
        watch=tuple(str(user) for user in watch),
        federation=options_of(federation),
        rounds=rounds,
        measure_every=measure_every,
        seed=seed,
        engine=engine,
        device=device,
    )
    return run_experiment(
        experiment,
        model=model,
        data=data if isinstance(data, Interactions) else None,
        out=None if out is None else Path(out),
        memory=memory,
        on_round=on_round,
        loggers=loggers,
    )


@kinds_checked("method", "data", "federation", "seed")
def fit(  # noqa: PLR0913 - the same words as the command line
    method: Model | str | None = None,
    data: Interactions | str | None = None,
    *,
    settings: Mapping[str, Value] | None = None,
    like: Run | str | Path | None = None,
    rounds: int | None = None,
    seed: int = 0,
    federation: FederationOptions | Mapping[str, object] | None = None,
    total: float | None = None,
    device: str = "auto",
    memory: str = "auto",
    out: str | Path | None = None,
    loggers: Sequence[Logger] = (),
) -> Run:
    """Train on everything, nothing held out: for recommending, without a test figure.

    Args:
        method: a method such as `ownview.PFedRec()`, or its name; None with `like`.
        data: interactions, or a dataset's name or file; None for that of `like`, else goodbooks.
        settings: of a method that is named, where they are not the defaults.
        like: a measured run or its folder: its method, settings, plug-ins, seed and federation, and the round it chose.
        rounds: of training; not needed for closed forms.
        seed: equal seeds give equal models on one device.
        federation: who takes part and how the server combines.
        total: under a budget: epsilon that all releases of these people together may reach from now on; what holds for
            them where None, at first the epsilon of their first release (docs/privacy.md).
        device: auto, cpu or cuda.
        memory: what training may take, such as 4GB.
        out: folder for the model; without it a temporary one that goes with the process.
        loggers: called when it begins, after every round, and when it has finished.
    """
    if (method is None) == (like is None):
        raise SettingError("fit: expected a method, or like=RUN, and not both")
    model: Model | None
    if like is not None:
        if rounds is not None or seed or federation is not None or settings is not None:
            raise SettingError(
                "fit: settings, rounds, seed and federation are those of the run with like=RUN; leave them out"
            )
        chosen = like if isinstance(like, Run) else open_run(like)
        model, data = chosen.model, chosen.data if data is None else data
        experiment = fit_like(chosen.folder.path, data=None if data is None else name_of(data), model=model)
    else:
        assert method is not None
        data = "goodbooks" if data is None else data
        experiment, model = experiment_of(method, data, settings)
        experiment = fit_of(replace(experiment, federation=options_of(federation), seed=seed), rounds, model)
    return run_experiment(
        replace(experiment, device=device),
        model=model,
        data=data if isinstance(data, Interactions) else None,
        out=None if out is None else Path(out),
        memory=memory,
        loggers=loggers,
        total=total,
    )


def experiment_of(
    method: Model | str, data: Interactions | str | Path, settings: Mapping[str, Value] | None = None
) -> tuple[Experiment, Model]:
    """A method on data, everything else by default, and the model itself; `SettingError` for other things."""
    if isinstance(method, type):
        raise SettingError(f"method is the class {method.__name__}; expected {method.__name__}(), with its settings")
    if not isinstance(method, str | Path | Federated | Central | Blend):
        raise SettingError(f"method is {kind_of(method)}; expected a method such as ownview.FedMF(), or a name or file")
    if isinstance(method, str | Path):
        named_by_user(str(method))
        model = build(str(method), settings or {})
        name, plain, plugins = describe_model(model)
        name = str(method) if str(method).endswith(".py") else name
    else:
        if settings is not None:
            name = type(method).__name__
            raise SettingError(f"settings go with a method's name; expected {name}(...) with them inside")
        model = method
        name, plain, plugins = describe_model(model)
    return Experiment(method=name, data=name_of(data), settings=plain, plugins=plugins), model


def name_of(data: Interactions | str | Path) -> str:
    """Of data in any of its forms; `SettingError` for other things."""
    if not isinstance(data, Interactions | str | Path):
        raise SettingError(
            f"data is {kind_of(data)}; expected a dataset's name, a file, or "
            "ownview.Interactions.from_rows(NAME, users, items)"
        )
    return data.name if isinstance(data, Interactions) else str(data)


def options_of(federation: FederationOptions | Mapping[str, object] | None) -> FederationOptions:
    """Options of a federation in any of their forms; `SettingError` for other things."""
    if federation is not None and not isinstance(federation, FederationOptions | Mapping):
        raise SettingError(f"federation is {kind_of(federation)}; expected settings by name: {{'clients': '0.3'}}")
    return federation if isinstance(federation, FederationOptions) else FederationOptions.of(federation or {})


def protocol_of(protocol: Protocol | str) -> Protocol:
    """A protocol, or that of a name or file; `SettingError` for other things."""
    if not isinstance(protocol, Protocol | str):
        raise SettingError(
            f"protocol is {kind_of(protocol)}; expected a name such as 'honest', a .toml file, or an ownview.Protocol"
        )
    return protocol_by_name(protocol) if isinstance(protocol, str) else protocol


@kinds_checked("methods", "data", "protocols", "rounds", "measure_every", "seeds", "federation", "jobs")
def compare(
    methods: Sequence[Model | str],
    data: Interactions | str | Path = "goodbooks",
    *,
    protocols: Sequence[Protocol | str] = (HONEST,),
    rounds: int = 100,
    measure_every: int = 1,
    seeds: int = 1,
    federation: FederationOptions | Mapping[str, object] | None = None,
    device: str = "auto",
    jobs: int = 1,
    memory: str = "auto",
    out: str | Path | None = None,
) -> Comparison:
    """Every method under every protocol with seeds 0 to `seeds` - 1, in one table.

    Args:
        methods: names, files or methods with settings; one may come several times.
        data: interactions, or a dataset's name or file.
        protocols: how results are measured.
        rounds: of training.
        measure_every: rounds from one measurement of validation to the next.
        seeds: of each method.
        federation: of those methods that are federated.
        device: auto, cpu or cuda.
        jobs: runs side by side, in processes of their own; they need data and methods by name or file.
        memory: what each run may take.
        out: folder for all runs; without it a temporary one that goes with the process.
    """
    if isinstance(methods, str) or not isinstance(methods, Sequence):
        raise SettingError(f"methods is {kind_of(methods)}; expected several: ['popularity', ownview.FedMF()]")
    if isinstance(protocols, str) or not isinstance(protocols, Sequence):
        raise SettingError(f"protocols is {kind_of(protocols)}; expected several: ['honest', 'paper']")
    if not methods or not protocols:
        raise SettingError(f"{'protocols' if methods else 'methods'} is empty; expected at least one")
    require_whole("seeds", seeds, 1)
    require_whole("jobs", jobs, 1)
    asked = [experiment_of(one, data) for one in methods]
    names = [Path(one.method).stem for one, _ in asked]
    # One method may come several times, with other settings each: the second goes to NAME-2.
    labels = [
        name if names.count(name) == 1 else f"{name}-{names[: k + 1].count(name)}" for k, name in enumerate(names)
    ]
    measured = [protocol_of(one) for one in protocols]
    folder = temporary_folder() if out is None else Path(out)
    tasks: list[tuple[Task, Model]] = []
    for protocol, (name, (plain, model)), seed in product(measured, zip(labels, asked, strict=True), range(seeds)):
        options = options_of(federation) if model.federated else FederationOptions()
        experiment = replace(
            plain, protocol=protocol, rounds=rounds, measure_every=measure_every, seed=seed, device=device,
            federation=options,
        )  # fmt: skip
        tasks.append(((experiment, folder / f"{name}-{protocol.name}-seed{seed}"), model))
    if jobs > 1:
        _require_named(asked, data)
        runs = run_all([task for task, _ in tasks], jobs=jobs, memory=memory, data_dir=None)
    else:
        given = data if isinstance(data, Interactions) else None
        runs = [
            run_experiment(experiment, model=model, data=given, out=place, memory=memory)
            for (experiment, place), model in tasks
        ]
    return Comparison.of(runs)


def _require_named(asked: Sequence[tuple[Experiment, Model]], data: Interactions | str | Path) -> None:
    """Refuse what only this process has, where other processes train."""
    if isinstance(data, Interactions):
        raise SettingError("jobs > 1: processes of their own read data by name; expected a dataset's name or a file")
    for experiment, model in asked:
        if not experiment.method.endswith(".py") and MODELS.get(experiment.method) is not type(model):
            name = type(model).__name__
            raise SettingError(f"jobs > 1: processes of their own know no {name}; expected its file, or jobs=1")
