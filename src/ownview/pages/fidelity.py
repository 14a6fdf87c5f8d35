"""How far a portable form recommends what the model does, measured on real histories."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor

from ownview.base.randomness import derive
from ownview.data.interactions import IntArray
from ownview.data.timeline import Timeline
from ownview.evaluation.ranking import NONE, Ranker
from ownview.runs.training.trainer import Trainer
from ownview.seam.portable import Factors, Linear

SAMPLE = 500
"""Histories at most: by them a share of lists of ten is known to about a hundredth."""

_K = 10


class Fidelity(NamedTuple):
    """A portable form beside the model it comes from.

    overlap: mean share of the model's top ten that the form has in its own
    users:   whose histories were asked; or items, each of which was a whole history
    hits:    HR@10 on test of the model and of the form, for those of them that have a right answer; None without any
    of_items: whether histories of one item were asked, for want of others
    """

    overlap: float
    users: int
    hits: tuple[float, float] | None
    of_items: bool = False

    def sentence(self) -> str:
        """For people."""
        asked = f"{self.users:,} histories of one item" if self.of_items else f"the histories of {self.users:,} people"
        share = f"{100 * self.overlap:.1f} % of its ten recommendations"
        return f"{share} are those of the full model, on average over {asked}"

    def plain(self) -> dict[str, Any]:
        """For JSON."""
        hits = (
            {} if self.hits is None else {"test_hit_rate_at_10": dict(zip(("model", "here"), self.hits, strict=True))}
        )
        return {"top_ten_overlap": self.overlap, "items" if self.of_items else "users": self.users, **hits}


class Form(Protocol):
    """Scores of m items as a function of a history."""

    def scores(self, history: Tensor) -> Tensor:
        """[m], or [1] where all are equal, for a history [L]."""


class HistoryScorer:
    """Scores by a portable form, from what is known of users.

    Args:
        form: of the model, for some items.
        kept: [k] which; others come last, and count for nothing in a history.
        known: of everybody, with all items.
        num_items: of all of them.
    """

    def __init__(self, form: Form, kept: IntArray, known: Timeline, num_items: int) -> None:
        self.form, self.known = form, known
        self.kept = torch.from_numpy(kept)
        self.place = torch.full((num_items,), -1).index_copy_(0, self.kept, torch.arange(len(kept)))

    def scores(self, users: Tensor, items: Tensor | None) -> Tensor:
        """[B, C] of `items` for `users`, of all items where `items` is None."""
        every = torch.stack([self._one(self.known.items.of(user).cpu()) for user in users.tolist()])
        every = every.to(users.device)
        return every if items is None else every.gather(1, items)

    def _one(self, history: Tensor) -> Tensor:
        places = self.place[history]
        found = self.form.scores(places[places >= 0]).expand(len(self.kept))
        last = torch.full((len(self.place),), float(found.min()) - 1.0, dtype=found.dtype)
        return last.index_copy_(0, self.kept, found)


def fidelity(form: Form, kept: IntArray, trainer: Trainer, ranker: Ranker) -> Fidelity:
    """Over a sample of the users that the ranker's question is about and that have a history.

    Args:
        form: for the items `kept`.
        kept: [k] positions among all items.
        trainer: has the model.
        ranker: asks.
    """
    question = ranker.question
    has_some = np.flatnonzero(question.known.items.lengths.cpu().numpy())
    drawn = np.random.default_rng(derive(0, "agreement")).permutation(has_some)[:SAMPLE]
    users = np.sort(drawn)
    asked = replace(ranker, users=torch.from_numpy(users).to(ranker.device))
    scorers = (trainer.asked(question), HistoryScorer(form, kept, question.known, ranker.num_items))
    both = [[{*row} - {NONE} for row in asked.top(one, _K).tolist()] for one in scorers]
    shares = [len(theirs & ours) / max(len(theirs), 1) for theirs, ours in zip(*both, strict=True)]
    answers = [{*question.answers(user)} for user in users.tolist()]
    return Fidelity(
        float(np.mean(shares)), len(users), (_hits(both[0], answers), _hits(both[1], answers)) if any(answers) else None
    )


def fidelity_by_item(form: Linear | Factors, kept: IntArray, whole: Linear | Factors) -> Fidelity:
    """The same where no histories are at hand: a sample of the items that are kept, each as a whole history."""
    items = np.sort(np.random.default_rng(derive(0, "agreement")).permutation(len(kept))[:SAMPLE])
    shares = []
    for item in items.tolist():
        mine = form.scores(torch.tensor([item])).expand(len(kept)).clone()
        full = whole.scores(torch.from_numpy(kept[[item]])).clone()
        mine[item] = full[kept[item]] = -torch.inf
        most = min(_K, len(kept) - 1)
        theirs = {*full.topk(most).indices.tolist()}
        shares.append(len(theirs & {*kept[mine.topk(most).indices.numpy()].tolist()}) / max(len(theirs), 1))
    return Fidelity(float(np.mean(shares)), len(items), None, of_items=True)


def _hits(lists: list[set[int]], answers: list[set[int]]) -> float:
    """Share of those who have a right answer whose list holds one."""
    return float(np.mean([bool(shown & right) for shown, right in zip(lists, answers, strict=True) if right]))
