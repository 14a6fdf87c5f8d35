"""What a run reports of its budget: privacy.json, numbers in its result, and a sentence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ownview.privacy.accountant import epsilon_of
from ownview.privacy.exact_gaussian import delta_of_tails
from ownview.privacy.planning import Rounds, accounted_rounds
from ownview.seam.protection import CENTRAL, DISTRIBUTED, LOCAL, Protection

_TRUSTED = {
    CENTRAL: "the aggregator, which adds up the uploads and adds the noise, is trusted with every single one",
    DISTRIBUTED: "that server and devices follow the protocol of the masks, and that as many devices as the threshold "
    "says add their share of the noise: the server sees the sum alone",
    LOCAL: "nobody but the user's own device",
}
_PUBLIC = ("the number of users", "the list of items", "who is a user at all")
_NOT_COVERED = (
    "choosing the round, and settings, on validation: held-out items of the same users were looked at for it",
    "the figures of this run folder: losses, validation and test values, lists of recommended items",
    "a second model that is trained on earlier data to choose rounds, where the protocol has one",
    "other runs on the same users: budgets add up (`ownview privacy` counts what is fitted or published)",
    "amplification against a server that knows who takes part",
)
_SEEDED = (
    "anything: noise from a seed can be drawn again by a reader who knows the seed, and what it should hide lies open",
)
_OF_SHARED_NOISE = (
    "devices that work together with the server: each of them takes its share of the noise away",
    "a server or devices that do not follow the protocol",
)


def unaccounted(setting: str) -> tuple[str, ...]:
    """A sentence about noise without a budget; empty where there is none.

    Args:
        setting: `privacy`, of the federation or of a method.
    """
    if setting.partition(":")[0] not in ("laplace", "gaussian"):
        return ()
    return (f"not private: noise from a seed ({setting}), with no epsilon",)


def headline(plan: Protection) -> str:
    """One sentence."""
    rounds = f"{plan.rounds} round{'s' if plan.rounds > 1 else ''}"
    if plan.seeded:
        return (
            f"not private: noise from a seed, as large as {plan.mode} noise of epsilon {plan.epsilon:g} over {rounds}; "
            "without noise=seeded it is secret"
        )
    return (
        f"private: {plan.mode} noise, epsilon {plan.epsilon:g} and delta {plan.delta:g} for every user over {rounds}; "
        "what that leaves out is in privacy.json"
    )


def summary(plan: Protection) -> dict[str, Any]:
    """For result.json."""
    return {
        "mode": plan.mode,
        "epsilon": plan.epsilon,
        "delta": plan.delta,
        "relation": plan.relation,
        "rounds": plan.rounds,
        "noise_from": "seed" if plan.seeded else "secret key, forgotten after the last round",
        "headline": headline(plan),
    }


def record(
    plan: Protection,
    options: Rounds,
    num_clients: int,
    releases: Sequence[float],
    numbers: int,
    masks: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """For privacy.json.

    Args:
        plan: that was carried out.
        options: of the federation, the budget for so many rounds.
        num_clients: n.
        releases: of the method, where it has a private form.
        numbers: D, that a client sends in a round at most.
        masks: of single uploads, with the cost of rounding the devices' noise; None without masks.
    """
    rounds, sampling = accounted_rounds(plan, options, num_clients, releases)
    alone = {z: epsilon_of([z], plan.delta, sampling) for z in dict.fromkeys(plan.noise)}
    return {
        **summary(plan),
        "accountant": plan.accountant,
        "participation": options.clients,
        "epsilon_composed": epsilon_of(plan.noise[:rounds], plan.delta, sampling),
        "clip": {"bound": plan.clip, "adaptive": plan.adaptive},
        "divided_by": plan.clients,
        "noise": _noise(plan, alone),
        "drawn": {
            "distribution": "Gaussian, rounded to whole steps, drawn exactly up to 16 standard deviations",
            "delta_of_tails": delta_of_tails(plan.epsilon, plan.rounds, numbers * max(1, plan.threshold)),
        },
        "per_user": {"epsilon": plan.epsilon, "rounds_at_most": rounds},
        **({} if masks is None else {"masks": dict(masks)}),
        "trusted": _TRUSTED[plan.mode],
        "public": list(_PUBLIC),
        "not_covered": [
            *(_SEEDED if plan.seeded else ()),
            *_NOT_COVERED,
            *(_OF_SHARED_NOISE if plan.mode == DISTRIBUTED else ()),
        ],
    }


def _noise(plan: Protection, alone: dict[float, float]) -> list[dict[str, Any]]:
    """Noise round by round; standard deviations are for the first clip where it is adaptive."""
    return [
        {
            "round": number,
            "multiplier": z,
            "standard_deviation": plan.of_changes(number) * plan.clip,
            "in_the_sum": plan.in_sum(number) * plan.clip,
            **({"of_the_quantile": plan.of_quantile(number)} if plan.adaptive else {}),
            "epsilon_alone": alone[z],
        }
        for number, z in enumerate(plan.noise, start=1)
    ]
