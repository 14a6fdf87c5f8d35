"""What a client's own table begins a round with."""

from __future__ import annotations

from dataclasses import dataclass

from ownview.seam.training import Context, Params


@dataclass(frozen=True)
class BeginWith:
    """An opening that replaces a client's own table by one it received.

    It is a value and not just a function, so that a plug-in can see what a round begins with, and let it begin
    otherwise.

    Args:
        table: name of the client's own table.
        received: name of the table that takes its place.
    """

    table: str
    received: str

    def __call__(self, p: Params, context: Context) -> Params:
        """The own table, as it was received."""
        return {self.table: p[self.received]}
