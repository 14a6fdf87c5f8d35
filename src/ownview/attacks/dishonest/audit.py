"""The audit of dishonest clients: every goal by every means, from one client to one in twenty; how far each gets."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ownview.attacks.dishonest.crew import BOOSTED, DEGRADE, DEMOTE, GOALS, MEANS, PROMOTE, Crew
from ownview.attacks.dishonest.infiltration import Infiltrated, Lists, infiltrated, lists_of
from ownview.attacks.scoring import AttackFinding
from ownview.attacks.view import Scene
from ownview.base.display.amounts import counted
from ownview.base.errors import TrainingError
from ownview.round.federation import Federation

SHARES = (0.001, 0.01, 0.05)
FACTORS = (1e1, 1e3, 1e6)
"""By which a boosted upload is enlarged; the worst counts."""
_LOSS = 0.02
"""Share of HR@10 that may be lost before an attack has succeeded."""
_MOVED = ((1, 0.01), (0.01, 0.05), (math.inf, 0.10))
"""Up to how many liars (one, or a share of everybody) an attack has succeeded from which change of exposure on."""


@dataclass(frozen=True)
class DishonestSettings:
    """How an audit is made.

    Args:
        rounds: of the method.
        goals: that are tried.
        means: likewise.
        shares: of everybody who lies; one client is always tried, and boosted by one client alone.
        seed: of who lies.
        checked: whether the server refuses what no honest client can have made.
    """

    rounds: int
    goals: Sequence[str] = GOALS
    means: Sequence[str] = MEANS
    shares: Sequence[float] = SHARES
    seed: int = 0
    checked: bool = True


def audit(
    scene: Scene, settings: DishonestSettings, on_step: Callable[[str], None] = lambda step: None
) -> list[AttackFinding]:
    """One finding for each goal, means and number of liars."""
    found = []
    users = scene.split.num_users
    counts = sorted({1, *(max(1, round(share * users)) for share in settings.shares)})
    honest = _carry_out(scene.federation(), settings.rounds)
    for goal in settings.goals:
        on_step(goal)
        for means in settings.means:
            for count in counts[:1] if means == BOOSTED else counts:
                crew = Crew(scene.split, goal, means, count, settings.seed)
                found.append(_finding(crew, lists_of(honest, crew), scene, settings))
    return found


def _finding(crew: Crew, honest: Lists, scene: Scene, settings: DishonestSettings) -> AttackFinding:
    factors = FACTORS if crew.means == BOOSTED else (1.0,)
    tried = [_lists(scene, crew, factor, settings) for factor in factors]
    lists, terms = max(tried, key=lambda one: _harm(crew.goal, one[0], honest))
    who = counted(crew.count, "client")
    lost = 1 - lists.hits / honest.hits if honest.hits else 0.0
    moved, users = abs(lists.exposure - honest.exposure), scene.split.num_users
    limit = next(limit for most, limit in _MOVED if crew.count <= (most if most == 1 else most * users + 0.5))
    broken = math.isnan(lists.hits)
    succeeds = broken or lost > _LOSS or (crew.goal != DEGRADE and moved > limit)
    values = {
        "clients": float(crew.count), "exposure": lists.exposure, "honest exposure": honest.exposure,
        "HR@10": lists.hits, "honest HR@10": honest.hits, "sent": float(terms.heard.sent),
        "refused": float(terms.heard.refused),
    }  # fmt: skip
    refused = f"; {terms.heard.refused} of {terms.heard.sent} uploads refused" if terms.heard.refused else ""
    told = "no list is left" if broken else _in_words(crew.goal, lists, honest)
    return AttackFinding(
        f"{crew.goal}, {crew.means}", "dishonest clients", True, succeeds, f"{who}: {told}{refused}", values
    )


def _in_words(goal: str, lists: Lists, honest: Lists) -> str:
    hits = f"HR@10 {lists.hits:.3f}, {honest.hits:.3f} without"
    if goal == DEGRADE:
        return hits
    what = {PROMOTE: "an item that few have", DEMOTE: "the most popular item"}[goal]
    return f"{what} stands in {lists.exposure:.1%} of other people's lists, {honest.exposure:.1%} without; {hits}"


def _harm(goal: str, lists: Lists, honest: Lists) -> float:
    """How far an attack gets; a model without a list is the worst."""
    if math.isnan(lists.hits):
        return math.inf
    moved = {PROMOTE: lists.exposure - honest.exposure, DEMOTE: honest.exposure - lists.exposure}
    return moved.get(goal, honest.hits - lists.hits)


def _lists(scene: Scene, crew: Crew, factor: float, settings: DishonestSettings) -> tuple[Lists, Infiltrated]:
    """Honest people's lists after all rounds; not a number where the method could not go on."""
    federation = infiltrated(scene, crew, factor, checked=settings.checked)
    try:
        _carry_out(federation, settings.rounds)
        lists = lists_of(federation, crew)
    except (TrainingError, RuntimeError):  # a matrix without an inverse, values that are no numbers
        lists = Lists(math.nan, math.nan)
    assert isinstance(federation.terms, Infiltrated)
    return lists, federation.terms


def _carry_out(federation: Federation, rounds: int) -> Federation:
    for number in range(1, rounds + 1):
        federation.round(number)
    return federation
