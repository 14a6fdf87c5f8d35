"""A tuning: what is searched, and the loop that asks for a candidate, trains it and notes how it ended.

Optuna stands behind a few words: which candidate comes next, and which is not worth going on with. What trial k draws
depends on the seed, on k and on the trials before it, never on when the process was started; so a tuning that was
killed ends as if it never was.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ownview.base.errors import SettingError
from ownview.base.extras import how_to_install
from ownview.base.randomness import derive
from ownview.config.search import OneOf, text_of
from ownview.runs.experiment import NamedSetting
from ownview.studies.tuning.trials import COMPLETE, FAILED, Trial

if TYPE_CHECKING:
    import optuna
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import tomli_w

from ownview.base.errors import OwnviewError
from ownview.base.files import write_text
from ownview.config.layers import require_known
from ownview.config.search import parse_space
from ownview.evaluation.metrics import means
from ownview.evaluation.named_protocols import protocol
from ownview.evaluation.protocol import NEW_ITEMS_SPLIT, Protocol
from ownview.registry import find_model
from ownview.runs.batch import BatchError
from ownview.runs.experiment import FEDERATION, Experiment, named_settings, with_values
from ownview.runs.files.sources import METHOD, method_fingerprint
from ownview.runs.training.best_round import Best
from ownview.runs.training.setup import ExperimentSetup
from ownview.runs.training.signals import Signals
from ownview.studies.tuning.trials import PRUNED, TuningFolder, best_of, best_toml, suite_toml

PRUNERS = ("median", "halving", "none")
_STARTUP = 5
"""Trials that are never pruned: there is too little to compare them with."""


@dataclass(frozen=True)
class Candidate:
    """Settings to try.

    Args:
        number: of the trial, from 1.
        values: of what is searched, by name.
        drawn: Optuna's side of it.
    """

    number: int
    values: dict[str, Any]
    drawn: optuna.Trial

    @property
    def marks(self) -> dict[str, Any]:
        """What the pruner noted."""
        return dict(self.drawn.study.get_trials(deepcopy=False)[-1].system_attrs)

    def hopeless(self, number: int, value: float) -> bool:
        """Whether, with `value` at its measurement `number`, the trial is not worth going on with."""
        self.drawn.report(value, number)
        return self.drawn.should_prune()


class Study:
    """Chooses candidates by Optuna's TPE, the first one being the defaults; prunes by round.

    Args:
        chosen: what is searched.
        seed: of the tuning.
        pruner: median, halving or none.
        measurements: of a whole trial, one a round unless rounds are measured now and then.
    """

    def __init__(self, chosen: Mapping[str, NamedSetting], seed: int, pruner: str, measurements: int) -> None:
        self.optuna = _optuna()
        self.optuna.logging.set_verbosity(self.optuna.logging.ERROR)
        self.chosen, self.seed = chosen, seed
        self.distributions = {name: self._distribution(knob) for name, knob in chosen.items()}
        self.pruner = self._pruner(pruner, measurements)

    def ask(self, ended: Sequence[Trial]) -> Candidate:
        """The candidate that comes after the trials that ended.

        Everything is built anew from them: a study of one process has no more to go by than one that goes on.
        """
        sampler = self.optuna.samplers.TPESampler(
            seed=derive(self.seed, "tuning", len(ended)) % 2**32, multivariate=False, constant_liar=False
        )
        study = self.optuna.create_study(direction="maximize", pruner=self.pruner, sampler=sampler)
        study.add_trials([self._as_optuna(trial) for trial in ended])
        if not ended:
            study.enqueue_trial(self._defaults())
        drawn = study.ask(self.distributions)
        values = {name: self.chosen[name].read(value) for name, value in drawn.params.items()}
        return Candidate(len(ended) + 1, values, drawn)

    def _as_optuna(self, trial: Trial) -> Any:
        # To Optuna a trial that failed is one pruned before its first round: the worst there is, and a reason to look
        # elsewhere. Its own word "fail" would make it forget the trial.
        states, failed = self.optuna.trial.TrialState, trial.state == FAILED
        return self.optuna.trial.create_trial(
            state=states.COMPLETE if trial.state == COMPLETE else states.PRUNED,
            value=trial.value,
            params=trial.params,
            distributions=self.distributions,
            intermediate_values={} if failed else dict(enumerate(trial.values, start=1)),
            system_attrs={} if failed else trial.marks,
        )

    def _distribution(self, knob: NamedSetting) -> Any:
        space, kinds = knob.space, self.optuna.distributions
        if isinstance(space, OneOf):
            return kinds.CategoricalDistribution([text_of(value) for value in space.values])
        assert space is not None
        if knob.kind is int:
            return kinds.IntDistribution(int(space.low), int(space.high), log=space.log)
        return kinds.FloatDistribution(space.low, space.high, log=space.log)

    def _defaults(self) -> dict[str, Any]:
        """The defaults that lie in their spaces; the others are drawn."""
        inside = {
            name: one for name, one in self.chosen.items() if one.space is not None and one.space.holds(one.default)
        }
        return {n: text_of(one.default) if isinstance(one.space, OneOf) else one.default for n, one in inside.items()}

    def _pruner(self, name: str, rounds: int) -> Any:
        kinds = self.optuna.pruners
        if name == "median":
            return kinds.MedianPruner(n_startup_trials=_STARTUP, n_warmup_steps=rounds // 5)
        if name == "halving":
            return kinds.SuccessiveHalvingPruner(min_resource=max(1, rounds // 16), reduction_factor=2)
        return kinds.NopPruner()


def _optuna() -> Any:
    try:
        import optuna  # noqa: PLC0415 - an extra: only a tuning needs it
    except ImportError:
        hint = how_to_install("tune")
        raise SettingError(f"ownview tune needs Optuna, which is not installed: {hint}") from None
    return optuna


def knobs(method: str, plugins: Sequence[str]) -> dict[str, NamedSetting]:
    """Every setting of a method, of plug-ins around it and, if it is federated, of the federation."""
    federated = find_model(method).federated
    every = named_settings(method, plugins)
    return {name: one for name, one in every.items() if federated or one.owner != FEDERATION}


def searched(
    method: str, plugins: Sequence[str], pinned: Mapping[str, Any], asked: Sequence[str]
) -> dict[str, NamedSetting]:
    """What a tuning varies: the declared spaces of method and plug-ins, and spaces asked for besides.

    Declared spaces of settings that a pinned one, or one that was asked for, excludes are left out.

    Args:
        method: its name or file.
        plugins: around it, the first one innermost.
        pinned: settings with a fixed value, and that value.
        asked: NAME for the declared space of a setting (the federation's are searched only so), or NAME=SPACE.
    """
    every = knobs(method, plugins)
    declared = {
        name: knob
        for name, knob in every.items()
        if knob.space is not None and knob.owner != FEDERATION and name not in pinned
    }
    given = [knob for name, knob in every.items() if name in pinned and knob.read(pinned[name]) != knob.default]
    named = {}
    for text in asked:
        name, equals, space = text.partition("=")
        require_known(name, every, f"--search {text}: neither {method} nor the federation has a setting {name!r}")
        if name in pinned:
            raise SettingError(f"--search {text}: {name} is also pinned by --set; give one of the two")
        named[name] = _asked(every[name], text, space if equals else None)
    given += named.values()
    chosen = {name: knob for name, knob in declared.items() if not any(one.clashes(knob) for one in given)} | named
    if not chosen:
        raise SettingError(f"{method} has no setting left to search; name one with --search NAME=LOW:HIGH")
    return chosen


def _asked(knob: NamedSetting, text: str, space: str | None) -> NamedSetting:
    if space is None and knob.space is None:
        raise SettingError(
            f"--search {text}: no space is declared for it; expected {text}=LOW:HIGH[:log] or {text}=a,b"
        )
    try:
        return knob if space is None else knob.within(parse_space(space, knob.kind, knob.read))
    except SettingError as error:
        raise SettingError(f"--search {text}: {error}") from None


METRICS = ("NDCG@10", "HR@10", "NDCG@20", "recall@20")
"""What a tuning can go by; recall where several answers are right, as under new-items."""

OnRound = Callable[[int, int, float], None]
"""Called after every round with the trial, the round, the metric."""

OnTrial = Callable[[Trial], None]
"""Called after every trial."""


@dataclass(frozen=True)
class Tuning:
    """What to tune and how.

    Args:
        base: the experiment whose settings are varied; its rounds are those of a whole trial.
        chosen: what is searched; see `searched`.
        trials: how many in all, those of earlier processes included.
        metric: on validation.
        pruner: median, halving or none.
    """

    base: Experiment
    chosen: Mapping[str, NamedSetting]
    trials: int
    metric: str = "NDCG@10"
    pruner: str = "median"

    def __post_init__(self) -> None:
        _require_blind(self.base.protocol)
        require_known(self.pruner, PRUNERS, f"--pruner {self.pruner}: expected one of {', '.join(PRUNERS)}")
        require_known(self.metric, METRICS, f"--metric {self.metric}: expected one of {', '.join(METRICS)}")
        if self.metric == "recall@20" and self.base.protocol.split != NEW_ITEMS_SPLIT:
            raise SettingError(f"--metric recall@20: {self.base.protocol.name} asks for one item; expected HR@10, say")
        if self.metric.endswith("@20") and 20 not in self.base.protocol.cutoffs:
            raise SettingError(f"--metric {self.metric}: expected 20 among the protocol's cutoffs")
        if self.trials < 1:
            raise SettingError(f"--trials {self.trials}: expected a whole number at least 1")

    def question(self, fingerprint: str) -> dict[str, Any]:
        """Everything that decides which trials come. Where they are trained, and how many, does not."""
        asked = self.base.to_dict()
        del asked["device"]
        return {
            "experiment": asked,
            "metric": self.metric,
            "pruner": self.pruner,
            "search": {name: str(knob.space) for name, knob in self.chosen.items()},
            "data_fingerprint": fingerprint,
            METHOD: method_fingerprint(self.base),
        }


def tune(
    tuning: Tuning,
    folder: TuningFolder,
    *,
    memory: str = "auto",
    data_dir: Path | None = None,
    on_round: OnRound = lambda trial, number, value: None,
    on_trial: OnTrial = lambda trial: None,
) -> list[Trial]:
    """Carry out the trials that are left; all of them are returned, in the order they came.

    On SIGINT or SIGTERM the trial in progress is given up after its round; it comes again when the tuning goes on.
    """
    base = tuning.base
    study = Study(tuning.chosen, base.seed, tuning.pruner, -(-base.rounds // base.measure_every))
    setup = ExperimentSetup.of(base, memory=memory, data_dir=data_dir)
    with folder.held(), Signals() as signals:
        folder.begin(tuning.question(setup.split.data.fingerprint()))
        ended = folder.trials()
        while len(ended) < tuning.trials:
            candidate = study.ask(ended)
            trial = _carry_out(tuning, candidate, setup, signals, on_round)
            if trial is None:
                done = f"{len(ended)} of {tuning.trials} trials finished in {folder.path}"
                raise BatchError(f"stopped with {done}; the same command goes on", 128 + signals.received)
            folder.append(trial)
            ended.append(trial)
            on_trial(trial)
        _write_best(tuning, ended, setup, folder)
    return ended


def _carry_out(
    tuning: Tuning, candidate: Candidate, setup: ExperimentSetup, signals: Signals, on_round: OnRound
) -> Trial | None:
    """Train one candidate; None where a signal came first."""
    start = time.perf_counter()
    last = tuning.base.protocol.selection == "last"
    best, values = Best(), []
    state, reason = COMPLETE, ""
    try:
        for number, metrics in _validated(setup, with_values(tuning.base, tuning.chosen, candidate.values)):
            best.offer(number, metrics, last=last)
            value = metrics[tuning.metric]
            values.append(value)
            on_round(candidate.number, number, value)
            if signals.received:
                return None
            if candidate.hopeless(len(values), value):
                state = PRUNED
                break
    except OwnviewError as error:  # values that are not finite, settings at odds, too much for the memory or the data
        state, reason = FAILED, str(error)
    settings = {name: text_of(value) for name, value in candidate.values.items()}
    reached, chosen = (None, 0) if state == FAILED else (best.metrics.get(tuning.metric), best.round)
    seconds = round(time.perf_counter() - start, 3)
    return Trial(
        candidate.number,
        state,
        settings,
        candidate.drawn.params,
        reached,
        chosen,
        values,
        seconds,
        reason,
        candidate.marks,
    )


def _write_best(tuning: Tuning, ended: Sequence[Trial], setup: ExperimentSetup, folder: TuningFolder) -> None:
    best = best_of(ended)
    experiment = with_values(tuning.base, tuning.chosen, best.settings)
    resolved = replace(
        experiment.resolved(experiment.model()),
        device="auto",
        settings_tried=len(ended),
        tried_on=experiment.data_label(),
    )
    about = setup.provenance(resolved)
    write_text(folder.best, best_toml(resolved, best, ended, tuning.metric, about))
    named = _is_named(experiment.protocol)
    if not named:
        write_text(folder.path / "protocol.toml", tomli_w.dumps(experiment.protocol.plain()))
    under = experiment.protocol.name if named else "protocol.toml"
    write_text(folder.suite, suite_toml(tuning.base, resolved, under))


def _is_named(asked: Protocol) -> bool:
    """Whether its name is enough to have it again."""
    try:
        return protocol(asked.name) == asked
    except OwnviewError:
        return False


def _validated(setup: ExperimentSetup, experiment: Experiment) -> Iterator[tuple[int, dict[str, float]]]:
    """Train a candidate: the rounds that are measured, and their metrics; only the question of validation is asked."""
    model = experiment.model()
    at_work, (ranker, _) = setup.trainer(experiment, model), setup.rankers
    rounds = experiment.rounds_of(model)
    for number in range(1, rounds + 1):
        at_work.round(number)
        if number == rounds or number % experiment.measure_every == 0:
            yield number, means(ranker.rank(at_work.asked(ranker.question)), experiment.protocol.cutoffs)


def _require_blind(protocol: Protocol) -> None:
    """Refuse a protocol under which a choice would be made on test."""
    if protocol.selection == "test":
        raise SettingError(
            f"protocol {protocol.name} has selection='test': settings chosen on it would be chosen on the very items "
            "that the result is measured on; expected selection='validation' or 'last'"
        )
