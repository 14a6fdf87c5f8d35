"""Optuna behind a few words: which candidate comes next, and which is not worth going on with.

What trial k draws depends on the seed, on k and on the trials before it, never on when the process was started; so a
tuning that was killed ends as if it never was.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ownview.base.errors import SettingError
from ownview.base.randomness import derive
from ownview.config.search import OneOf, text_of
from ownview.runs.experiment import NamedSetting
from ownview.studies.tuning.record import COMPLETE, FAILED, Trial

if TYPE_CHECKING:
    import optuna

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
        """Whether, with `value` after round `number`, the trial is not worth going on with."""
        self.drawn.report(value, number)
        return self.drawn.should_prune()


class Study:
    """Chooses candidates by Optuna's TPE, the first one being the defaults; prunes by round.

    Args:
        chosen: what is searched.
        seed: of the tuning.
        pruner: median, halving or none.
        rounds: of a whole trial.
    """

    def __init__(self, chosen: Mapping[str, NamedSetting], seed: int, pruner: str, rounds: int) -> None:
        self.optuna = _optuna()
        self.optuna.logging.set_verbosity(self.optuna.logging.ERROR)
        self.chosen, self.seed = chosen, seed
        self.distributions = {name: self._distribution(knob) for name, knob in chosen.items()}
        self.pruner = self._pruner(pruner, rounds)

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
        raise SettingError('ownview tune needs Optuna, which is not installed: pip install "ownview[tune]"') from None
    return optuna
