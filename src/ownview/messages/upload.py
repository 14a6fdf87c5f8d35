"""The message from clients to the server.

One message is one client's. In a simulation those of a block of B clients stand side by side, so that nothing has to be
written out; `messages.codec` turns one client's into bytes and back.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, fields, replace

import torch
from torch import Tensor
from torch.utils._pytree import tree_map

from ownview.messages.unwritten import Unwritten
from ownview.seam.client import Patch, Product, Sent
from ownview.seam.training import Params

_BANDS, _LEAST_BAND = 8, 32
"""Of a symmetric patch: into so many it is cut at most, and of so many rows each is at least."""

MODULUS = 2**32
"""Whole numbers in the place of tables are counted modulo this."""


@dataclass(frozen=True, eq=False)
class Upload:
    """What B clients send.

    Args:
        clients: [B] identities.
        samples: [B] number of training samples of each.
        items: [B, R] the items that `rows` are about.
        touched: [B, R] False for padding.
        rows: by name, changes [B, R, ...] of those rows; all other rows are unchanged.
        whole: by name, changes [B, ...] of values without rows; reported values [B, ...] and personal tables
            [B, m, ...] themselves; changes [B, m, ...] of tables that noise has filled.
        sums: by name, summands [B, ...], or products and patches whose parts are [B, k, ...].
        shapes: of the summands' sums, by name.
        words: [B, D] all of the above as whole numbers modulo 2^32 (`messages.layout`), in its place; None where it is
            sent as it is.
    """

    clients: Tensor
    samples: Tensor
    items: Tensor
    touched: Tensor
    rows: Params = field(default_factory=dict)
    whole: Params = field(default_factory=dict)
    sums: Mapping[str, Sent] = field(default_factory=dict)
    shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    words: Tensor | None = None

    def norms(self) -> Tensor:
        """[B] Euclidean norm of all changes and summands, float64; 0 where a client sends nothing."""
        parts = [_squares(change * wide(self.touched, change)) for change in self.rows.values()]
        parts += [_squares(change) for change in self.whole.values()]
        parts += [squares_of_summand(one) for one in self.sums.values()]
        if not parts:
            return torch.zeros(len(self.clients), dtype=torch.float64, device=self.clients.device)
        return torch.stack(parts).sum(0).sqrt()

    def scaled(self, factors: Tensor) -> Upload:
        """Every client's changes and summands times its factor [B]."""
        rows, whole = (
            {name: times(value, factors) for name, value in part.items()} for part in (self.rows, self.whole)
        )
        sums = {name: scaled_summand(one, factors) for name, one in self.sums.items()}
        return replace(self, rows=rows, whole=whole, sums=sums)

    def spread(self, num_items: int) -> Upload:
        """The uploads with dense tables."""
        spread = {name: self._spread(change, num_items) for name, change in self.rows.items()}
        return replace(self, rows={}, whole={**self.whole, **spread})

    def numbers_filled(self, num_items: int) -> int:
        """Numbers in one client's upload with dense tables, without summands."""
        of_rows = sum(num_items * math.prod(change.shape[2:]) for change in self.rows.values())
        return of_rows + sum(math.prod(change.shape[1:]) for change in self.whole.values())

    def written_out(self) -> Params:
        """Summands by name, [B, ...]; products are multiplied out, patches put in their places."""
        return {name: self._written_out(name, one) for name, one in self.sums.items()}

    def _written_out(self, name: str, one: Sent) -> Tensor:
        if isinstance(one, Product):
            return one.left.mT @ one.right
        if isinstance(one, Patch):
            whole = one.values.new_zeros(len(one.values), *self.shapes[name])
            for matrix, rows, columns, values in zip(whole, *one, strict=True):
                add_cells(matrix.view(len(matrix), -1), Patch(rows[None], columns[None], values[None]))
            return whole
        return one

    def chosen(self, here: slice | Tensor) -> Upload:
        """A selection of the stack: by positions, or by a mask [B]."""
        named = {one.name: getattr(self, one.name) for one in fields(self) if one.name != "shapes"}
        of_clients = {name: value for name, value in named.items() if value is not None}
        unwritten = of_clients.pop("sums") if isinstance(self.sums, Unwritten) else None
        chosen = tree_map(lambda value: value[here], of_clients)
        return replace(self, **chosen, **({} if unwritten is None else {"sums": unwritten.chosen(here)}))

    def without(self, clients: Collection[int]) -> Upload:
        """The stack without some clients."""
        left = [one not in clients for one in self.clients.tolist()]
        return self.chosen(torch.tensor(left, dtype=torch.bool, device=self.clients.device))

    def one(self, index: int) -> Upload:
        """One client of the stack, as a stack of one."""
        return self.chosen(slice(index, index + 1))

    def _spread(self, change: Tensor, num_items: int) -> Tensor:
        index = wide(self.items, change).expand_as(change)
        whole = torch.zeros(len(change), num_items, *change.shape[2:], dtype=change.dtype, device=change.device)
        return whole.scatter_add_(1, index, change * wide(self.touched, change))


