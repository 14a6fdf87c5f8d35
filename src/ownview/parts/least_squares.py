"""What clients need of an item table to solve their own vector by least squares."""

from __future__ import annotations

from ownview.seam.training import Params


def outer_products(received: Params) -> Params:
    """The table Q, q q^T of every item as `squares` [m, d^2], and Q^T Q as `gram` [d, d], both in float64.

    A device needs the squares of its own items only.
    """
    items = received["items"].double()
    squares = (items[:, :, None] * items[:, None, :]).flatten(1)
    return {**received, "squares": squares, "gram": items.T @ items}
