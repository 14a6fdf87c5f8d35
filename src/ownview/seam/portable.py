"""Portable forms: a finished model's scores as a function of a history, as a value that any device can carry.

A model that says which form its scores have can be taken along: into a page, onto a telephone, into any language.
Exporters read the form and never a method's name. Two forms are sums and vectors that fit in a page, `Linear` and
`Factors`; two are networks that need a runtime (`phones`), `Attention` and `Blended`; a model that has none says why
(`Refusal`).

A history is a list of items, oldest first. One that stands in it twice counts once, at its latest place.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import torch
from torch import Tensor


class SparseRows(NamedTuple):
    """A matrix [m, m] of few values: row r has values[offsets[r] : offsets[r + 1]] in the columns of the same places.

    offsets: [m + 1]
    columns: [c]
    values:  [c]
    """

    offsets: Tensor
    columns: Tensor
    values: Tensor


class LowRank(NamedTuple):
    """A matrix [m, m] that is left right, with left [m, r] and right [r, m]."""

    left: Tensor
    right: Tensor


@dataclass(frozen=True, eq=False)
class Term:
    """sum_k exp(-k / fades) W[h_k], h_k the k-th latest item of a history, k from 0, for k below `most`.

    Args:
        weights: W [m, m]; row h holds what item h of the history adds to the score of every item.
        fades: places after which an item counts 1/e; infinite where all count the same.
        most: latest items that are looked at; None for all.
        regularization: lambda where W = I - P / diag(P), P = (S + lambda I)^-1, S a sum over people: such weights can
            be solved back into S, by the publisher and by any reader. None for other weights.
        public: whether W is computed from public item data alone, and so reveals nothing about users.
    """

    weights: Tensor | SparseRows | LowRank
    fades: float = math.inf
    most: int | None = None
    regularization: float | None = None
    public: bool = False

    def counts(self, length: int) -> Tensor:
        """[l] weights of the latest l = min(length, most) items of a history, oldest first."""
        size = length if self.most is None else min(length, self.most)
        return torch.exp(-torch.arange(size - 1, -1, -1, dtype=torch.float64) / self.fades)

    def scores(self, history: Tensor) -> Tensor:
        """[m] in float64; `history` [L] has every item once."""
        counts = self.counts(len(history))
        latest = history[len(history) - len(counts) :]
        if isinstance(self.weights, LowRank):
            return (counts @ self.weights.left[latest].double()) @ self.weights.right.double()
        if isinstance(self.weights, SparseRows):
            return self._sparse(self.weights, latest, counts)
        return counts @ self.weights[latest].double()

    def _sparse(self, weights: SparseRows, latest: Tensor, counts: Tensor) -> Tensor:
        begins, ends = weights.offsets[latest].tolist(), weights.offsets[latest + 1].tolist()
        spans = [slice(*span) for span in zip(begins, ends, strict=True)]
        found = torch.zeros(len(weights.offsets) - 1, dtype=torch.float64)
        if spans:
            # Whole rows are copied: places of single cells would take longer to work out than their sum.
            values, columns = (torch.cat([part[span] for span in spans]) for part in (weights.values, weights.columns))
            lengths = torch.tensor([span.stop - span.start for span in spans])
            found.index_add_(0, columns.long(), torch.repeat_interleave(counts, lengths) * values.double())
        return found


@dataclass(frozen=True, eq=False)
class Linear:
    """score = bias + sum of terms.

    Args:
        terms: none where everybody has the same scores.
        bias: [m] of items, the same for all users; None for 0.
        left_out: what the model does besides, in sentences.
    """

    terms: tuple[Term, ...]
    bias: Tensor | None = None
    left_out: tuple[str, ...] = ()

    def scores(self, history: Tensor) -> Tensor:
        """[m] for a history [L], in float64."""
        once = latest_places(history)
        found = [term.scores(once) for term in self.terms]
        return sum(found, start=torch.zeros(1, dtype=torch.float64) if self.bias is None else self.bias.double())


@dataclass(frozen=True)
class Ridge:
    """u = (seen sum_H q q^T + every sum_all q q^T + w I)^-1 target sum_H q, w = ridge (|H| + count)^exponent.

    The vector with the least weighed squared error, in closed form; 0 for an empty history.
    """

    seen: float
    every: float
    target: float
    ridge: float
    count: float = 0.0
    exponent: float = 0.0

    def vector(self, items: Tensor, bias: Tensor, history: Tensor) -> Tensor:
        """[d] of a history [l], every item once, for item vectors [m, d]; the bias plays no part."""
        mine = items[history]
        weight = self.ridge * (len(history) + self.count) ** self.exponent
        left = self.seen * mine.T @ mine + self.every * items.T @ items + weight * _identity(items)
        solved: Tensor = torch.linalg.solve(left, self.target * mine.sum(0))
        return solved


@dataclass(frozen=True)
class Logistic:
    """u with little cross-entropy: the items of a history against all others, which weigh `negatives` times as much.

    loss(u) = sum_H softplus(-s) + c sum_others softplus(s) + ridge / 2 |u|^2, s = u . q + bias, c = negatives |H| /
    (m - |H|), or 0 where there are no others. From u = 0 so many steps u <- u - A^-1 gradient, where
    A = (sum_H q q^T + c sum_others q q^T) / 4 + ridge I bounds the curvature, so that no step makes the loss greater.
    """

    negatives: float
    ridge: float = 1.0
    steps: int = 10

    def vector(self, items: Tensor, bias: Tensor, history: Tensor) -> Tensor:
        """[d] of a history [l], every item once, for item vectors [m, d] and a bias [m]."""
        others = len(items) - len(history)
        share = self.negatives * len(history) / others if others else 0.0
        seen = torch.zeros(len(items), dtype=items.dtype)
        seen[history] = 1
        weight = seen + (1 - seen) * share  # in the precision of the items, which two plain numbers would not have
        bound = (items.T * weight) @ items / 4 + self.ridge * _identity(items)
        user = torch.zeros(items.shape[1], dtype=items.dtype)
        for _ in range(self.steps):
            error = weight * (torch.sigmoid(items @ user + bias) - seen)
            user = user - torch.linalg.solve(bound, error @ items + self.ridge * user)
        return user


@dataclass(frozen=True, eq=False)
class Factors:
    """score = u . q_i + bias_i, u computed from the history by the fold-in.

    Args:
        items: [m, d] the vectors q.
        fold_in: how a new device computes its vector.
        bias: [m]; None for 0.
        left_out: what the model does besides, in sentences.
    """

    items: Tensor
    fold_in: Ridge | Logistic
    bias: Tensor | None = None
    left_out: tuple[str, ...] = ()

    def scores(self, history: Tensor) -> Tensor:
        """[m] for a history [L], in float64; the bias alone for an empty one."""
        items, once = self.items.double(), latest_places(history)
        bias = torch.zeros(len(items), dtype=torch.float64) if self.bias is None else self.bias.double()
        return items @ self.fold_in.vector(items, bias, once) + bias if len(once) else bias


class SequenceNetwork(Protocol):
    """A causal transformer over items in order (`parts.sequences.transformer`)."""

    @property
    def blocks(self) -> int:
        """One after the other."""

    @property
    def heads(self) -> int:
        """Of attention."""

    @property
    def length(self) -> int:
        """Items that are looked back at."""

    @property
    def frequency(self) -> float:
        """Weight of a filter beside attention; 0 for none."""

    @property
    def temperature(self) -> float:
        """Scores are cosines over it; 0 where they are products."""

    def table(self, p: dict[str, Tensor]) -> Tensor:
        """[m, d] what the network's output is multiplied with."""

    def low_pass(self, like: Tensor) -> Tensor:
        """[length, length] the filter's matrix, in the type of another tensor."""

    def scores(self, p: dict[str, Tensor], rows: Tensor, mask: Tensor) -> Tensor:
        """[m] after a sequence: rows [L] of items, mask [L] 1 for an item and 0 for padding."""


