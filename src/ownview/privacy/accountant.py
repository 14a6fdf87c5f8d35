"""Noise from epsilon, and epsilon from noise, by the package dp-accounting (extra `privacy`).

Noise multipliers z are the standard deviation of Gaussian noise over the clip C.
"""

from __future__ import annotations

import importlib
import logging
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

from ownview.base.errors import SettingError
from ownview.base.extras import how_to_install

_GRID = 2e-3
"""Steps of privacy loss that distributions are rounded up to; 20 times finer ones change epsilon by 1e-4."""
_PRECISION = 1e-3
"""Of a calibrated z, which errs towards more noise."""
_LEAST = 0.3
"""Less noise than this is not looked for where sampling hides the rest: its distributions of loss grow as 1 / z^2."""


@dataclass(frozen=True)
class Sampling:
    """Sampling of a round's clients, if it is kept secret.

    Args:
        rate: Poisson sampling: the chance of every client by itself; 1 for everybody.
        cohort: of fixed size, drawn without replacement; 0 for none.
        population: clients that a cohort is drawn from.
    """

    rate: float = 1.0
    cohort: int = 0
    population: int = 0

    @property
    def all_clients(self) -> bool:
        """Whether all clients take part, so that sampling amplifies nothing."""
        return self.rate == 1.0 and not self.cohort

    @property
    def relation(self) -> str:
        """Which two sets of users are told apart by at most epsilon."""
        if self.cohort:
            return "one user replaced by another"
        if self.all_clients:
            return "all of one user's contributions there or zero; the number of users is public"
        return "one user more or less"

    @property
    def accountant(self) -> str:
        """How epsilon is found."""
        if self.cohort:
            return "Rényi differential privacy, cohorts without replacement, z / 2 (dp-accounting)"
        if self.all_clients:
            return "privacy loss distribution, everybody in every round (dp-accounting)"
        return "privacy loss distribution, Poisson sampling (dp-accounting)"


def epsilon_of(noise: Sequence[float], delta: float, sampling: Sampling) -> float:
    """Epsilon of rounds with these z together.

    A fixed-size cohort's sum moves by up to 2 C when one user takes another's place, so it is accounted with z / 2.
    """
    return _epsilon_of_events([(z, sampling) for z in noise], sampling, delta)


class Composed(NamedTuple):
    """Epsilon of several mechanisms together, and how it was found."""

    epsilon: float
    how: str


def epsilon_together(mechanisms: Sequence[tuple[Sequence[float], Sampling]], delta: float) -> Composed:
    """Epsilon of mechanisms that look at the same people, each with the z of its rounds and its sampling.

    The relation is one user's contributions there or zero, which all three kinds of sampling imply: where sums are
    divided by a fixed number, a user without contributions is a user who is absent, and taking one's place by zeros is
    one way of replacing a user.

    - Everybody everywhere: one Gaussian mechanism with 1 / z^2 added up, exactly.
    - Poisson sampling among them: the sum of their privacy losses, as distributions.
    - Cohorts alone: Rényi. Cohorts and others: basic composition of the two groups, half of delta each.
    """
    cohorts = [(z, sampling) for noise, sampling in mechanisms for z in noise if sampling.cohort]
    others = [(z, sampling) for noise, sampling in mechanisms for z in noise if not sampling.cohort]
    if cohorts and others:
        halves = [_epsilon_of_events(group, group[0][1], delta / 2) for group in (cohorts, others)]
        return Composed(sum(halves), "basic composition of fixed cohorts with the rest, half of delta each")
    if cohorts:
        return Composed(_epsilon_of_events(cohorts, cohorts[0][1], delta), "Rényi differential privacy (dp-accounting)")
    if all(sampling.all_clients for _, sampling in others):
        together = 1 / math.sqrt(math.fsum(z**-2 for z, _ in others))
        return Composed(float(_package().get_epsilon_gaussian(together, delta)), "one Gaussian mechanism, exactly")
    return Composed(_epsilon_of_events(others, others[0][1], delta), "privacy loss distributions (dp-accounting)")


def _epsilon_of_events(events: Sequence[tuple[float, Sampling]], kind: Sampling, delta: float) -> float:
    """Epsilon of rounds that one accountant can compose: `kind` is a cohort where all of them are, and none else."""
    accounting = _package()
    with _quiet():
        accountant = _accountant(accounting, kind)
        for (z, sampling), rounds in Counter(events).items():
            accountant.compose(_event(accounting, z, sampling), rounds)
        return float(accountant.get_epsilon(delta))


@lru_cache(maxsize=128)
def noise_for(epsilon: float, delta: float, rounds: int, sampling: Sampling) -> float:
    """The smallest z, the same in every round, with which `rounds` rounds cost at most epsilon."""
    accounting = _package()
    # Everybody in every round: rounds with z are one Gaussian mechanism with z / sqrt(rounds).
    alone = float(accounting.get_sigma_gaussian(epsilon, delta)) * math.sqrt(rounds)
    if sampling.all_clients:
        return alone
    enough = alone * (2.0 if sampling.cohort else 1.0)
    while epsilon_of([enough] * rounds, delta, sampling) > epsilon:  # Rényi's bound may need more than one Gaussian
        enough *= 2
    little = max(enough / 2, _LEAST)
    while epsilon_of([little] * rounds, delta, sampling) <= epsilon:
        if little <= _LEAST:
            return little
        enough, little = little, max(little / 2, _LEAST)
    with _quiet():
        found = accounting.calibrate_dp_mechanism(
            lambda: _accountant(accounting, sampling),
            lambda z: accounting.SelfComposedDpEvent(_event(accounting, z, sampling), rounds),
            epsilon,
            delta,
            bracket_interval=accounting.ExplicitBracketInterval(little, enough),
            tol=_PRECISION * little,
        )
    return float(found)


def _accountant(accounting: Any, sampling: Sampling) -> Any:
    if sampling.cohort:
        return accounting.rdp.RdpAccountant(neighboring_relation=accounting.NeighboringRelation.REPLACE_ONE)
    return accounting.pld.PLDAccountant(value_discretization_interval=_GRID)


def _event(accounting: Any, z: float, sampling: Sampling) -> Any:
    if sampling.cohort:
        halved = accounting.GaussianDpEvent(z / 2)
        return accounting.SampledWithoutReplacementDpEvent(sampling.population, sampling.cohort, halved)
    added = accounting.GaussianDpEvent(z)
    return added if sampling.all_clients else accounting.PoissonSampledDpEvent(sampling.rate, added)


def _package() -> Any:
    """The package, imported at first use."""
    try:
        return importlib.import_module("dp_accounting")
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] != "dp_accounting":
            raise
        raise SettingError(
            "an accounted budget needs the package dp-accounting, which is not installed: " + how_to_install("privacy")
        ) from None


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence warnings about Rényi orders that did not converge: it drops these orders, which is safe."""
    logger = logging.getLogger("absl")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)
