"""A server's own rule applied to all uploads of a round; see `seam.server.Rule`."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from ownview.messages.upload import Upload
from ownview.seam.server import COORDINATES, Arrived, Rule
from ownview.seam.training import Params

_TOGETHER = 2**24
"""Numbers of all clients that a rule by coordinates gets at once."""


def made_by(
    rule: Rule, uploads: Sequence[Upload], names: Collection[str], num_items: int, values: Params, number: int,
    stale: Tensor,
) -> Params:  # fmt: skip
    """The combined change, by name.

    Args:
        rule: that needs every upload.
        uploads: of the n clients of a round.
        names: of what clients send to be combined.
        num_items: m.
        values: the server's.
        number: of the round.
        stale: [n] rounds since each client received.
    """
    # By identity, so that a rule sees the same order however clients are put together.
    order = torch.cat([one.clients for one in uploads]).argsort()
    samples = torch.cat([one.samples for one in uploads])[order].to(next(iter(values.values())).dtype)
    weights = samples if rule.weighting == "samples" else torch.ones_like(samples)
    if rule.needs == COORDINATES:
        return {
            name: _by_coordinates(rule, uploads, name, order, weights, num_items)
            for name in sorted(names)
            if name in {*uploads[0].rows, *uploads[0].whole}
        }
    whole = [one.spread(num_items).whole for one in uploads]
    changes = {name: torch.cat([one[name] for one in whole])[order] for name in sorted(names) if name in whole[0]}
    facts = Arrived(number, len(order), weights / weights.sum(), stale[order])
    found: Params = rule.function(changes, values, facts)
    return found


def _by_coordinates(
    rule: Rule, uploads: Sequence[Upload], name: str, order: Tensor, weights: Tensor, num_items: int
) -> Tensor:
    """The combined change of one value; of a table in chunks of rows."""
    if name in uploads[0].whole:
        changes = torch.cat([one.whole[name] for one in uploads])[order]
        found: Tensor = rule.function(changes.unsqueeze(1), weights[:, None])[0]
        return found
    rows = max(1, _TOGETHER // max(1, len(order) * uploads[0].rows[name][0, :1].numel()))
    parts = []
    for first in range(0, num_items, rows):
        last = min(num_items, first + rows)
        some = [_within(one, name, first, last) for one in uploads]
        changes = torch.cat([one.whole[name] for one in some])[order]
        sent = torch.cat([one.whole[_SENT] for one in some])[order]
        parts.append(rule.function(changes, sent * weights[:, None]))
    return torch.cat(parts)


_SENT = "@sent"


def _within(upload: Upload, name: str, first: int, last: int) -> Upload:
    """Rows `first` to `last` of one table, dense, and which of them were sent."""
    here = upload.touched & (upload.items >= first) & (upload.items < last)
    ones = torch.ones_like(upload.items, dtype=upload.rows[name].dtype)
    some = replace(upload, items=(upload.items - first).clamp(0, last - first - 1), touched=here, whole={})
    return replace(some, rows={name: upload.rows[name], _SENT: ones}).spread(last - first)
