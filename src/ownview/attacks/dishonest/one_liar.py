"""What one lying client reaches, quickly: among a few people, in a few rounds, for comparisons."""

from __future__ import annotations

import math

import torch

from ownview.attacks.dishonest.audit import FACTORS, allowed_exposure
from ownview.attacks.dishonest.crew import BOOSTED, PROMOTE, Crew
from ownview.attacks.dishonest.infiltration import infiltrated, lists_of, top_tens
from ownview.attacks.scoring import AttackFinding
from ownview.attacks.view import Scene, victims
from ownview.base.errors import SettingError, TrainingError
from ownview.federation.checks.liars import BOUND, TOGETHER, checked_whole, defence
from ownview.federation.facts import world_of
from ownview.federation.terms import Terms
from ownview.messages.robust import NONE
from ownview.seam.client import Reporting

PEOPLE, ROUNDS = 100, 3
_MOST_ITEMS = 4000
"""Items up to which sums are solved for it: seconds."""


def one_liar(scene: Scene, rounds: int) -> AttackFinding:
    """Into how many lists one client that sends the worst brings an item that few have.

    A hundred people take part, and of `rounds` three at most. Others would add honest uploads that a boosted one
    exceeds by far; where the server bounds it, it reaches less among more people. Nothing has to be tried where uploads
    are checked to be a history's. Raises `SettingError` where uploads are not in clear, or sums are of more than some
    thousand items.

    Args:
        scene: with the options of the run.
        rounds: of the run.
    """
    if scene.options.privacy != "none":
        raise SettingError("liars are tried on uploads in clear")
    terms = Terms.of(scene.method, world_of(scene.split), scene.options, scene.seed, scene.machine)
    if checked_whole(terms):
        sentence = "one client that lies is refused: its upload must be a history's"
        return AttackFinding("one liar", "dishonest clients", True, False, sentence, {"exposure": 0.0})
    if isinstance(terms.client.work, Reporting) and scene.split.num_items > _MOST_ITEMS:
        raise SettingError(f"liars are tried on sums of {_MOST_ITEMS} items at most")
    crew = Crew(scene.split, PROMOTE, BOOSTED, 1)
    people = torch.tensor(sorted({*victims(scene.split.num_users, PEOPLE, 0).tolist(), *crew.members.tolist()}))
    federation, _ = infiltrated(scene, crew, FACTORS[-1], checked=True, cohort=people)
    try:
        for number in range(1, min(rounds, ROUNDS) + 1):
            federation.round(number)
        reached = lists_of(top_tens(federation, people), crew, people).exposure
    except (TrainingError, RuntimeError):  # a matrix without an inverse, values that are no numbers
        reached = math.nan
    chance = 1 / len(people)  # one list may have the item by itself
    succeeds = math.isnan(reached) or reached > allowed_exposure(1, scene.split.num_users) + chance
    values = {"exposure": 1.0 if math.isnan(reached) else reached}
    sentence = f"{_sentence(reached)}; {_step(terms) if succeeds else TOGETHER}"
    return AttackFinding("one liar", "dishonest clients", True, succeeds, sentence, values)


def _step(terms: Terms) -> str:
    """What can be done about it."""
    if terms.options.robust != NONE:
        return f"robust={terms.options.robust} does not stop it"
    if terms.transform is not None:
        return "nothing bounds what is noisy"
    if terms.mixed:
        return f"--set robust={BOUND} bounds that, at a cost (docs/dishonest.md)"
    return f"--set robust={defence(terms)} bounds that"


def _sentence(reached: float) -> str:
    if math.isnan(reached):
        return "one client that lies can leave all clients without a list"
    return f"one client that lies can put an item into {reached:.0%} of all lists"
