"""How right guesses are. The only place that knows the truth; attacks never see it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from ownview.attacks.guesses import Inapplicable, ItemGuess, VectorGuess
from ownview.base.display.amounts import counted
from ownview.data.ragged import Ragged
from ownview.evaluation.findings import Finding

CLEARLY = 0.6
"""An area under the curve from which on an attack has learnt something, and more than the control by 0.05.

It must also be beyond chance: of few users a guess that knows nothing may look good. See `_beyond_chance`.
"""

_MARGIN = 0.05
_READS = 0.9
"""Precision and recall from which on items are simply read."""


@dataclass(frozen=True)
class AttackFinding:
    """Result of an attack.

    Args:
        attack: its name.
        sees: what it looks at, such as "one upload".
        applies: whether there was anything to look at, and enough of it to score.
        succeeds: whether the attacker knows clearly more than before.
        sentence: for people.
        values: for programs; figures with "shuffled" before them are of the control, whose truth is that of others.
    """

    attack: str
    sees: str
    applies: bool
    succeeds: bool
    sentence: str
    values: dict[str, float] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """As plain values."""
        return {
            "attack": self.attack, "sees": self.sees, "applies": self.applies, "succeeds": self.succeeds,
            "sentence": self.sentence, "values": dict(self.values),
        }  # fmt: skip

    def as_finding(self) -> Finding:
        """In the form that comparisons and reports know."""
        return Finding(self.attack, self.succeeds, self.sentence, {"sees": self.sees, **self.values})


def without(attack: str, sees: str, why: Inapplicable) -> AttackFinding:
    """Of an attack that has nothing to go by."""
    return AttackFinding(attack, sees, False, False, f"does not apply: {why.why}")


def items_scored(
    attack: str, sees: str, guess: ItemGuess, truth: Ragged, seed: int, who: str = "the server"
) -> AttackFinding:
    """Precision and recall of what was claimed, precision at k (k the number of the client's items), and AUC.

    All are means over clients. The control scores the same guesses against the items of other clients: what is left
    there is what everybody's items have in common, and no attack.

    Args:
        attack: its name.
        sees: what it looked at.
        guess: of the attack.
        truth: every client's items.
        seed: of the control.
        who: attacks.
    """
    own = mask(truth, guess.clients, guess.scores.shape[1])
    values = {name: float(each.mean()) for name, each in _figures(guess, own).items()}
    if len(guess.clients) > 1:
        others = _figures(guess, own[_deranged(len(own), seed)])
        values |= {f"shuffled {name}": float(each.mean()) for name, each in others.items()}
    values["clients"] = len(guess.clients)
    apart = values["AUC"] >= max(CLEARLY, values.get("shuffled AUC", 0.0) + _MARGIN)
    clear = apart and _beyond_chance(values["AUC"], own)
    reads = min(values["precision"], values["recall"]) >= _READS
    many = counted(len(guess.clients), "user")
    if apart and not clear:
        sentence = f"whether {who} learns anything of a user's items from {sees} cannot be told of so few items"
    elif clear and reads:
        sentence = f"{who} reads a user's items from {sees}"
    elif clear:
        sentence = f"{who} learns something of a user's items from {sees}"
    else:
        sentence = f"{who} learns next to nothing of a user's items from {sees} this way"
    sentence += (
        f": precision {values['precision']:.3f}, recall {values['recall']:.3f}, AUC {values['AUC']:.3f} over {many}"
    )
    return AttackFinding(attack, sees, clear or not apart, clear, sentence, values)


def vectors_scored(attack: str, sees: str, guess: VectorGuess, private: dict[str, Tensor], seed: int) -> AttackFinding:
    """|cos| between guessed directions and what clients hold, the mean over clients, of the value it fits best.

    Args:
        attack: its name.
        sees: what it looked at.
        guess: of the attack.
        private: by name [n, ...], values that clients hold after the last round.
        seed: of the control, which compares with the values of other clients.
    """
    held = {name: value.reshape(len(value), -1).double().cpu() for name, value in private.items()}
    fitting = {name: value for name, value in held.items() if value.shape[1] in guess.directions}
    if not fitting:
        return without(attack, sees, Inapplicable("clients hold no vector as wide as the rows they send"))
    best: dict[str, float] = {}
    for value in fitting.values():
        own, guessed = value[guess.clients], guess.directions[value.shape[1]]
        found = {"cosine": float(_cosines(guessed, own).mean())}
        if len(own) > 1:
            found["shuffled cosine"] = float(_cosines(guessed, own[_deranged(len(own), seed)]).mean())
        best = max(best or found, found, key=lambda one: one["cosine"])
    values = {**best, "clients": float(len(guess.clients))}
    others = values.get("shuffled cosine", 0.0)
    clear = values["cosine"] >= max(CLEARLY, others + _MARGIN)
    sentence = f"|cos| {values['cosine']:.3f} with a vector that never leaves the user's device, from {sees}"
    if "shuffled cosine" in values:
        sentence += f"; {others:.3f} with those of other users" + (
            "" if clear else ", so that it tells users little apart"
        )
    return AttackFinding(attack, sees, True, clear, sentence, values)


def mask(items: Ragged, clients: Tensor, num_items: int) -> Tensor:
    """[C, m] which items are whose."""
    found = torch.zeros(len(clients), num_items, dtype=torch.bool)
    for place, client in enumerate(clients.tolist()):
        found[place, items.of(client).cpu()] = True
    return found


def areas(scores: Tensor, positive: Tensor) -> Tensor:
    """[C] area under the ROC curve of every row [C, m]: how often a positive stands above another item, ties half.

    0.5 where there are no positives, or nothing else.
    """
    ranks = torch.stack([_ranks(row) for row in scores.double()])
    count, rest = positive.sum(-1).double(), (~positive).sum(-1).double()
    above = (ranks * positive).sum(-1) - count * (count + 1) / 2
    return torch.where((count > 0) & (rest > 0), above / (count * rest).clamp(min=1), 0.5)


_RARELY = 0.00135
"""How often a normal number lies more than three standard deviations above its mean."""


def _beyond_chance(auc: float, positive: Tensor) -> bool:
    """Whether a mean AUC of rows [C, m] lies three standard errors above one half.

    Of very few items that is more than 1. Then it must be 1, and so seldom by chance: a row's a positives stand before
    its b others in one of (a + b)! / (a! b!) orders.
    """
    bound = 0.5 + 3 * _chance(positive)
    if bound < 1:
        return auc >= bound
    count, every = positive.sum(-1).double(), float(positive.shape[-1])
    orders = math.lgamma(every + 1) - torch.lgamma(count + 1) - torch.lgamma(every - count + 1)
    return auc == 1 and float(torch.exp(-orders.sum())) < _RARELY


def _chance(positive: Tensor) -> float:
    """Standard error of the mean AUC of rows [C, m] for guesses that know nothing.

    One row's has the variance (a + b + 1) / (12 a b), a positives and b others; 0 without either.
    """
    count, rest = positive.sum(-1).double(), (~positive).sum(-1).double()
    each = torch.where((count > 0) & (rest > 0), (count + rest + 1) / (12 * count * rest).clamp(min=1), 0.0)
    return float(each.sum().sqrt() / len(positive))


def _ranks(scores: Tensor) -> Tensor:
    """[m] place of each score from the bottom, from 1; equal ones share the mean of their places."""
    _, which, counts = torch.unique(scores, return_inverse=True, return_counts=True)
    places: Tensor = counts.cumsum(0) - (counts - 1).double() / 2
    return places[which]


def _figures(guess: ItemGuess, own: Tensor) -> dict[str, Tensor]:
    right = (guess.claimed & own).sum(1).double()
    return {
        "precision": right / guess.claimed.sum(1).clamp(min=1),
        "recall": right / own.sum(1).clamp(min=1),
        "precision at k": _at_own_number(guess.scores, own),
        "AUC": areas(guess.scores, own),
    }


def _at_own_number(scores: Tensor, own: Tensor) -> Tensor:
    """[C] share of right ones among the k best, k the number of right ones."""
    order = scores.argsort(dim=1, descending=True, stable=True)
    hits = own.gather(1, order).double().cumsum(1)
    count = own.sum(1)
    return hits.gather(1, (count - 1).clamp(min=0)[:, None])[:, 0] / count.clamp(min=1)


def _cosines(left: Tensor, right: Tensor) -> Tensor:
    return torch.nn.functional.cosine_similarity(left, right, dim=1).abs()


def _deranged(count: int, seed: int) -> Tensor:
    """A random permutation without fixed points."""
    order = torch.randperm(count, generator=torch.Generator().manual_seed(seed))
    places = torch.empty_like(order)
    places[order] = order.roll(1)
    return places
