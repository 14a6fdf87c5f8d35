"""The message from server to clients, before they work or after."""

from __future__ import annotations

from dataclasses import dataclass, field

from torch import Tensor

from ownview.seam.training import Params


@dataclass(frozen=True, eq=False)
class Download:
    """What the server sends to B clients.

    Args:
        round: that begins, from 1.
        values: by name, whole values that are the same for all of them, means beside personal tables included.
            Of personal tables, the initial value of a client that takes part for the first time.
        mixtures: by the name of the personal table, what the server mixed for each client, [B, m, ...].
        moves: by the name of the reported value, what each client adds to its own, [B, ...].
        receives: [B] False for clients that get no table in this round; None where all get one.
    """

    round: int
    values: Params
    mixtures: Params = field(default_factory=dict)
    moves: Params = field(default_factory=dict)
    receives: Tensor | None = None

    def offered(self, name: str, count: int) -> Tensor:
        """[B, m, ...] the whole table that the server has for each of `count` clients."""
        if name in self.mixtures:
            return self.mixtures[name]
        return self.values[name].expand(count, *self.values[name].shape)
