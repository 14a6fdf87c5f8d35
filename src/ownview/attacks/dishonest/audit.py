"""The audit of dishonest clients: every goal by every means, from one client to one in twenty; how far each gets."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from torch import Tensor

from ownview.attacks.dishonest.crew import (
    BACKDOOR,
    BOOSTED,
    COUNTED_BOOSTED,
    DEGRADE,
    DEMOTE,
    GOALS,
    MEANS,
    PROMOTE,
    Crew,
)
from ownview.attacks.dishonest.infiltration import Infiltrated, Lists, infiltrated, lists_of, top_tens
from ownview.attacks.dishonest.published.catalogue import PUBLISHED
from ownview.attacks.scoring import AttackFinding
from ownview.attacks.view import Scene
from ownview.base.display.amounts import counted
from ownview.base.errors import SettingError, TrainingError, suggestion
from ownview.data.splitting.splits import Split
from ownview.round.federation import Federation

SHARES = (0.001, 0.01, 0.05)
FACTORS = (1e1, 1e3)
"""By which a boosted upload is enlarged; the worst counts."""
LONGER = (1.0, 10.0)
"""How much longer than the median honest upload those of attacks of the literature are whose papers leave it open; the
worst counts."""
LOSS = 0.02
"""Share of HR@10 that may be lost before an attack has succeeded."""
_MOVED = ((1, 0.01), (0.01, 0.05), (math.inf, 0.10))
"""Up to how many liars (one, or a share of everybody) an attack has succeeded from which change of exposure on."""


@dataclass(frozen=True)
class DishonestSettings:
    """How an audit is made.

    Args:
        rounds: of the method.
        goals: that are tried, of `GOALS`.
        means: likewise, of `MEANS` and those of the literature (`PUBLISHED`), which have one goal each.
        shares: of everybody who lies; one client is always tried.
        seed: of who lies.
        checked: whether the server refuses what no honest client can have made.
        factors: by which boosted uploads are enlarged; the worst counts.
    """

    rounds: int
    goals: Sequence[str] = GOALS
    means: Sequence[str] = MEANS
    shares: Sequence[float] = SHARES
    seed: int = 0
    checked: bool = True
    factors: Sequence[float] = FACTORS

    def __post_init__(self) -> None:
        known = {"goal": GOALS, "means": (*MEANS, *PUBLISHED)}
        for what, names in (("goal", self.goals), ("means", self.means)):
            for name in (one for one in names if one not in known[what]):
                raise SettingError(f"--{what} {name}: no such {what} of liars{suggestion(name, known[what])}")
        if self.goals and self.means and not self._pairs:
            means = next(iter(self.means))
            goal = PUBLISHED[means].goal
            what = "promotes items" if goal == PROMOTE else f"{goal}s the lists"
            raise SettingError(f"--goal {', '.join(self.goals)}: {means} {what}; expected --goal {goal}")

    @property
    def _pairs(self) -> list[tuple[str, str]]:
        """Goals and means that go together."""
        return [
            (goal, means)
            for goal in self.goals
            for means in self.means
            if means not in PUBLISHED or PUBLISHED[means].goal == goal
        ]

    def crews(self, scene: Scene) -> list[Crew]:
        """All that are tried."""
        users = scene.split.num_users
        counts = sorted({1, *(max(1, round(share * users)) for share in self.shares)})
        return [Crew(scene.split, goal, means, count, self.seed) for goal, means in self._pairs for count in counts]


def audit(
    scene: Scene, settings: DishonestSettings, on_step: Callable[[str], None] = lambda step: None
) -> list[AttackFinding]:
    """One finding for each goal, means and number of liars."""
    honest = honest_tens(scene, settings.rounds)
    found = []
    for crew in settings.crews(scene):
        on_step(crew.goal)
        found.append(finding(crew, honest, scene, settings))
    return found


def honest_tens(scene: Scene, rounds: int) -> Tensor | None:
    """Everybody's lists where all are honest."""
    return top_tens(_carry_out(scene.federation(), rounds))


