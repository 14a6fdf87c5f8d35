"""Gradients as FedSASRec's settings `sent_rows` and `sent_bits` shorten them before they are sent."""

from __future__ import annotations

from torch import Tensor

from ownview.methods.fedsasrec.settings import GradientSettings
from ownview.parts.shortened import largest_rows, rounded, whole_table
from ownview.seam.client import Patch, Sent


def shortened(gradient: Tensor, name: str, place: int, luck: Tensor, given: GradientSettings) -> Sent:
    """The gradient of one parameter; unchanged with the default settings.

    Args:
        gradient: of the parameter's shape.
        name: of the parameter; `sent_rows` is about "items" alone.
        place: number of the parameter, which keys its random rounding.
        luck: the client's random bits of the round.
        given: the settings.
    """
    sent: Sent = gradient
    if name == "items" and given.sent_rows > 0:
        sent = largest_rows(gradient, given.sent_rows)
    if given.sent_bits == 8 and gradient.dim() == 2:
        sent = rounded(sent if isinstance(sent, Patch) else whole_table(gradient), luck, place)
    return sent
