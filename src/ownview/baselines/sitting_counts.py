"""What people take when they come back, counted, the same for everybody: sums over users."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ownview.baselines.parts.counting import Cells, cells_of
from ownview.baselines.popularity import Popularity
from ownview.config.settings import setting
from ownview.data.interactions import FloatArray
from ownview.data.sittings import DAY, Sittings, require_times
from ownview.data.splitting.splits import Split
from ownview.data.timeline import Timeline


@dataclass(frozen=True)
class SittingCounts(Popularity):
    """score of an item = a sum over sittings, which end where a user does nothing for a while."""

    pause_days: float = setting(1.0, "days without anything, after which a sitting is over", above=0)

    @abstractmethod
    def weights(self, sittings: Sittings) -> FloatArray:
        """[r] what each training row counts."""

    def require(self, split: Split) -> None:
        """Times."""
        require_times(self.name, split.order)

    def counted(self, line: Timeline, num_items: int) -> dict[str, Cells]:
        """Cut histories into sittings, and count."""
        sittings = Sittings.of(line, round(self.pause_days * DAY))
        return {"counts": cells_of(np.bincount(sittings.items, self.weights(sittings), minlength=num_items))}


@dataclass(frozen=True)
class SittingStarts(SittingCounts):
    """score of an item = how many sittings that follow a pause began with it.

    What a person does first on coming back is often decided by the site's page. A method that is not above this row
    when the first item is asked for has learnt the page.
    """

    name: ClassVar[str] = "sitting-starts"
    title: ClassVar[str] = "What sittings begin with"
    summary: ClassVar[str] = "how often an item was the first after a pause, the same for everybody"

    def weights(self, sittings: Sittings) -> FloatArray:
        """1 for the first item after a pause."""
        return (sittings.begins & sittings.returns).astype(np.float64)


@dataclass(frozen=True)
class LaterSittings(SittingCounts):
    """score of an item = sum over sittings that follow a pause and hold it of 1 / sqrt(items of the sitting)."""

    name: ClassVar[str] = "later-sittings"
    title: ClassVar[str] = "What later sittings hold"
    summary: ClassVar[str] = "how often an item was taken after a pause, the same for everybody"

    def weights(self, sittings: Sittings) -> FloatArray:
        """A sitting weighs the square root of its length: long ones say more, but not in proportion."""
        return np.asarray(sittings.returns / np.sqrt(sittings.lengths))