def finding(crew: Crew, honest_lists: Tensor | None, scene: Scene, settings: DishonestSettings) -> AttackFinding:
    """How far one crew gets.

    Args:
        crew: of liars.
        honest_lists: everybody's where all are honest (`honest_tens`).
        scene: that they are part of.
        settings: of the audit.
    """
    honest = lists_of(honest_lists, crew)
    longer = {means: LONGER for means, attack in PUBLISHED.items() if not attack.own_length}
    boosted = dict.fromkeys((BOOSTED, COUNTED_BOOSTED), settings.factors)
    factors = {**boosted, **longer}.get(crew.means, (1.0,))
    tried = [_lists(scene, crew, factor, settings) for factor in factors]
    lists, where = max(tried, key=lambda one: _harm(crew.goal, one[0], honest))
    who = counted(crew.count, "client")
    lost = 1 - lists.hits / honest.hits if honest.hits else 0.0
    broken = math.isnan(lists.hits)
    moved = math.inf if broken else abs(lists.exposure - honest.exposure)
    allowed = allowed_exposure(crew.count, scene.split.num_users)
    succeeds = lost > LOSS if crew.goal == DEGRADE and not broken else moved > allowed or lost > LOSS
    values = {
        "clients": float(crew.count), "exposure": lists.exposure, "honest exposure": honest.exposure,
        "HR@10": lists.hits, "honest HR@10": honest.hits, "sent": float(where.sent), "refused": float(where.refused),
    }  # fmt: skip
    refused = f"; {where.refused} of {where.sent} uploads refused" if where.refused else ""
    outcome = "no list is left" if broken else _in_words(crew.goal, lists, honest)
    idle = "; without liars the model is at chance, so that this says little: give it more --rounds"
    little = idle if not succeeds and honest.hits <= at_chance(scene.split) else ""
    return AttackFinding(
        f"{crew.goal}, {crew.means}", "dishonest clients", True, succeeds, f"{who}: {outcome}{refused}{little}", values
    )


def at_chance(split: Split) -> float:
    """HR@10 of the test up to which a model cannot be told from chance: three standard errors above it."""
    chance = min(1.0, 10 / split.num_items)
    return chance + 3 * math.sqrt(chance * (1 - chance) / max(1, len(split.test.users)))


def allowed_exposure(count: int, users: int) -> float:
    """Share of other people's lists that so many liars may bring an item into, or out of, and have not succeeded."""
    return next(limit for most, limit in _MOVED if count <= (most if most == 1 else most * users + 0.5))


def _in_words(goal: str, lists: Lists, honest: Lists) -> str:
    hits = f"HR@10 {lists.hits:.3f}, {honest.hits:.3f} without"
    if goal == DEGRADE:
        return hits
    what = {PROMOTE: "an item that few have", BACKDOOR: "an item that few have", DEMOTE: "the most popular item"}[goal]
    whose = "lists of those who have another item" if goal == BACKDOOR else "other people's lists"
    return f"{what} stands in {lists.exposure:.1%} of {whose}, {honest.exposure:.1%} without; {hits}"


def _harm(goal: str, lists: Lists, honest: Lists) -> float:
    """How far an attack gets; a model without a list is the worst."""
    if math.isnan(lists.hits):
        return math.inf
    if goal == DEGRADE:
        return honest.hits - lists.hits
    return honest.exposure - lists.exposure if goal == DEMOTE else lists.exposure - honest.exposure


def _lists(scene: Scene, crew: Crew, factor: float, settings: DishonestSettings) -> tuple[Lists, Infiltrated]:
    """Honest people's lists after all rounds; not a number where the method could not go on."""
    federation, where = infiltrated(scene, crew, factor, checked=settings.checked)
    try:
        lists = lists_of(top_tens(_carry_out(federation, settings.rounds)), crew)
    except (TrainingError, RuntimeError):  # a matrix without an inverse, values that are no numbers
        lists = Lists(math.nan, math.nan)
    return lists, where


def _carry_out(federation: Federation, rounds: int) -> Federation:
    for number in range(1, rounds + 1):
        federation.round(number)
    return federation
