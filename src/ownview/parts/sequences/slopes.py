"""The gradient of a sequence's loss over all items in factors, so that sums over clients need no client's matrices.

With softmax shares s_t of the scores at place t and its targets' weights w_t, the slope of the loss to the vectors of
all items is sum_t (s_t - w_t) h_t^T; to a matrix that rows x_t go through it is sum_t x_t delta_t^T, delta_t the slope
to what comes out. As a `Product` the sum over many clients is one product of matrices; a single client's is written out
before it leaves. Where a sequence is so long that its factors are more numbers than the matrix, that is made at once.

With a temperature T scores are h . u / T, u = e / |e|, and G being the slope to u / T, that to e is
(G - (G . u) u) / (T |e|). The first part is a product still; the second, a number an item, is sent beside it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import embedding

from ownview.parts.sequences.passes import every_slope, shares
from ownview.parts.sequences.transformer import Lesson, Transformer, lesson, product
from ownview.seam.client import Product, Sent
from ownview.seam.training import Params

_SHORTEST = 1e-12
"""Of a vector that is brought to length 1, as `torch.nn.functional.normalize` has it."""


class Slopes(NamedTuple):
    """Of the sum of one sequence's losses.

    items:     to the items' vectors e, [m, d]; with a temperature its first part alone
    along:     [m] (G . u) / (T |e|) of each item, which `turned` takes off the sum; 0 without a temperature
    others:    to the network's other parameters by name
    positions: [] how many losses
    """

    items: Sent
    along: Tensor
    others: Mapping[str, Sent]
    positions: Tensor


def slopes(network: Transformer, p: Params, rows: Tensor, mask: Tensor, chance: Tensor) -> Slopes:
    """The gradient of `Transformer.loss` over all items.

    Args:
        network: its shape.
        p: parameters; `items` [m, d] is whole.
        rows: [L] items, oldest first, padding behind the last.
        mask: [L] 1 for an item, 0 for padding.
        chance: of the client in this round, which keys dropout.
    """
    items, real = lesson(rows, mask, network.length)
    targets, positions = items[1:], real.sum()
    alone = {name: p[name] for name in network.names if name not in ("items", *network.matrices)}
    passes, keys = network.passes, network.chances(chance)
    added = {name: p[name].new_zeros(passes, len(targets), p[name].shape[1]) for name in network.matrices}

    def one_pass(alone: Params, own: Tensor, added: Params, chance: Tensor) -> tuple[Tensor, Params]:
        """[W, d], with the rows that go through matrices; what comes out has `added`, to which slopes are taken."""
        seen: Params = {}

        def layers(p: Params, name: str, rows: Tensor) -> Tensor:
            seen[name] = rows
            return product(p, name, rows) + added[name]

        places = torch.arange(len(targets), device=rows.device)
        hidden = network.hidden({**p, **alone, "items": own}, places, positions.long(), chance, layers=layers)
        return hidden, seen

    def states(alone: Params, own: Tensor, added: Params) -> tuple[Tensor, Params]:
        """[K, W, d] of all passes, with the rows [K, W, a] that go through matrices."""
        every = [one_pass(alone, own, {name: one[k] for name, one in added.items()}, keys[k]) for k in range(passes)]
        seen = {name: torch.stack([one[name] for _, one in every]) for name in network.matrices}
        return torch.stack([hidden for hidden, _ in every]), seen

    found: Any = torch.func.vjp(states, alone, embedding(items, p["items"]), added, has_aux=True)
    hidden, back, seen = found
    table = network.table(p)
    wanted, smoothed = embedding(targets, table), network.label_smoothing
    weights = (1 - smoothed) * real[:, None] * network.ahead(real)
    scores, mean = hidden @ table.T, hidden.mean(0)
    every = every_slope(scores, shares(scores, network.excludes(Lesson(items, real), len(table))), network.r_drop)
    slope = real[:, None] * (every - smoothed / (passes * len(table)))
    of_alone, of_own, of_added = back(slope @ table - weights @ wanted / passes)
    scale, along = torch.ones_like(table[:, 0]), torch.zeros_like(table[:, 0])
    if network.temperature > 0:
        lengths = p["items"].norm(dim=-1).clamp(min=_SHORTEST)
        scale = 1 / (network.temperature * lengths)
        at_targets = (weights * (mean @ wanted.T)).sum(0)
        along = ((slope * scores).sum((0, 1)) - _in_rows(at_targets[:, None], targets, table)[:, 0]) / lengths
    of_targets = -(weights.T @ mean) * scale[targets][:, None]
    of_own = of_own + torch.cat([torch.zeros_like(of_targets[:1]), of_targets])
    of_items = _of_items((slope * scale).flatten(0, 1), (real[:, None] * hidden).flatten(0, 1), items, of_own)
    of_matrices = {name: _shorter(seen[name].flatten(0, 1), of_added[name].flatten(0, 1)) for name in network.matrices}
    return Slopes(of_items, along, {**of_alone, **of_matrices}, positions)


def _of_items(left: Tensor, right: Tensor, items: Tensor, rows: Tensor) -> Sent:
    """[m, d] left^T right, and rows [k, d] added in the rows of `items` [k]."""
    (width, m), d = left.shape, right.shape[1]
    if (width + len(items)) * (m + d) >= m * d:
        return left.T @ right + _in_rows(rows, items, left.T)
    here = (items[:, None] == torch.arange(m, device=items.device)).to(left.dtype)
    return Product(torch.cat([left, here]), torch.cat([right, rows]))


def _shorter(left: Tensor, right: Tensor) -> Sent:
    """left^T right, in factors where these are fewer numbers."""
    (width, a), b = left.shape, right.shape[1]
    return Product(left, right) if width * (a + b) < a * b else left.T @ right


def _in_rows(rows: Tensor, items: Tensor, like: Tensor) -> Tensor:
    """[m, d] rows added up in the rows of their items: the slope of taking them out, which a GPU adds in one order.

    Args:
        rows: [k, d].
        items: [k].
        like: of m rows.
    """
    empty = rows.new_zeros(len(like), rows.shape[1])
    taken: Any = torch.func.vjp(lambda table: embedding(items, table), empty)
    placed: Tensor = taken[1](rows)[0]
    return placed


def turned(slope: Tensor, along: Tensor, items: Tensor) -> Tensor:
    """[m, d] the sum of slopes to the vectors e of items, from the sums of `Slopes.items` and `Slopes.along`."""
    lengths = items.norm(dim=-1, keepdim=True).clamp(min=_SHORTEST)
    found: Tensor = slope - along[:, None] * items / lengths
    return found
