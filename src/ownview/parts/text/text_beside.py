"""Text at home beside a method of sums: score = s + text loud z K.

s [m] are the method's scores and z [m] has exp(-k / text_recency) for the client's k-th latest item. K [m, m] is the
likeness of items by their text, which is public (`seam.features`): nothing more is sent, and no budget is spent. The
number loud is the root mean square of the weights that the method's scores are made of, which the server works out of
what it has released, so that one weight suits sums of any size, with noise and without.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from ownview.base.items.item_text import term_vectors
from ownview.config.search import OneOf
from ownview.config.settings import Settings, setting
from ownview.parts.sequences.places import faded, latest, numbers_held, reach, weighed_rows
from ownview.parts.text.carried import MU
from ownview.parts.text.likeness import nearest_by_text
from ownview.seam.client import Client, Reporting
from ownview.seam.features import item_likeness
from ownview.seam.initial import Constant
from ownview.seam.portable import Linear, Portable, SparseRows, Term
from ownview.seam.roles import received
from ownview.seam.server import Arrived, Server, Solved, Sums
from ownview.seam.training import Params, World

Loudness = Callable[[Params], Tensor]
"""New values of the server's -> [] root mean square of the weights."""

UNDER_A_BUDGET = 10.0
"""The weight that private forms take on all data: choosing it on validation would spend budget. Of 3.3,
10, 33 and 100 it had the highest mean NDCG@10 on goodbooks' validation at epsilon 1, 2, 4 and 8, two draws each."""


@dataclass(frozen=True)
class TextSettings(Settings):
    """The weight of text beside sums."""

    text: float = setting(
        0.0, "weight of the items' text beside the sums, in root mean squares of the weights; 0: none",
        low=0, search=OneOf((0.0, 3.0, 10.0, 30.0)), afterwards=True,
    )  # fmt: skip
    text_recency: float = setting(
        2.0,
        "places after which an item counts 1/e in what text says; inf for data without order",
        above=0,
        infinite=True,
        afterwards=True,
    )
    new_items_ridge: float = setting(
        MU, "ridge of the regression on text that carries weights to items nobody has taken", above=0, afterwards=True
    )

    def client_with_text(self, client: Client, world: World) -> Client:
        """The client's half with text, which must have a timeline called past."""
        if not self.text:
            return client
        work, m, span = client.work, world.num_items, self.text_recency
        assert isinstance(work, Reporting)

        def scores(p: Params) -> Tensor:
            places = latest(p, "past", reach(span))
            likeness = weighed_rows(faded(places, span), places.rows, p["likeness"])
            return client.scores(p) + self.text * p["loud"] * likeness

        def working(length: int) -> int:
            return work.needed(length) + numbers_held(min(length, reach(span)), m, m)

        params = {**client.params, "likeness": item_likeness(world), "loud": received(initial=Constant(1.0))}
        return replace(client, params=params, scores=scores, work=replace(work, working=working))

    def server_with_text(self, server: Server, loudness: Loudness, made: str) -> Server:
        """The server's half: loudness is worked out whenever the values called `made` are."""
        sums = server.combine
        if not self.text:
            return server
        assert isinstance(sums, Sums)

        def combine(total: Params, values: Params, arrived: Arrived) -> Params:
            new = sums.combine(total, values, arrived)
            return {**new, "loud": loudness({**values, **new})} if made in new else new

        def again(total: Params, kept: Params) -> Solved:
            assert sums.again is not None
            found = sums.again(total, kept)
            return replace(found, values={**found.values, "loud": loudness(found.values)})

        return replace(server, combine=replace(sums, combine=combine, again=again if sums.again else None))

    def portable_with_text(self, form: Portable, received: Params, world: World) -> Portable:
        """One more term."""
        if not self.text or world.items is None or not isinstance(form, Linear):
            return form
        kernel = nearest_by_text(term_vectors(world.items), world.num_items)
        weighed = SparseRows(kernel.offsets, kernel.columns, kernel.values * self.text * received["loud"])
        return replace(form, terms=(*form.terms, Term(weighed, self.text_recency, public=True)))


def loudness(weights: Tensor) -> Tensor:
    """[] root mean square of a matrix of weights; 1 where all are 0, so that text is left."""
    return _or_one(weights.square().mean().sqrt())


def loudness_through(vectors: Tensor, weights: Tensor) -> Tensor:
    """[] of V B_k^T over scales k, for item vectors V [m, r] and weights B [m, K r], without making it."""
    rank = vectors.shape[1]
    parts = torch.split(weights, rank, dim=1)
    inner = torch.stack([((vectors.T @ vectors) * (part.T @ part)).sum() for part in parts]).sum()
    return _or_one((inner / (len(vectors) * weights.numel() / rank)).clamp(min=0).sqrt())


def _or_one(loud: Tensor) -> Tensor:
    return torch.where(loud > 0, loud, 1.0)
