"""Refuses uploads that no honest client can have made, as far as a server sees them in clear."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

import torch
from torch import Tensor

from ownview.base.errors import MessageError
from ownview.messages.upload import Upload
from ownview.seam.client import Patch, Product, Sent, Summand
from ownview.seam.honest import Honest

_ROUNDING = 1e-5
"""Share of a bound that rounding may add."""


def require_honest(upload: Upload, declared: Mapping[str, Summand]) -> None:
    """Refuse one client's upload that has summands other than an honest client's can be.

    Args:
        upload: a stack of one.
        declared: by name, what is sent.
    """
    for name, one in upload.sums.items():
        summand = declared[name]
        if summand.honest == Honest() and not summand.symmetric:
            continue
        wrong = _wrong(one, summand)
        if wrong:
            raise MessageError(
                f"client {int(upload.clients[0])}: {name}: {wrong}; no honest client sends that, and it is not counted"
            )


def _wrong(one: Sent, declared: Summand) -> str:
    """What no honest client sends; empty where one can."""
    bounds = declared.honest
    rows, columns, cells = _cells(one, declared.shape)
    if not cells.numel():
        return ""
    least, most = float(cells.min()), float(cells.max())
    for found, limit, outside in ((least, bounds.low, least < bounds.low), (most, bounds.high, most > bounds.high)):
        if outside and abs(found - limit) > _ROUNDING * max(1.0, abs(limit)):
            return f"found {found:g}, expected numbers from {bounds.low:g} to {bounds.high:g}"
    if bounds.rows is not None and len(rows) > bounds.rows:
        return f"{len(rows)} rows that are not 0, expected {bounds.rows} at most"
    if declared.symmetric and not (torch.equal(rows, columns) and _symmetric(cells)):
        return "a matrix that is not symmetric"
    return "" if bounds.structure is None else bounds.structure(cells)


def _symmetric(cells: Tensor) -> bool:
    return bool((cells - cells.mT).abs().max() <= _ROUNDING * cells.abs().max())


def _cells(one: Sent, shape: tuple[int, ...]) -> tuple[Tensor, Tensor, Tensor]:
    """Rows [k] and columns [l], ascending, of one client that are not 0, and the numbers [k, l] where they cross."""
    height, width = (shape[0], prod(shape[1:])) if shape else (1, 1)
    if isinstance(one, Patch):
        rows, values = one.rows[0], one.values[0]
        columns = torch.arange(width) if one.of_rows else one.columns[0]
    else:
        whole = one.left[0].mT @ one.right[0] if isinstance(one, Product) else one[0]
        rows, columns, values = torch.arange(height), torch.arange(width), whole.reshape(height, width)
    there = values != 0
    up, across = there.any(1).nonzero()[:, 0], there.any(0).nonzero()[:, 0]
    up, across = up[rows[up].argsort()], across[columns[across].argsort()]
    return rows[up], columns[across], values[up][:, across]
