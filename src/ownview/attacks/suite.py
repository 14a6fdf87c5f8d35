"""All attacks on one federation: who sees what, what each learns, and what the canary audit makes of a claim."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from types import ModuleType

from torch import Tensor

from ownview.attacks import (
    diagonal,
    inversion,
    known_vector,
    membership,
    sign,
    touched_over_rounds,
    touched_rows,
    unclipped,
)
from ownview.attacks.canaries import SUM, UPLOAD, AuditSettings, LowerBound, audit
from ownview.attacks.guesses import Inapplicable, VectorGuess
from ownview.attacks.scoring import AttackFinding, items_scored, vectors_scored, without
from ownview.attacks.view import Scene, ServerView, victims, watch
from ownview.privacy.budget import DELTA, budget
from ownview.privacy.masks import MASKED, Masks, masked_sums
from ownview.round.federation import Federation
from ownview.seam.protection import CENTRAL, DISTRIBUTED, LOCAL

AUDIT = "canary audit"
_SINGLE: tuple[ModuleType, ...] = (touched_rows, touched_over_rounds, sign, diagonal, inversion)


@dataclass(frozen=True)
class AttackSettings:
    """How much is attacked.

    Args:
        rounds: that the server watches.
        clients: whose messages it notes, drawn at random.
        seed: of that draw and of the controls.
        audit_seeds: of the canary audit; 0 for none.
    """

    rounds: int = 3
    clients: int = 50
    seed: int = 0
    audit_seeds: int = 5


@dataclass(frozen=True)
class Claim:
    """What a setting `privacy` promises: an epsilon, of single uploads or of sums; who adds those up is trusted.

    Args:
        sees: what the promise is about.
        epsilon: None where nothing is promised.
        delta: of the promise, or of the audit where there is none.
    """

    sees: str
    epsilon: float | None
    delta: float = DELTA


def attack_all(
    scene: Scene, settings: AttackSettings, on_step: Callable[[str], None] = lambda step: None
) -> list[AttackFinding]:
    """Every attack, those that do not apply included; `on_step` is called with the name of what begins."""
    on_step("watching uploads")
    chosen = victims(scene.split.num_users, settings.clients, settings.seed)
    view, federation = watch(scene, chosen, settings.rounds)
    found = single_uploads(view, federation, scene, settings.seed)
    if scene.options.privacy.startswith("laplace:"):
        found.append(unclipped.measured(scene, chosen))
    on_step("membership from sums")
    found.append(membership.attack(scene, 2 * settings.clients))
    if settings.audit_seeds:
        on_step("canary audit")
        found.append(audited(scene, settings))
    return found


def single_uploads(view: ServerView, federation: Federation, scene: Scene, seed: int) -> list[AttackFinding]:
    """The attacks on what single clients send."""
    truth, found = scene.split.training_items(), []
    for attack in _SINGLE:
        guess = attack.guess(view)
        if isinstance(guess, Inapplicable):
            found.append(without(attack.NAME, attack.SEES, guess))
        elif isinstance(guess, VectorGuess):
            found.append(vectors_scored(attack.NAME, attack.SEES, guess, _private(federation), seed))
        else:
            found.append(items_scored(attack.NAME, attack.SEES, guess, truth, seed))
    by_vector = known_vector.guess(view, _private(federation))
    name, sees = known_vector.NAME, known_vector.SEES
    if isinstance(by_vector, Inapplicable):
        found.append(without(name, sees, by_vector))
    else:
        found.append(items_scored(name, sees, by_vector, truth, seed, known_vector.WHO))
    return found


def from_one_upload(scene: Scene, clients: int, seed: int = 0, number: int = 1) -> AttackFinding:
    """What the best attack on one upload of a few clients learns.

    A client's first upload depends on no other client: in round 1 the others do not take part, which is quick.

    Args:
        scene: that is attacked.
        clients: how many are watched, drawn at random; in a later round those of them who take part.
        seed: of that draw.
        number: of the round that the upload belongs to, from 1.
    """
    chosen = victims(scene.split.num_users, clients, seed)
    view, federation = watch(scene, chosen, number, chosen if number == 1 else None, uploads_alone=True)
    every = single_uploads(view.of_round(number), federation, scene, seed)
    found = [one for one in every if "precision" in one.values and one.sees == sign.SEES]
    nothing = without("one upload", "one upload", Inapplicable("no message says anything of single items"))
    best = max(found, key=_success, default=nothing)
    mode = scene.options.privacy.partition(":")[0]
    hidden = "; masks, which were left out, hide that"
    trusted = {CENTRAL: "; it adds the noise and is trusted", DISTRIBUTED: hidden, MASKED: hidden}
    return replace(best, sentence=best.sentence + trusted.get(mode, "")) if best.succeeds else best


def _success(one: AttackFinding) -> tuple[bool, float]:
    return one.succeeds, min(one.values["precision"], one.values["recall"])


def audited(scene: Scene, settings: AttackSettings) -> AttackFinding:
    """The canary audit with several seeds, against what the setting `privacy` claims."""
    claim = claim_of(scene.options.privacy)
    how = AuditSettings(settings.rounds, claim.sees, delta=claim.delta)
    bounds: list[LowerBound] = []
    for seed in range(settings.audit_seeds):
        bound = audit(scene, how, seed)
        if isinstance(bound, Inapplicable):
            return without(AUDIT, claim.sees, bound)
        bounds.append(bound)
    each = [bound.epsilon for bound in bounds]
    largest, ceiling = max(each), max(bound.ceiling for bound in bounds)
    values = {f"epsilon at least, seed {seed}": one for seed, one in enumerate(each)}
    values |= {"epsilon at least": largest, "could show": ceiling, "delta": claim.delta}
    rounds = f"{settings.rounds} round" + "s" * (settings.rounds != 1)
    sentence = f"epsilon is at least {largest:.2f} over {rounds} for a reader of {claim.sees}"
    sentence += f" (95 %, delta {claim.delta:g}, the largest of {len(each)}; {ceiling:.1f} could have shown)"
    broken = claim.epsilon is not None and largest > claim.epsilon
    if claim.epsilon is None:
        sentence += "; nothing is claimed"
    else:
        values["claimed epsilon"] = claim.epsilon
        sentence += f"; {claim.epsilon:g} is claimed, which " + ("is not kept" if broken else "it does not contradict")
    return AttackFinding(AUDIT, claim.sees, True, broken or (claim.epsilon is None and largest > 1), sentence, values)


def claim_of(privacy: str) -> Claim:
    """Read the setting `privacy`: what it promises of uploads or of sums, where it names a budget."""
    asked = budget(privacy)
    if asked is None:
        return Claim(UPLOAD if masked_sums(privacy) is None else SUM, None)
    return Claim(UPLOAD if asked.mode == LOCAL else SUM, asked.epsilon, asked.delta)


def notes_on(privacy: str) -> tuple[str, ...]:
    """What a reader of the findings must know about who sees what."""
    mode = privacy.partition(":")[0]
    if mode == CENTRAL:
        return ("central: the server adds the noise and is trusted; attacks on uploads show what it could read itself",)
    if mode in (DISTRIBUTED, MASKED):
        asked, sums = budget(privacy), masked_sums(privacy)
        masks = asked.masks if asked is not None else sums.masks if sums is not None else Masks()
        if masks.real:
            return (f"{mode}: uploads are masked; attacks on one read masks, and only the sum is there to attack",)
        return (f"{mode}: masks were left out (masks=skipped); attacks on uploads show what they hide",)
    if mode == "laplace":
        return ("laplace: nothing is clipped, so that no epsilon holds, however large the noise",)
    return ()


def _private(federation: Federation) -> dict[str, Tensor]:
    """What clients hold of their own, for scoring."""
    return {name: value for name, value in federation.clients.own.items() if value.dim() > 1}
