"""The model of a deployment for a page or an export: what its server has, and how many people its sums speak of.

The server has no histories. Where the weights are those of a sum that it holds, that sum bounds the number of people
from below: one person adds at most 1 to an item, and to a pair of items. A clip only makes what a person adds smaller.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

from ownview.attacks.scoring import AttackFinding
from ownview.base.errors import SettingError
from ownview.base.items.item_table import ItemTable
from ownview.base.version import __version__
from ownview.data.interactions import IntArray
from ownview.deploy.agreement import Agreement as Agreed
from ownview.deploy.coordination.participants import read_log
from ownview.deploy.folders import ServerFolder
from ownview.deploy.generations import Generations
from ownview.federation.server import AggregationServer
from ownview.pages.fidelity import Fidelity, fidelity_by_item
from ownview.pages.offered import Offered
from ownview.pages.run_model import distinct_titles, leaves_a_device
from ownview.parts.pairs.positive_definite import ease_weights
from ownview.privacy.budget import budget
from ownview.privacy.masks import masked_sums
from ownview.seam.portable import Factors, Linear, Refusal, Term, in_sums, overruled

_ROUNDING = 0.05
"""By which masks, which go by whole steps, may make a sum larger than it is."""

_SAME = 1e-3
"""How far weights may be from those of a sum that they were solved from."""


@dataclass(frozen=True, eq=False)
class CountedSums:
    """People by sums: at least so many had each item, and both of two.

    Args:
        sums: [m, m] over people, each of whom adds at most 1 to a number.
    """

    sums: Tensor

    @cached_property
    def together(self) -> Any:
        """[m, m] compressed rows."""
        return sparse.csr_matrix(np.ceil(np.maximum(self.sums.double().numpy() - _ROUNDING, 0.0)).astype(np.int32))

    @cached_property
    def count(self) -> IntArray:
        """[m] numbers, one an item."""
        return np.asarray(self.together.diagonal(), dtype=np.int64)


@dataclass(frozen=True, eq=False)
class DeployedModel:
    """A deployment whose model has a portable form.

    Args:
        folder: of its server.
        agreed: with all places.
        form: the portable form of the model's scores.
        sums: [m, m] that the weights were solved from; None where they are not of such a sum.
        known_facts: about it, in plain values.
        budgeted: whether it was made under an accounted budget, which places keep account of.
    """

    folder: ServerFolder
    agreed: Agreed
    form: Linear | Factors
    sums: Tensor | None
    known_facts: dict[str, Any]
    budgeted: bool
    offered: Offered | None = None

    @classmethod
    def of(cls, folder: ServerFolder) -> DeployedModel:
        """Read the newest round that was counted.

        Raises:
            SettingError: no round is done, or the model has no form that a device could score with.
        """
        agreed = folder.agreement()
        state = Generations(folder.rounds, looking=True).newest
        if state is None or not state.round:
            raise SettingError(f"{folder.path}: no round is done yet; expected a deployment with a model")
        terms = agreed.terms()
        server = AggregationServer(terms)
        server.unpack(state.values)
        received = server.download(state.round, torch.zeros(0, dtype=torch.long)).values
        form = in_sums(overruled(type(agreed.model)) or agreed.model.portable(received, terms.world))
        if isinstance(form, Refusal):
            raise SettingError(
                f"{folder.path}: {agreed.label} cannot be taken along: it {form.reason}; take one that can, such as "
                "fedease"
            )
        exact = agreed.federation.privacy == "none" or masked_sums(agreed.federation.privacy) is not None
        budgeted = budget(agreed.federation.privacy) is not None
        sums = solved_from(form, server.held) if exact and not budgeted else None
        users = {one for counted in read_log(folder.rounds / "participants.jsonl") for one in counted.clients}
        facts = _facts(agreed, state.round, len(users), terms.client, form)
        return cls(folder, agreed, form, sums, facts, budgeted)

    @property
    def num_items(self) -> int:
        """Of the agreement."""
        return len(self.agreed.items)

    @property
    def ids(self) -> list[Any]:
        """[m] of the items."""
        return list(self.agreed.items)

    @cached_property
    def titles(self) -> list[str]:
        """[m] what people call the items; ids behind titles that several items have."""
        return distinct_titles([self.agreed.title(item) for item in range(self.num_items)], self.ids)

    @property
    def titled(self) -> bool:
        """Whether items have titles, and not their ids alone."""
        return bool(self.agreed.titles)

    @property
    def about(self) -> ItemTable | None:
        """What the agreement says of the items."""
        return ItemTable(self.agreed.about) if self.agreed.about else None

    @cached_property
    def people(self) -> CountedSums:
        """How many people had what, at least.

        Raises:
            SettingError: the server cannot know.
        """
        if self.sums is None:
            raise SettingError(
                f"{self.folder.path}: the server of {self.agreed.label} holds no sum that tells how many people had an "
                "item, so that those of few cannot be left out; --min-people 1 publishes all"
            )
        return CountedSums(self.sums)

    @property
    def popularity(self) -> IntArray:
        """[m] people who had each item, at least; nothing is known where there is no such sum."""
        return np.zeros(self.num_items, dtype=np.int64) if self.sums is None else self.people.count

    def fidelity(self, form: Linear | Factors, kept: IntArray) -> Fidelity:
        """How far a form of some items recommends what the model does, item by item."""
        return fidelity_by_item(form, kept, self.form)

    def attacked(self, form: Linear | Factors, kept: IntArray) -> tuple[AttackFinding, ...]:
        """Nothing: guesses could be compared with no histories."""
        return ()

    def facts(self) -> dict[str, Any]:
        """What it is and where it comes from, in plain values."""
        return dict(self.known_facts)

    def charge(self) -> None:
        """Nothing more is released: places counted what they sent."""


def solved_from(form: Linear | Factors, held: dict[str, Tensor]) -> Tensor | None:
    """The sum [m, m] of the server's that the weights of a form are B = I - P / diag(P) of, found by solving it."""
    terms = [one for one in form.terms if one.regularization is not None] if isinstance(form, Linear) else []
    for term in terms:
        for sums in held.values():
            if isinstance(term.weights, Tensor) and sums.shape == term.weights.shape and _weights_of(sums, term):
                return sums
    return None


def _weights_of(sums: Tensor, term: Term) -> bool:
    assert term.regularization is not None
    assert isinstance(term.weights, Tensor)
    return bool((ease_weights(sums.double(), term.regularization) - term.weights.double()).abs().max() < _SAME)


def _facts(agreed: Agreed, rounds: int, users: int, client: Any, form: Linear | Factors) -> dict[str, Any]:
    model, sent = agreed.model, leaves_a_device(client)
    return {
        "ownview": __version__,
        "method": {
            "name": agreed.label,
            "title": str(getattr(model, "title", model.name)),
            "summary": model.summary,
            "paper": model.paper,
        },
        "settings": dict(agreed.settings),
        "rounds": rounds,
        "data": {
            "name": "a deployment",
            "title": "what people have on devices of their own",
            "users": users,
            "items": len(agreed.items),
            "terms": "not known: data of one's own",
        },
        "protocol": "none",
        "figures": "nothing was measured here: the server has no histories",
        "notes": [],
        "left_out": list(form.left_out),
        "privacy": {
            "federated": True,
            "simulated": False,
            "leaves_a_device": sent,
            "noise": agreed.federation.privacy,
            "sentence": f"devices of their own took part, and sent: {'; '.join(sent)}",
        },
        "made_with": {"ownview": __version__, "revision": None, "packages": None},
    }
