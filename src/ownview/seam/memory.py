"""How much memory a method of sums needs: for the size of blocks, and to refuse early what does not fit."""

from __future__ import annotations

from dataclasses import dataclass

from ownview.seam.client import Working
from ownview.seam.server import ADVICE, Combine, Sums


@dataclass(frozen=True)
class Memory:
    """Numbers of the run's precision held at the same time, beyond parameters and sums.

    Args:
        client: by one client's report or its scoring; a function where it depends on the length of the timeline.
        server: by `combine`, or by a client's `prepare_download`.
        advice: what to change where the server's values do not fit.
        in_place: whether `combine` writes its results over the sums, which then need no room besides.
    """

    client: int | Working
    server: int = 0
    advice: str = ADVICE
    in_place: bool = False

    def sums(self, combine: Combine, noise: str = "none") -> Sums:
        """The server's rule for sums, with this need of memory."""
        return Sums(combine, noise, self.server, self.advice, self.in_place)