@dataclass(frozen=True, eq=False)
class Attention:
    """score = h . e_i, h the network's output for the history. Repeated items are seen repeatedly.

    Args:
        network: its shape.
        values: its parameters by name; `items` [m, d] holds the vectors e, of which a temperature takes directions.
        left_out: what the model does besides, in sentences.
    """

    network: SequenceNetwork
    values: dict[str, Tensor]
    left_out: tuple[str, ...] = ()

    def scores(self, history: Tensor) -> Tensor:
        """[m] for a history [L]; by the places alone for an empty one."""
        rows = history if len(history) else history.new_zeros(1)
        mask = torch.full((len(rows),), float(len(history) > 0))
        return self.network.scores(self.values, rows, mask)


@dataclass(frozen=True, eq=False)
class Blended:
    """score = sum over parts k of w_k (s_k - mean(s_k)) / standard deviation(s_k), over all items.

    Args:
        parts: forms for the same m items.
        weights: w for people whose latest item is of now, and for people who come after a pause.
    """

    parts: tuple[Linear | Factors | Attention, ...]
    weights: tuple[tuple[float, ...], tuple[float, ...]]

    @property
    def left_out(self) -> tuple[str, ...]:
        """What the parts do besides, in sentences."""
        return tuple(dict.fromkeys(one for part in self.parts for one in part.left_out))

    def scores(self, history: Tensor, *, after_pause: bool = False) -> Tensor:
        """[m] for a history [L], in float64."""
        total = torch.zeros(1, dtype=torch.float64)
        for part, weight in zip(self.parts, self.weights[after_pause], strict=True):
            centred = part.scores(history).double()
            centred = centred - centred.mean()
            total = total + weight * centred / centred.square().mean().sqrt().clamp(min=1e-12)
        return total


@dataclass(frozen=True)
class Refusal:
    """A model that has no such form, and why: half a sentence that goes on from the model's name."""

    reason: str = (
        "does not say how a device could score with what is shared alone: by a sum over the items of a history, or by "
        "one vector times shared item vectors"
    )


Portable = Linear | Factors | Attention | Blended | Refusal
"""What a model may answer."""


def in_sums(form: Portable) -> Linear | Factors | Refusal:
    """The form if it needs no runtime; for a network a refusal that names the way to export it."""
    if isinstance(form, Attention | Blended):
        network = "a network over the history" if isinstance(form, Attention) else "several models' scores together"
        return Refusal(f"scores by {network}; ownview export --onnx takes it along")
    return form


_DECIDES = ("scores", "params", "client")
"""Methods that decide a model's scores."""


def overruled(model: type) -> Refusal | None:
    """Refuse if a subclass overrides scoring but inherits `portable`."""
    order = model.__mro__

    def defined(name: str) -> int:
        return next((place for place, one in enumerate(order) if name in vars(one)), len(order))

    if defined("portable") <= min(map(defined, _DECIDES)):
        return None
    return Refusal()


def latest_places(history: Tensor) -> Tensor:
    """[l] the different items of a history, oldest first, each at its latest place."""
    kept = list(dict.fromkeys(reversed(history.tolist())))
    return torch.tensor(kept[::-1], dtype=torch.long)


def _identity(items: Tensor) -> Tensor:
    return torch.eye(items.shape[1], dtype=items.dtype)
