"""Whether FedNext's sums of one client, in full, are those that some history makes.

The order of a history can be read from its pasts: of two items the sum over positions is exp(-places apart / tau) times
that of the later one with itself. So the server finds the order, one nearest item after the other from the last but one
backwards; where sittings begin, by which items share what was before them; works all sums out again, and compares. Only
how recent items are does not follow from the rest: numbers from 0 to 1.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from ownview.methods.fednext.settings import NextSettings
from ownview.parts.sequences.places import Places
from ownview.parts.sequences.transitions import across, future, past
from ownview.seam.honest_summands import Cells
from ownview.seam.training import Params

_ROUNDING = 1e-3
"""Share of a sum's largest number by which it may differ: sums of up to 200 terms in float32, with room."""


@dataclass(frozen=True)
class NextHistory:
    """Check whether one history can have made a client's sums.

    Args:
        given: the settings.
        num_items: m.
        clock: whether times are known, and with them sittings.
    """

    given: NextSettings
    num_items: int
    clock: bool

    def __call__(self, cells: Mapping[str, Cells], opened: Params) -> str:
        """What no history can have made; empty where one can."""
        m, scales = self.num_items, self.given.scales
        items = torch.unique(torch.cat([cells["pasts"].rows % m, cells["follows"].rows % m, cells["follows"].columns]))
        if self.clock:
            items = torch.unique(torch.cat([items, cells["pairs"].rows]))
        if len(items) > self.given.length:
            return f"pasts of {len(items)} items, expected {self.given.length} at most"
        wide = torch.cat([items + k * m for k in range(len(scales))])
        pasts = _dense(cells["pasts"], wide, wide)
        order = self._order(pasts)
        places = Places(items[order], torch.zeros(len(items)), torch.ones(len(items), dtype=torch.float64))
        mine = torch.cat([order + k * len(items) for k in range(len(scales))])
        for name, expected in self._worked_out(places).items():
            found = pasts[mine][:, mine] if name == "pasts" else _dense(cells[name], wide[mine], places.rows)
            if not _near(found, expected):
                return f"{name}: sums over positions that no history has"
        return self._wrong_across(cells, places) if self.clock else ""

    def _order(self, pasts: Tensor) -> Tensor:
        """[l] items, oldest first, if the sums are a history's; else any order."""
        tau, size = min(self.given.scales), len(pasts) // len(self.given.scales)
        here = self.given.scales.index(tau) * size
        own = pasts[here : here + size, here : here + size]
        diagonal = own.diagonal()
        if size < 2 or math.isinf(tau):
            return diagonal.argsort(descending=True, stable=True)
        ascending = diagonal.argsort(stable=True).tolist()
        order, one = [ascending[0]], ascending[1]  # nothing came after the last, and one item after the last but one
        near = (own / torch.minimum(diagonal[:, None], diagonal).clamp(min=1e-30)).numpy()
        left = np.ones(size, dtype=bool)
        left[order] = False
        while True:
            order.append(one)
            left[one] = False
            if not left.any():
                return torch.tensor(order[::-1], dtype=torch.long)
            one = int(np.where(left, near[one], -np.inf).argmax())

    def _worked_out(self, places: Places) -> dict[str, Tensor]:
        """Pasts and what followed, of a history in this order."""
        size, mask = len(places.rows), places.mask
        scaled = torch.cat([past(size, tau, mask) for tau in self.given.scales], dim=1)
        weight = max(size - 1, 1) ** -self.given.weighting
        return {
            "pasts": scaled.T @ scaled * weight,
            "follows": scaled.T @ future(size, self.given.horizon, mask) * weight,
        }

    def _wrong_across(self, cells: Mapping[str, Cells], places: Places) -> str:
        """What is wrong with the sums across sittings, with pairs, and with how recent items are."""
        rows = places.rows
        found = {name: _dense(cells[name], rows, rows) for name in ("before", "after", "pairs")}
        columns = found["after"].T
        apart = (columns - columns.roll(1, 0)).abs().amax(1) if len(rows) else columns.new_zeros(0)
        begins = (apart > _ROUNDING * apart.max()) if len(rows) else apart
        # The first item begins none that is counted, so that its moment does not matter.
        times = (begins.double() * 2 * self.given.pause).cumsum(0)
        parted = across(places._replace(times=times), self.given.pause, self.given.sittings)
        expected = {"before": parted.before.T @ parted.before, "after": parted.before.T @ parted.after}
        expected["pairs"] = torch.ones(len(rows), len(rows), dtype=torch.float64)
        for name, one in expected.items():
            if not _near(found[name], one):
                return f"{name}: sums over sittings that no history has"
        recent = cells["recent"]
        inside = torch.isin(recent.rows, rows).all() & ((recent.values >= 0) & (recent.values <= 1)).all()
        if not bool(inside):
            return "recent: other items than its own, or numbers that are not from 0 to 1"
        return ""


def _near(found: Tensor, expected: Tensor) -> bool:
    """Whether sums are the same but for rounding."""
    largest = float(expected.abs().max()) if expected.numel() else 0.0
    return not found.numel() or float((found - expected).abs().max()) <= _ROUNDING * max(largest, 1e-6)


def _dense(cells: Cells, rows: Tensor, columns: Tensor) -> Tensor:
    """[k, l] a summand at some rows and columns, in float64; not a number where it has others besides."""
    if not bool(torch.isin(cells.rows, rows).all() and torch.isin(cells.columns, columns).all()):
        return torch.full((len(rows), len(columns)), math.nan, dtype=torch.float64)
    up, over = rows.argsort(), columns.argsort()
    whole = torch.zeros(len(rows), len(columns), dtype=torch.float64)
    there = up[torch.searchsorted(rows[up], cells.rows)], over[torch.searchsorted(columns[over], cells.columns)]
    whole[there[0][:, None], there[1]] = cells.values.double()
    return whole
