"""Recent popularity: what everybody took in the last days."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from ownview.baselines.parts.central import Asked, OneShot
from ownview.config.search import OneOf
from ownview.config.settings import setting
from ownview.data.ragged import Ragged
from ownview.data.sittings import DAY, require_times
from ownview.data.splitting.splits import Split
from ownview.seam.portable import Portable, Refusal
from ownview.seam.training import Params


@dataclass(frozen=True)
class RecentPopularity(OneShot):
    """score of an item = training rows on the whole days before the day on which a user is asked.

    The day is that of the user's clock, as the protocol gives it. Counts by day are a sum over users a day.
    """

    name: ClassVar[str] = "recent-popularity"
    title: ClassVar[str] = "Recent popularity"
    summary: ClassVar[str] = "interactions of an item in the last days before a user is asked"
    by_history: ClassVar[bool] = True
    yardstick: ClassVar[bool] = True

    days: int = setting(30, "how many days count", low=1, search=OneOf((3, 7, 14, 30, 60, 120)))

    def require(self, split: Split) -> None:
        """Times."""
        require_times(self.name, split.order)

    def fit(self, split: Split, excluded: Ragged, seed: int) -> Params:
        """Every training row's day and item, by day."""
        line = split.timeline
        assert line.times is not None
        day = torch.div(line.times.values, DAY, rounding_mode="floor")
        order = torch.argsort(day, stable=True)
        return {"days": day[order], "items": line.items.values[order], "count": torch.tensor([split.num_items])}

    def scores(self, learned: Params, asked: Asked) -> Tensor:
        """[B, m] counts of a window for every day on which a user is asked."""
        assert asked.known.now is not None
        today = torch.div(asked.known.now[asked.users], DAY, rounding_mode="floor")
        different, which = torch.unique(today, return_inverse=True)
        ends = torch.searchsorted(learned["days"], torch.stack([different - self.days, different]))
        counts = [
            torch.bincount(learned["items"][first:last], minlength=int(learned["count"]))
            for first, last in ends.T.tolist()
        ]
        return torch.stack(counts).to(torch.float32)[which]

    def portable(self, learned: Params) -> Portable:
        """None: tomorrow's scores are others."""
        return Refusal("counts the days before the day on which it is asked, which goes on; take popularity")
