"""A model as it is published: without what too few people had, and with what its weights give away all the same.

Under an accounted budget nothing is left out: epsilon bounds what anything made of the noisy sums reveals about one
person, rare items included, while a rule by exact counts would itself be a release without an account. For
the same reason nothing is measured against people's histories there.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ownview.attacks.published_weights import dense
from ownview.attacks.scoring import AttackFinding
from ownview.data.interactions import IntArray
from ownview.pages.budgeted import agreement_covered
from ownview.pages.deployed_model import DeployedModel
from ownview.pages.fidelity import Fidelity
from ownview.pages.leaving_out import MIN_PEOPLE, LeftOut, left_out
from ownview.pages.offered import first
from ownview.pages.run_model import RunModel
from ownview.seam.portable import Factors, Linear


@dataclass(frozen=True)
class Exposure:
    """What a published model gives away.

    Args:
        rule: what was left out, or why nothing was.
        min_people: that an item must have; None under a budget.
        items_left_out: because fewer had them.
        pairs_left_out: because one person alone had both.
        findings: of attacks on the weights as they were written; none under a budget, or without histories.
        untried: why there are none.
    """

    rule: str
    min_people: int | None
    items_left_out: int
    pairs_left_out: int
    findings: tuple[AttackFinding, ...]
    untried: str = "the server has no histories to compare guesses with"

    def sentences(self, *, every: bool = True) -> list[str]:
        """For people: the rule, then what attacks read, or those alone that succeed, then that others may exist."""
        tried = [one.sentence for one in self.findings if one.applies and (every or one.succeeds)]
        return [self.rule, *tried, *self._end()]

    def _end(self) -> list[str]:
        if self.min_people is None:
            return []
        if not self.findings:
            return [f"no attack was tried on these weights: {self.untried}"]
        of_people = [one for one in self.findings if one.succeeds and "people" in one.values]
        if of_people:
            return ["histories of single people can be read off the weights"]
        return [
            "none of the attacks that were tried reads a person's history off these weights; others may, and only a "
            "budget bounds all of them"
        ]

    def plain(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "min_people": self.min_people,
            "items_left_out": self.items_left_out,
            "pairs_left_out": self.pairs_left_out,
            "sentences": self.sentences(),
            "attacks": [one.to_dict() for one in self.findings],
        }


@dataclass(frozen=True, eq=False)
class Published:
    """What of a model is published.

    Args:
        model: of a run or of a deployment.
        min_people: that an item must have; 1 leaves nothing out.
    """

    model: RunModel | DeployedModel
    min_people: int = MIN_PEOPLE

    @cached_property
    def left(self) -> LeftOut:
        """The model without what too few people had."""
        form = self.model.form
        if self.model.budgeted or self.min_people == 1:
            return LeftOut(form, np.arange(self.model.num_items), 0, 0)
        return left_out(form, self.model.people, self.min_people)

    @property
    def form(self) -> Linear | Factors:
        """Portable form of the items that are left."""
        return self.left.form

    @cached_property
    def offered(self) -> Linear | Factors:
        """The same, and behind them the items without interactions, where any are offered."""
        offered = self.model.offered
        return self.form if offered is None else offered.beside(self.form, self.left.kept)

    @property
    def positions(self) -> list[int]:
        """[k] among all items of those that are left, and of those without interactions."""
        offered = self.model.offered
        return [*self.left.kept.tolist(), *([] if offered is None else offered.new)]

    @property
    def ids(self) -> list[Any]:
        """[k] of the items that are left, and of those without interactions."""
        every = self.model.ids  # a list of all of them, made when it is asked for
        return [every[item] for item in self.positions]

    @property
    def titles(self) -> list[str]:
        """[k] of the same."""
        return [self.model.titles[item] for item in self.positions]

    @cached_property
    def known(self) -> IntArray:
        """[k] positions, the best known item first: by people, or under a budget by the model's own weights alone."""
        weight = strength(self.form) if self.model.budgeted else self.model.popularity[self.left.kept]
        known = np.argsort(-weight, kind="stable")
        return np.concatenate([known, np.arange(len(known), len(self.positions))])

    def agreement_of(self, agreed: Fidelity) -> dict[str, Any]:
        """What is written of the agreement; under a budget nothing that was measured."""
        if self.model.budgeted:
            return agreement_covered()
        return {**agreed.plain(), "sentence": agreed.sentence()}

    def fidelity(self, form: Linear | Factors) -> Fidelity:
        """How far a form of the items that are left recommends what the model does."""
        return self.model.fidelity(first(form, len(self.left.kept)), self.left.kept)

    def exposure(self, form: Linear | Factors) -> Exposure:
        """What the form gives away, exactly as it is written."""
        if self.model.budgeted:
            rule = (
                "items of few people are in it: the budget covers them, and to leave them out by exact counts would "
                "not be covered"
            )
            return Exposure(rule, None, 0, 0, ())
        findings = self.model.attacked(first(form, len(self.left.kept)), self.left.kept)
        rule = self.left.sentence(self.min_people)
        return Exposure(rule, self.min_people, self.left.items, self.left.pairs, findings)


def strength(form: Linear | Factors) -> Any:
    """[m] how much a form says about each item, from its numbers alone."""
    if form.bias is not None:
        return form.bias.double().numpy()
    if isinstance(form, Factors):
        return np.linalg.norm(form.items.double().numpy(), axis=1)
    return sum(np.abs(dense(term)).sum(0) for term in form.terms)
