"""Refuses uploads that no honest client can have made, as far as a server sees them in clear."""

from __future__ import annotations

from math import prod

import torch
from torch import Tensor

from ownview.base.errors import MessageError
from ownview.messages.upload import Upload
from ownview.seam.client import Patch, Product, Reporting, Sent, Summand
from ownview.seam.honest_summands import Cells, Honest
from ownview.seam.training import Params

_ROUNDING = 1e-5
"""Share of a bound that rounding may add."""


def require_honest(upload: Upload, work: Reporting, opened: Params) -> None:
    """Refuse one client's upload that has summands other than an honest client's can be.

    Args:
        upload: a stack of one.
        work: that declares what summands can be.
        opened: the round's download after `prepare_download`.
    """
    bounded = (name for name, one in work.sends.items() if one.symmetric or one.honest != Honest())
    looked_at = work.sends if work.together is not None else frozenset(bounded)
    cells = {name: _cells(one, work.sends[name].shape) for name, one in upload.sums.items() if name in looked_at}
    found = ((name, _wrong(one, work.sends[name])) for name, one in cells.items())
    wrong = next((f"{name}: {why}" for name, why in found if why), "")
    if not wrong and work.together is not None:
        wrong = work.together(cells, opened)
    if wrong:
        raise MessageError(
            f"client {int(upload.clients[0])}: {wrong}; no honest client sends that, and it is not counted"
        )


def _wrong(one: Cells, declared: Summand) -> str:
    """Why no honest client sends this; empty if one can."""
    bounds, (rows, columns, cells) = declared.honest, one
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


def _cells(one: Sent, shape: tuple[int, ...]) -> Cells:
    """Rows [k] and columns [l] of one client's summand that are not 0, ascending, and their values [k, l]."""
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
    return Cells(rows[up], columns[across], values[up][:, across])
