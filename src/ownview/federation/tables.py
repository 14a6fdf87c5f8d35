"""Which store holds the item tables of which every client has its own."""

from __future__ import annotations

from torch import Tensor

from ownview.federation.overlays import DenseTables, OverlayTables, SparseTables

DENSE_BYTES = 4 * 10**9
"""The most that a dense store takes, unless the caller says otherwise."""

_ITEMS_PER_ROW = 128
"""With more items than this for each changed row, a round is no faster in the dense store."""

_BYTES_PER_CLIENT = 1300
"""What a sparse store needs for a client besides its rows: two tensors and an entry that names them."""


def personal_tables(num_clients: int, base: Tensor, expected_rows: int, budget: int = DENSE_BYTES) -> OverlayTables:
    """Tables that all start as `base`, in the store that suits them.

    The dense store is taken where it is smaller, because clients change nearly every row, or where it is faster and
    fits into the budget. It is faster where m <= 128 rows: it writes rows without reading those that are there, but
    to restart a client it clears m marks, and to read a whole table it reads m rows that mostly do not count.
    Otherwise the sparse store is taken, whose memory follows what clients change.

    Args:
        num_clients: n.
        base: [m, ...].
        expected_rows: how many rows a client changes in a round, at least.
        budget: bytes that a dense store may take for its speed.
    """
    takes_dense = _dense(num_clients, len(base), _row_bytes(base), expected_rows, budget)
    return (DenseTables if takes_dense else SparseTables)(num_clients, base)


def stored_bytes(num_clients: int, num_items: int, row_bytes: int, expected_rows: int, budget: int) -> int:
    """Bytes of the store that `personal_tables` would choose, before there is one."""
    if _dense(num_clients, num_items, row_bytes, expected_rows, budget):
        return dense_bytes(num_clients, num_items, row_bytes)
    return sparse_bytes(num_clients, num_items, row_bytes, expected_rows)


def _dense(num_clients: int, num_items: int, row_bytes: int, expected_rows: int, budget: int) -> bool:
    dense = dense_bytes(num_clients, num_items, row_bytes)
    smaller = dense <= sparse_bytes(num_clients, num_items, row_bytes, expected_rows)
    faster = num_items <= _ITEMS_PER_ROW * expected_rows
    return smaller or (faster and dense <= budget)


def dense_bytes(num_clients: int, num_items: int, row_bytes: int) -> int:
    """Bytes of a dense store: n m (bytes of a row + 1 for its mark)."""
    return num_clients * num_items * (row_bytes + 1)


def sparse_bytes(num_clients: int, num_items: int, row_bytes: int, rows: int) -> int:
    """Bytes of a sparse store where each client changed `rows`: n (rows (bytes of a row + 4 for its item) + 1300)."""
    return num_clients * (min(rows, num_items) * (row_bytes + 4) + _BYTES_PER_CLIENT)


def _row_bytes(base: Tensor) -> int:
    return base[:1].nbytes
