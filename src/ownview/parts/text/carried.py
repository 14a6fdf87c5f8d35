"""Scores and vectors of items with interactions, carried by text to items without any.

Let s_i be any value of a taken item i of w: a model's score of it for one user, its column of weights, its vector. A
new item c has the value

    s_c = mean(s) + sum_i (s_i - mean(s)) [(K + mu I)^-1 k_c]_i,

ridge regression of values on text with an intercept: K [w, w] the kernel of the taken items' texts, k_c [w] that of c
with them. It is linear in s, so carrying a user's scores, the columns B of a closed form or the item vectors of a model
that multiplies them comes to the same numbers. Nothing is sent for it: text is public.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from ownview.seam.portable import Factors, Linear, LowRank, Portable, Refusal, SparseRows, Term, in_sums

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

MU = 1.0
"""The ridge, in units of an item's likeness to itself. Fixed: half and twice as much cost less than .006 of NDCG@10."""


@dataclass(frozen=True, eq=False)
class Carrier:
    """Values of w taken items carried to c new ones, which stand behind them.

    Args:
        weights: [w, c] by which a new item's value is a sum of those of taken ones; each column adds up to 1.
    """

    weights: Tensor

    def rows(self, values: Tensor) -> Tensor:
        """[w + c, ...] of values [w + c, ...] whose last c rows say nothing: those are carried."""
        taken = values[: len(self.weights)]
        return torch.cat([taken, torch.tensordot(self.weights.T.to(taken), taken, 1)])

    def columns(self, values: Tensor) -> Tensor:
        """[..., w + c] likewise."""
        taken = values[..., : len(self.weights)]
        return torch.cat([taken, taken @ self.weights.to(taken)], dim=-1)

    def _padded(self, rows: Tensor) -> Tensor:
        """[w + c, ...] with zeros where rows of new items are missing."""
        missing = sum(self.weights.shape) - len(rows)
        return torch.cat([rows, rows.new_zeros(missing, *rows.shape[1:])]) if missing else rows

    def portable(self, form: Portable) -> Portable:
        """A model's form with new items carried; what a history says through a new item stays as the form has it."""
        form = in_sums(form)
        if isinstance(form, Refusal):
            return form
        bias = None if form.bias is None else self.columns(form.bias)
        if isinstance(form, Factors):
            return replace(form, items=self.rows(form.items), bias=bias)
        return Linear(tuple(map(self._term, form.terms)), bias, form.left_out)

    def _term(self, term: Term) -> Term:
        """The same with its columns carried, and rows without weights for new items where it has none."""
        weights = term.weights
        if isinstance(weights, SparseRows):
            weights = _dense(weights)
        carried: Tensor | LowRank
        if isinstance(weights, LowRank):
            carried = LowRank(self._padded(weights.left), self.columns(weights.right))
        else:
            carried = self._padded(self.columns(weights))
        return replace(term, weights=carried)


def carrier(vectors: csr_matrix, num_new: int, mu: float = MU) -> Carrier:
    """The carrier to the last `num_new` of the items, by their text vectors [m, terms] of length 1 or 0.

    Solved densely in float64: the kernel of the taken items is w x w.
    """
    from scipy import linalg  # noqa: PLC0415 - slow to import

    taken, new = vectors[: vectors.shape[0] - num_new], vectors[vectors.shape[0] - num_new :]
    kernel = (taken @ taken.T).toarray()
    kernel[np.diag_indices_from(kernel)] += mu
    like = (taken @ new.T).toarray()
    solved = linalg.cho_solve(linalg.cho_factor(kernel, overwrite_a=True), like, overwrite_b=True)
    return Carrier(torch.from_numpy(solved + (1 - solved.sum(0)) / len(solved)))


def _dense(rows: SparseRows) -> Tensor:
    count = len(rows.offsets) - 1
    whole = torch.zeros(count, count, dtype=rows.values.dtype)
    whole[torch.repeat_interleave(torch.arange(count), rows.offsets.diff()), rows.columns.long()] = rows.values
    return whole
