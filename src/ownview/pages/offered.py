"""Items without interactions in a page or an export: carried by text from what is published, and from no more."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from scipy import sparse

from ownview.base.items.item_text import term_vectors
from ownview.data.interactions import IntArray, Interactions
from ownview.parts.text.carried import carrier
from ownview.seam.portable import Factors, Linear, LowRank, SparseRows, Term


@dataclass(frozen=True, eq=False)
class Offered:
    """New items behind those that are published.

    Args:
        data: items of the run, and behind them the new ones (`data.unseen_items`).
        taken: how many the run has.
    """

    data: Interactions
    taken: int

    @property
    def new(self) -> list[int]:
        """Positions of the new items."""
        return list(range(self.taken, self.data.num_items))

    def beside(self, form: Linear | Factors, kept: IntArray) -> Linear | Factors:
        """A form of the published items `kept`, with the new ones behind; left-out items play no part in it."""
        assert self.data.about is not None  # `with_untaken`
        positions = [*kept.tolist(), *self.new]
        made = carrier(term_vectors(self.data.about)[positions], len(self.new)).portable(form)
        assert isinstance(made, Linear | Factors)
        return made


def first(form: Linear | Factors, count: int) -> Linear | Factors:
    """The form of the first items alone."""
    bias = None if form.bias is None else form.bias[:count]
    if isinstance(form, Factors):
        return replace(form, items=form.items[:count], bias=bias)
    return replace(form, terms=tuple(_first(term, count) for term in form.terms), bias=bias)


def _first(term: Term, count: int) -> Term:
    match term.weights:
        case LowRank(left, right):
            return replace(term, weights=LowRank(left[:count], right[:, :count]))
        case SparseRows(offsets, columns, values):
            size = len(offsets) - 1
            whole = sparse.csr_matrix((values.numpy(), columns.numpy(), offsets.numpy()), shape=(size, size))
            part = whole[:count][:, :count].tocsr()
            arrays = (part.indptr.astype("int64"), part.indices.astype("int64"), part.data)
            return replace(term, weights=SparseRows(*(torch.from_numpy(one) for one in arrays)))
        case whole:
            return replace(term, weights=whole[:count, :count])
