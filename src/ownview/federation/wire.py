"""Shared values on the wire: a table as bytes, dense or sparse, whichever is shorter, and what a round sends.

A message is a header and a body, little-endian:

header   kind (0 dense, 1 sparse), bytes a value (4 or 8), number of axes, 0: one byte each; then the length of every
         axis, 4 bytes each
dense    all values
sparse   the positions in the flattened table of all values that are not 0, 4 bytes each, then these values
"""

from __future__ import annotations

import struct
from collections.abc import Collection
from math import prod

import numpy as np
import torch
from torch import Tensor

from ownview.seam.training import Params

_DENSE, _SPARSE = 0, 1
_POSITION = 4
_TYPES = {4: "<f4", 8: "<f8"}
SMALL = 1e-3
"""Values below this in size are reported as nearly zero."""


def encode(table: Tensor) -> bytes:
    """A table of floats as bytes, in the shorter of the two forms; -0 may come back as 0."""
    if table.numel() > 2**32:
        raise ValueError(f"a table of {table.numel()} values: positions of 4 bytes reach to 2**32")
    values = table.detach().cpu().numpy().reshape(-1)
    where = np.flatnonzero(values)
    sparse = len(where) * (_POSITION + values.itemsize) < values.nbytes
    kind = _SPARSE if sparse else _DENSE
    header = struct.pack(f"<4B{table.dim()}I", kind, values.itemsize, table.dim(), 0, *table.shape)
    sent = values[where] if sparse else values
    positions = where.astype("<u4").tobytes() if sparse else b""
    return header + positions + sent.astype(_TYPES[values.itemsize]).tobytes()


def decode(message: bytes) -> Tensor:
    """What `encode` was given."""
    kind, width, axes, _ = struct.unpack_from("<4B", message)
    shape = struct.unpack_from(f"<{axes}I", message, 4)
    body = message[_header(axes) :]
    count = len(body) // (width + _POSITION) if kind == _SPARSE else prod(shape)
    values = np.frombuffer(body[len(body) - count * width :], dtype=_TYPES[width])
    if kind == _SPARSE:
        table = np.zeros(prod(shape), dtype=values.dtype)
        table[np.frombuffer(body[: count * _POSITION], dtype="<u4")] = values
        values = table
    return torch.from_numpy(values.astype(values.dtype.newbyteorder("="))).reshape(shape)


def dense_size(table: Tensor) -> int:
    """Bytes of the dense form."""
    return _header(table.dim()) + table.numel() * table.element_size()


def message_size(table: Tensor, nonzero: Tensor) -> Tensor:
    """Bytes of tables with this one's shape and type, and so many values that are not 0."""
    sparse = _header(table.dim()) + nonzero * (_POSITION + table.element_size())
    return sparse.clamp(max=dense_size(table))


class Traffic:
    """Weighs a round's messages: every shared table goes to each client; those that training moves come back, whole.

    A client changes only rows it touches, so what it sends back has nnz(all rows) - nnz(touched rows before) +
    nnz(touched rows after) values that are not 0. Tables without any zero that nothing makes sparse are not looked at:
    they are dense.

    Args:
        shared: the values sent out.
        shrunk: names of values that training makes exactly 0.
        uploaded: names of values that come back; None for all.
        more_down: bytes that go to each client besides.
        more_up: bytes that come from each client besides.
    """

    def __init__(
        self,
        shared: Params,
        shrunk: Collection[str],
        uploaded: Collection[str] | None = None,
        more_down: int = 0,
        more_up: int = 0,
    ) -> None:
        nonzero = {name: torch.count_nonzero(value) for name, value in shared.items()}
        self.shared, self.clients = shared, 0
        self.dense = sum(dense_size(value) for value in shared.values())
        back = [value for name, value in shared.items() if uploaded is None or name in uploaded]
        self.dense_up = more_up + sum(dense_size(value) for value in back)
        self.down = more_down + sum(int(message_size(value, nonzero[name])) for name, value in shared.items())
        self.nonzero = {n: count for n, count in nonzero.items() if n in shrunk or int(count) < shared[n].numel()}
        self.saved: list[Tensor] = []

    def add(self, clients: int, before: Params, after: Params) -> None:
        """Weigh what a block of clients sends back.

        Args:
            clients: B.
            before: values [B, ...] as they were received, of tables the touched rows, padding unchanged. What is not
                in it has no zeros left (noise was added, say) and is dense.
            after: likewise after training.
        """
        self.clients += clients
        for name, everywhere in self.nonzero.items():
            if name not in before:
                continue
            nonzero = everywhere + _nonzero(after[name]) - _nonzero(before[name])
            value = self.shared[name]
            self.saved.append((dense_size(value) - message_size(value, nonzero)).sum())

    @property
    def up(self) -> int:
        """Mean bytes that a client sent back, rounded; 0 where there was no client."""
        saved = int(torch.stack(self.saved).sum()) if self.saved else 0
        return round(self.dense_up - saved / self.clients) if self.clients else 0


def sparsity(shared: Params) -> dict[str, dict[str, float]]:
    """Of every shared parameter the share of values that are exactly 0, and of those below `SMALL` in size."""
    return {
        name: {
            "zero": 1 - int(torch.count_nonzero(value)) / value.numel(),
            f"below_{SMALL:g}": int((value.abs() < SMALL).sum()) / value.numel(),
        }
        for name, value in shared.items()
    }


def _header(axes: int) -> int:
    return 4 + 4 * axes


def _nonzero(values: Tensor) -> Tensor:
    """[B] of each client."""
    return torch.count_nonzero(values.reshape(len(values), -1), dim=1)
