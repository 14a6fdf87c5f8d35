"""Sums of `Nearby` summands, without expanding any client's cells.

A client with n items has n^2 cells, and writing, weighing and adding them one by one takes longer than all the rest of
a round. With r = exp(-1 / tau), the value r^|a - b| of items at places a > b is a product of two numbers as soon as a
boundary p lies between them: r^(a - p) r^(p - b). So a history is cut into runs of a few places, and the pairs of a run
with all that came before it are one column of r^(a - p) times one row of r^(p - b): sparse matrices, whose product
SciPy adds up as it goes. Pairs within a run are written out, and a diagonal of ones counts items.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from ownview.messages.unwritten import written
from ownview.messages.upload import add_cells
from ownview.parts.pairs.counted import pair_counts
from ownview.seam.client import Nearby

_RUN = 20
"""Places of a run; the square root of the mean length weighed by length, as most histories have it, is the fastest."""

_FEW = 4
"""Where all cells are fewer than one in so many of the sum's, they are written out one by one."""

_BAND = 512
"""Rows of the sum that are made at once."""

Places = npt.NDArray[np.int64]


def add_nearby(total: Tensor, stacks: Sequence[Nearby]) -> None:
    """total [m, m] += the sum over all clients of some stacks; masks are 0 or 1."""
    if total.device.type != "cpu" or _FEW * sum(one.mask.shape[1] * one.mask.numel() for one in stacks) < total.numel():
        for one in stacks:
            add_cells(total, written(one))
        return
    _add_histories(total, _histories(stacks))


@dataclass(frozen=True, eq=False)
class _Histories:
    """Items [e] of clients one after the other, how many each has [c], and ln r of each [c]."""

    items: Places
    lengths: Places
    rates: npt.NDArray[np.float64]


def _histories(stacks: Sequence[Nearby]) -> _Histories:
    there = [one.mask > 0 for one in stacks]
    items = torch.cat([one.rows[real] for one, real in zip(stacks, there, strict=True)])
    lengths = torch.cat([real.sum(1) for real in there])
    rates = torch.cat([-1 / one.tau.double() for one in stacks])
    return _Histories(items.numpy(), lengths.numpy(), rates.numpy())


def _add_histories(total: Tensor, given: _Histories) -> None:
    out = total.numpy()
    if not given.rates.any():
        out += _counted(given, len(out), out.dtype)
        return
    left, right = _factors(given, len(out), out.dtype)
    for start in range(0, len(out), _BAND):
        band = (left[start : start + _BAND] @ right).toarray()
        out[start : start + _BAND] += band
        for across in range(0, len(out), _BAND):
            out[across : across + _BAND, start : start + _BAND] += band[:, across : across + _BAND].T
    total.diagonal().add_(torch.from_numpy(np.bincount(given.items, minlength=len(out))))


def _counted(given: _Histories, m: int, kind: npt.DTypeLike) -> npt.NDArray[Any]:
    """[m, m] the sum where all pairs count 1."""
    from scipy.sparse import csr_matrix  # noqa: PLC0415 - slow to import

    ends = np.concatenate([[0], np.cumsum(given.lengths)])
    return pair_counts(csr_matrix((np.ones(len(given.items), kind), given.items, ends), shape=(len(ends) - 1, m)))


def _factors(given: _Histories, m: int, kind: npt.DTypeLike) -> tuple[Any, Any]:
    """Sparse [m, e + q] and [e + q, m], whose product has every pair of a client's items once: later by earlier.

    A row of the second is what came before an item in its run, faded to that item's place, for the e items; then what
    came before a run, faded to its first place, for the q runs.
    """
    from scipy.sparse import csr_matrix, vstack  # noqa: PLC0415 - slow to import

    items, lengths = given.items, given.lengths
    first = np.cumsum(lengths) - lengths
    client = np.repeat(np.arange(len(lengths)), lengths)
    place = np.arange(len(items)) - first[client]
    inner, runs = place % _RUN, -(-lengths // _RUN)
    run = (np.cumsum(runs) - runs)[client] + place // _RUN
    of_run = np.repeat(np.arange(len(lengths)), runs)
    start = (np.arange(len(of_run)) - (np.cumsum(runs) - runs)[of_run]) * _RUN

    def before(counts: Places, begin: Places, rates: npt.NDArray[np.float64]) -> Any:
        ends = np.concatenate([[0], np.cumsum(counts)])
        along = np.arange(ends[-1]) - np.repeat(ends[:-1], counts)
        faded = np.exp((np.repeat(counts, counts) - along) * np.repeat(rates, counts)).astype(kind)
        return csr_matrix((faded, items[np.repeat(begin, counts) + along], ends), shape=(len(counts), m))

    right = vstack([
        before(inner, np.arange(len(items)) - inner, given.rates[client]),
        before(start, first[of_run], given.rates[of_run]),
    ], format="csr")  # fmt: skip
    faded = np.concatenate([np.ones(len(items)), np.exp(inner * given.rates[client])]).astype(kind)
    columns = np.concatenate([np.arange(len(items)), len(items) + run])
    left = csr_matrix((faded, (np.concatenate([items, items]), columns)), shape=(m, right.shape[0]))
    return left, right
