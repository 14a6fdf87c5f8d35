"""A federation whose clients are shared out among workers."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor

from ownview.cluster.workers import Workers
from ownview.federation.work import Work
from ownview.round.federation import Federation


class ClusterFederation(Federation):
    """As `Federation`, but that clients live in workers; its machine has workers, which share its memory."""

    fleet: Workers

    def _fleet(self, work: Work) -> Workers:
        return Workers(self.terms, work, self.method, self.split, self.excluded, self.server)

    def save(self) -> None:
        """Every worker writes what its clients hold to a file of its own."""
        self.fleet.save()

    def unpack(self, packed: Mapping[str, Tensor]) -> None:
        """Restore what `pack` returned, here and at all workers."""
        self.fleet.fetched = True
        super().unpack(packed)
        self.fleet.hand_out()
