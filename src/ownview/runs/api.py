"""The Python interface: the same words as the command line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path

from ownview.base.errors import SettingError
from ownview.base.trust import named_by_user
from ownview.data.interactions import Interactions
from ownview.evaluation.named_protocols import HONEST
from ownview.evaluation.named_protocols import protocol as protocol_by_name
from ownview.evaluation.protocol import Protocol
from ownview.federation.options import FederationOptions
from ownview.registry import Model, build
from ownview.runs.experiment import Experiment, describe_model
from ownview.runs.full_fit import fit_like, fit_of
from ownview.runs.loggers import Logger
from ownview.runs.run import OnRound, Run, open_run
from ownview.runs.run import run as run_experiment


def run(  # noqa: PLR0913 - the same words as the command line
    method: Model | str,
    data: Interactions | str = "goodbooks",
    *,
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
        method: a method such as `ownview.PFedRec()`, or its name.
        data: interactions, or a dataset's name or file.
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
        loggers: told when it begins, after every round, and when it has finished: `ownview.TensorBoard("folder")`, or
            anything with the methods of `ownview.Logger`.
    """
    experiment, model = _experiment(method, data)
    experiment = replace(
        experiment,
        protocol=protocol_by_name(protocol) if isinstance(protocol, str) else protocol,
        inactive=inactive,
        watch=tuple(str(user) for user in watch),
        federation=_options(federation),
        rounds=rounds,
        measure_every=measure_every,
        seed=seed,
        engine=engine,
        device=device,
    )
    return run_experiment(
        experiment,
        model=model,
        data=None if isinstance(data, str) else data,
        out=None if out is None else Path(out),
        memory=memory,
        on_round=on_round,
        loggers=loggers,
    )


def fit(
    method: Model | str | None = None,
    data: Interactions | str | None = None,
    *,
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
        like: a measured run or its folder: its method, settings, plug-ins, seed and federation, and the round it chose.
        rounds: of training; not needed for closed forms.
        seed: equal seeds give equal models on one device.
        federation: who takes part and how the server combines.
        total: under a budget: epsilon that all releases of these people together may reach from now on; what holds for
            them where None, at first the epsilon of their first release (docs/privacy.md).
        device: auto, cpu or cuda.
        memory: what training may take, such as 4GB.
        out: folder for the model; without it a temporary one that goes with the process.
        loggers: told when it begins, after every round, and when it has finished.
    """
    if (method is None) == (like is None):
        raise SettingError("fit: expected a method, or like=RUN, and not both")
    model: Model | None
    if like is not None:
        if rounds is not None or seed or federation is not None:
            raise SettingError("fit: rounds, seed and federation are those of the run with like=RUN; leave them out")
        chosen = like if isinstance(like, Run) else open_run(like)
        model, data = chosen.model, chosen.data if data is None else data
        experiment = fit_like(chosen.folder.path, data=None if data is None else _name(data), model=model)
    else:
        assert method is not None
        data = "goodbooks" if data is None else data
        experiment, model = _experiment(method, data)
        experiment = fit_of(replace(experiment, federation=_options(federation), seed=seed), rounds, model)
    return run_experiment(
        replace(experiment, device=device),
        model=model,
        data=data if isinstance(data, Interactions) else None,
        out=None if out is None else Path(out),
        memory=memory,
        loggers=loggers,
        total=total,
    )


def _experiment(method: Model | str, data: Interactions | str) -> tuple[Experiment, Model]:
    """A method on data, everything else by default, and the model itself."""
    if isinstance(method, str):
        named_by_user(method)
    model = build(method, {}) if isinstance(method, str) else method
    name, settings, plugins = describe_model(model)
    return Experiment(method=name, data=_name(data), settings=settings, plugins=plugins), model


def _name(data: Interactions | str) -> str:
    return data if isinstance(data, str) else data.name


def _options(federation: FederationOptions | Mapping[str, object] | None) -> FederationOptions:
    return federation if isinstance(federation, FederationOptions) else FederationOptions.of(federation or {})


def compare(
    methods: Sequence[Model | str],
    data: Interactions | str = "goodbooks",
    *,
    protocols: Sequence[Protocol | str] = (HONEST,),
    rounds: int = 100,
    seeds: int = 1,
    out: str | Path | None = None,
) -> list[Run]:
    """Every method under every protocol with seeds 0 to `seeds` - 1; see `ownview.runs.table` for tables."""
    names = [one if isinstance(one, str) else one.name for one in methods]
    # One method may come several times, with other settings each: the second goes to NAME-2.
    told = [name if names.count(name) == 1 else f"{name}-{names[: k + 1].count(name)}" for k, name in enumerate(names)]
    runs = []
    for protocol, (name, method), seed in product(protocols, zip(told, methods, strict=True), range(seeds)):
        kind = protocol if isinstance(protocol, str) else protocol.name
        folder = None if out is None else Path(out) / f"{name}-{kind}-seed{seed}"
        runs.append(run(method, data, protocol=protocol, rounds=rounds, seed=seed, out=folder))
    return runs