def add_cells(matrix: Tensor, patch: Patch) -> None:
    """matrix[rows[b, i], columns[b, j]] += values[b, i, j], in an order that is the same on every run.

    Args:
        matrix: [a, b], contiguous.
        patch: of B clients.
    """
    # Atomic additions of floats on a GPU come in any order. The cells of one client are distinct but for padding, which
    # adds zero, so that one client after the other they always come in the same one.
    together = matrix.device.type == "cpu"
    parts = [patch] if together else [Patch(*(one[k : k + 1] for one in patch)) for k in range(len(patch.rows))]
    for rows, columns, values in parts:
        if patch.of_rows:
            matrix.index_add_(0, rows.reshape(-1), values.reshape(-1, values.shape[-1]))
        else:
            cells = rows[:, :, None] * matrix.shape[1] + columns[:, None, :]
            matrix.view(-1).scatter_add_(0, cells.reshape(-1), values.reshape(-1))


def add_symmetric_cells(matrix: Tensor, patch: Patch) -> None:
    """The same of patches that are symmetric by themselves, to rounding: (M + M^T) / 2 has grown by what they are.

    What stands right of the diagonal counts twice and what is left of it is not added: little more than half the cells.

    Args:
        matrix: M [m, m], contiguous.
        patch: of B clients, with rows that are its columns.
    """
    rows, columns, values = patch
    length = rows.shape[1]
    for start in range(0, length, step := max(_LEAST_BAND, -(-length // _BANDS))):
        band, here, right = slice(start, start + step), rows[:, start : start + step], slice(start + step, None)
        add_cells(matrix, Patch(here, columns[:, band], values[:, band, band]))
        if start + step < length:
            add_cells(matrix, Patch(here, columns[:, right], 2 * values[:, band, right]))


def _squares(change: Tensor) -> Tensor:
    """[B] sums of squares in float64, so that clipping holds to the last digits."""
    norms: Tensor = torch.linalg.vector_norm(change.reshape(len(change), -1), dim=1, dtype=torch.float64)
    return norms.square()


def squares_of_summand(one: Sent) -> Tensor:
    """[B] sums of squares of a summand, without writing it out."""
    if isinstance(one, Product):  # |L^T R|^2 = sum of (L L^T) * (R R^T)
        left, right = (side.double() @ side.double().mT for side in one)
        return (left * right).sum((1, 2)).clamp(min=0)
    return _squares(one.values if isinstance(one, Patch) else one)


def scaled_summand(one: Sent, factors: Tensor) -> Sent:
    """Summands of B clients, in their form, times factors [B]."""
    if isinstance(one, Product):
        return Product(times(one.left, factors), one.right)
    return one._replace(values=times(one.values, factors)) if isinstance(one, Patch) else times(one, factors)


def times(values: Tensor, factors: Tensor) -> Tensor:
    """Values [B, ...] times factors [B], or [B, R]."""
    return values * wide(factors, values).to(values.dtype)


def wide(tensor: Tensor, like: Tensor) -> Tensor:
    """`tensor` with axes of length 1 behind, so that it can be multiplied with `like`."""
    return tensor.reshape(tensor.shape + (1,) * (like.dim() - tensor.dim()))
