"""What the weights of a published model reveal of the people whom it was learnt from.

The attacker has the model as it was written, and the settings that stand beside it. Four guesses, each by itself:

- how many people had each item, from sums that weights were solved back into (`solved_sums`);
- the history of a user who alone has an item, from that item's row of the sums;
- pairs of items that one person alone had, from sums of at most one;
- the same history from the item's strongest weights, where nothing can be solved back.

What people had is used to score guesses alone.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import torch

from ownview.attacks.guesses import Inapplicable
from ownview.attacks.scoring import AttackFinding, without
from ownview.attacks.solved_sums import Floats, SolvedSums, solved_sums
from ownview.base.display.amounts import in_people
from ownview.data.interactions import IntArray
from ownview.seam.portable import Factors, Linear, LowRank, SparseRows, Term

COUNTS, HISTORIES, PAIRS, NEAREST = "item counts", "items of one person", "pairs of one person", "nearest items"
_SEES = "the published weights"
_NEAREST = 10
_LEAST = 1e-3
"""Of a sum that is taken for more than rounding."""

_CLEARLY = 0.05
"""By so much a guess must be more precise than the control."""

_SOME = 0.01
"""Of all pairs of one person, which must be found."""


class People:
    """Who had what, of the items that were published.

    Args:
        histories: [n, m] compressed rows of 1 where a person had an item.
    """

    def __init__(self, histories: Any) -> None:
        self.histories = histories.tocsr().astype(bool)
        self.by_item = self.histories.tocsc()
        self.count = np.asarray(self.histories.sum(0)).reshape(-1)
        """[m] people who had each item."""

    @cached_property
    def of_one(self) -> list[tuple[int, int]]:
        """Items that one person alone had, and that person."""
        items = np.flatnonzero(self.count == 1)
        return [(int(item), int(self.by_item.indices[self.by_item.indptr[item]])) for item in items]

    @cached_property
    def together(self) -> Any:
        """[m, m] compressed rows: people who had both items."""
        whole = self.histories.astype(np.int32)
        return (whole.T @ whole).tocsr()

    def of_items(self, kept: IntArray) -> People:
        """The same people and some of the items; what was counted is not counted again."""
        found = People(self.histories[:, kept])
        if "together" in vars(self):
            found.together = self.together[kept][:, kept]
        return found

    def had(self, person: int) -> Any:
        """[m] whether the person had each item."""
        mask = np.zeros(len(self.count), dtype=bool)
        mask[self.histories.indices[self.histories.indptr[person] : self.histories.indptr[person + 1]]] = True
        return mask


def weights_attacked(form: Linear | Factors, people: People) -> list[AttackFinding]:
    """Every guess about a form as it was published, by name; one that has nothing to go by says why."""
    solved = _solved(form)
    found = [_nearest(form, people)]
    if isinstance(solved, Inapplicable):
        return [*(without(name, _SEES, solved) for name in (COUNTS, HISTORIES, PAIRS)), *found]
    return [_counts(solved, people), _histories(solved, people), _pairs(solved, people), *found]


def _solved(form: Linear | Factors) -> SolvedSums | Inapplicable:
    terms = [term for term in form.terms if term.regularization is not None] if isinstance(form, Linear) else []
    if not terms:
        return Inapplicable("the weights are not those of a symmetric sum solved in closed form")
    assert terms[0].regularization is not None
    return solved_sums(dense(terms[0]), terms[0].regularization)


def dense(term: Term) -> Floats:
    """[m, m] the weights of a term."""
    match term.weights:
        case LowRank(left, right):
            return np.asarray((left.double() @ right.double()).numpy())
        case SparseRows(offsets, columns, values):
            size = len(offsets) - 1
            whole = torch.zeros(size, size, dtype=torch.float64)
            owners = torch.repeat_interleave(torch.arange(size), offsets.long().diff())
            whole[owners, columns.long()] = values.double()
            return np.asarray(whole.numpy())
        case whole:
            return np.asarray(whole.double().numpy())


def _counts(solved: SolvedSums, people: People) -> AttackFinding:
    right = int((np.rint(solved.counts) == people.count).sum())
    share = right / len(people.count)
    sentence = f"the number of people who had it can be read for {right:,} of {len(people.count):,} items"
    sentence += f"; the least has {in_people(int(people.count.min()))}"
    return AttackFinding(COUNTS, _SEES, True, share > 0.5, sentence, {"exact": share, "items": len(people.count)})


def _histories(solved: SolvedSums, people: People) -> AttackFinding:
    claims = {item: solved.sums[item] > _noise(solved.sums[item]) for item, _ in people.of_one}
    return _scored(HISTORIES, "a reader of the row of an item that one person had", claims, people)


def _nearest(form: Linear | Factors, people: People) -> AttackFinding:
    claims = {}
    for item, _ in people.of_one:
        near = _row(form, item)
        near[item] = -np.inf
        claims[item] = np.zeros(len(near), dtype=bool)
        claims[item][np.argsort(-near)[: min(_NEAREST, len(near) - 1)]] = True
    who = f"a reader who takes the {_NEAREST} strongest weights of an item that one person had"
    return _scored(NEAREST, who, claims, people)


def _row(form: Linear | Factors, item: int) -> Floats:
    """[m] how near all items are to one: the sum of its weights, or the cosine of vectors."""
    if isinstance(form, Factors):
        vectors = form.items.double().numpy()
        lengths = np.linalg.norm(vectors, axis=1)
        return np.asarray(vectors @ vectors[item] / np.maximum(lengths * lengths[item], 1e-300))
    one = torch.tensor([item])
    total: Floats = sum((term.scores(one).numpy() for term in form.terms), start=np.zeros(_items(form)))
    return total


def _items(form: Linear) -> int:
    for term in form.terms:
        match term.weights:
            case LowRank(left, _):
                return len(left)
            case SparseRows(offsets, _, _):
                return len(offsets) - 1
            case whole:
                return len(whole)
    return 0 if form.bias is None else len(form.bias)


def _scored(name: str, who: str, claims: dict[int, Any], people: People) -> AttackFinding:
    """Precision and recall over items of one person, beside the same claims about the person after."""
    if not claims:
        return without(name, _SEES, Inapplicable("no item in it is one person's alone"))
    precision, recall, control = [], [], []
    owners = [person for _, person in people.of_one]
    for place, (item, person) in enumerate(people.of_one):
        claimed = claims[item].copy()
        claimed[item] = False
        mine, other = people.had(person), people.had(_another(owners, place, people))
        mine[item] = False
        if claimed.any():
            precision.append(float(mine[claimed].mean()))
            control.append(float(other[claimed].mean()))
        if mine.any():
            recall.append(float(claimed[mine].mean()))
    values = {
        "precision": _mean(precision), "recall": _mean(recall), "shuffled precision": _mean(control),
        "people": len({*owners}), "items": len(owners),
    }  # fmt: skip
    succeeds = values["precision"] > values["shuffled precision"] + _CLEARLY
    sentence = (
        f"{who} has that person's other items with precision {values['precision']:.3f} and recall "
        f"{values['recall']:.3f} ({in_people(len({*owners}))}; {values['shuffled precision']:.3f} "
        "are another's)"
    )
    return AttackFinding(name, _SEES, True, succeeds, sentence, values)


def _another(owners: list[int], place: int, people: People) -> int:
    """The next different owner, or any other."""
    after = [one for one in owners[place:] + owners[:place] if one != owners[place]]
    return after[0] if after else (owners[place] + 1) % people.histories.shape[0]


def _pairs(solved: SolvedSums, people: People) -> AttackFinding:
    """Claim pairs whose sum is above rounding and at most 1; with faded pairs several people can add up to such a sum.

    Beside it, two guesses among the same pairs, those whose sum is not above 1, by readers who have no sums: any of
    them, and as many of them as are claimed, those first whose two items most people had. Popular items share a person
    anyway; what the sums give away is what they say beyond that.
    """
    above = np.triu(np.ones(solved.sums.shape, dtype=bool), 1)
    low = above & (solved.sums < 1 + 20 * _LEAST)
    claimed = low & (solved.sums > _noise(solved.sums))
    truth = above & (people.together.toarray() == 1)
    number, both = int(claimed.sum()), int((claimed & truth).sum())
    values = {
        "precision": both / max(number, 1), "recall": both / max(int(truth.sum()), 1), "claimed": number,
        "shuffled precision": float(truth[low].mean()) if low.any() else 0.0,
        "precision by counts": _by_counts(low, truth, solved.counts, number),
    }  # fmt: skip
    by_chance = min(max(values["shuffled precision"], values["precision by counts"]), 0.5)
    succeeds = values["precision"] > by_chance + _CLEARLY and values["recall"] > _SOME
    sentence = "no pair of items looks like one person's"
    if number:
        sentence = (
            f"of {number:,} pairs of items that look like one person's, {both:,} are (precision "
            f"{values['precision']:.3f}, recall {values['recall']:.3f}; {values['shuffled precision']:.3f} of any "
            f"pairs that may be one person's, {values['precision by counts']:.3f} of as many by how popular their "
            "items are)"
        )
    return AttackFinding(PAIRS, _SEES, True, succeeds, sentence, values)


def _by_counts(low: Any, truth: Any, counts: Floats, number: int) -> float:
    """Precision of the `number` of pairs among `low` whose items have the largest product of counts."""
    if not number:
        return 0.0
    one, other = np.nonzero(low)
    likely = np.argpartition(-(counts[one] * counts[other]), number - 1)[:number]
    return float(truth[one[likely], other[likely]].mean())


def _noise(sums: Any) -> float:
    """Below which a sum may be 0: sums of people are never negative, so what is negative is rounding."""
    negative = -sums[sums < 0]
    return max(_LEAST, 3 * float(np.quantile(negative, 0.9))) if len(negative) else _LEAST


def _mean(values: list[float]) -> float:
    return float(np.mean(values)) if values else 0.0
