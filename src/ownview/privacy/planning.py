"""From a budget to a plan: the clip, the noise of every round, and the divisor of sums."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Protocol

from ownview.base.errors import SettingError
from ownview.config.participation import participation, rounds_of_a_pass
from ownview.privacy.accountant import Sampling, noise_for
from ownview.privacy.budget import Budget, budget
from ownview.seam.protection import CENTRAL, DISTRIBUTED, Protection

_FIRST_CLIP = 0.1
"""Where an adaptive clip begins; it grows or shrinks by up to a tenth a round."""


class Rounds(Protocol):
    """The options that a plan depends on: settings `privacy` and `clients`."""

    @property
    def privacy(self) -> str:
        """What protects uploads."""

    @property
    def clients(self) -> str:
        """Setting of the participants of a round."""


def planned(options: Rounds, num_clients: int, releases: Sequence[float] = ()) -> Protection | None:
    """The plan for a federation of so many clients; None where no budget is asked for.

    Args:
        options: budget and participation.
        num_clients: n.
        releases: for a method with a private form, each round's share of the budget (in mu^2, which add up over
            Gaussian releases); its clients' summands have norm 1 at most. None for equal rounds.
    """
    asked = budget(options.privacy)
    if asked is None:
        return None
    if releases:
        return _by_releases(asked, options, num_clients, releases)
    if asked.rounds is None:
        raise SettingError(f"federation setting privacy='{asked}': for how many rounds? expected rounds=R in it")
    rounds, clients, sampling = _taken_part(asked, options.clients, num_clients)
    z = noise_for(asked.epsilon, asked.delta, rounds, sampling)
    adaptive = asked.adaptive or asked.clip is None
    return Protection(
        asked.mode, asked.epsilon, asked.delta, asked.clip or _FIRST_CLIP, adaptive, (z,) * asked.rounds, clients,
        sampling.relation, sampling.accountant, _threshold(asked, clients), asked.seeded, asked.masks.median,
    )  # fmt: skip


def _threshold(asked: Budget, clients: float) -> int:
    """T, the fewest devices that share the noise; 1 where they do not share it."""
    return asked.masks.survivors(round(clients), str(asked)) if asked.mode == DISTRIBUTED else 1


def _by_releases(asked: Budget, options: Rounds, num_clients: int, releases: Sequence[float]) -> Protection:
    if asked.clip is not None or asked.adaptive:
        raise SettingError(
            f"federation setting privacy='{asked}': what a client of this method sends has norm 1 at most as it is; "
            "expected no clip"
        )
    if options.clients != "all":
        raise SettingError(
            f"federation setting clients={options.clients!r}: this method spends its budget in {len(releases)} rounds "
            "with everybody in them; expected all"
        )
    sampling = Sampling()
    z = noise_for(asked.epsilon, asked.delta, 1, sampling)
    noise = tuple(z / math.sqrt(share) for share in releases)
    return Protection(
        asked.mode, asked.epsilon, asked.delta, 1.0, False, noise, num_clients, sampling.relation,
        sampling.accountant, _threshold(asked, num_clients), asked.seeded, asked.masks.median,
    )  # fmt: skip


def _taken_part(asked: Budget, clients: str, num_clients: int) -> tuple[int, float, Sampling]:
    """Rounds that count for a user, clients expected in a round, and what sampling hides.

    Sampling is secret only where the aggregator is trusted. Otherwise a user is accounted as taking part in every round
    that it may be in.
    """
    chosen, rounds = participation(clients), asked.rounds or 1
    if chosen.kind == "turns":
        cohort = min(int(chosen.amount), num_clients)
        _require_known_number(asked, clients)
        return math.ceil(rounds / rounds_of_a_pass(num_clients, cohort)), cohort, Sampling()
    if chosen.kind == "poisson":
        _require_known_number(asked, clients)
        hidden = Sampling(rate=chosen.amount) if asked.mode == CENTRAL else Sampling()
        return rounds, chosen.amount * num_clients, hidden
    cohort = min(chosen.wanted(num_clients) or num_clients, num_clients)
    hidden = Sampling(cohort=cohort, population=num_clients) if asked.mode == CENTRAL else Sampling()
    return rounds, cohort, hidden if cohort < num_clients else Sampling()


def _require_known_number(asked: Budget, clients: str) -> None:
    if asked.mode == DISTRIBUTED:
        raise SettingError(
            f"federation setting clients={clients!r}: devices that share the noise must know how many they are, and "
            "rounds differ; expected all, a share or a number"
        )


def masked_cohort(options: Rounds, num_clients: int) -> int:
    """Clients in a round of masked sums; refuses settings under which rounds differ in size and may be too small."""
    chosen = participation(options.clients)
    wanted = chosen.wanted(num_clients)
    if wanted is None:
        raise SettingError(
            f"federation setting clients={options.clients!r}: a masked sum needs enough clients in every round, and "
            "rounds differ; expected all, a share or a number"
        )
    return min(wanted, num_clients)


def accounted_rounds(
    plan: Protection, options: Rounds, num_clients: int, releases: Sequence[float]
) -> tuple[int, Sampling]:
    """Rounds of a plan that count for one user, and what sampling hides of them."""
    asked = budget(options.privacy)
    if asked is None or releases:
        return plan.rounds, Sampling()
    rounds, _, sampling = _taken_part(asked, options.clients, num_clients)
    return rounds, sampling


def warnings_of(protection: Protection, num_clients: int) -> tuple[str, ...]:
    """What makes a budget weaker than it sounds."""
    if protection.delta <= 1 / num_clients:
        return ()
    return (
        f"privacy: delta {protection.delta:g} is above 1 / {num_clients}, one over the number of users: to publish one "
        "user's data whole would be within it",
    )
