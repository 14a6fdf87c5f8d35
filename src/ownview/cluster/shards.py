"""Clients cut into shards."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from ownview.data.interactions import IdArray
from ownview.data.ragged import Ragged
from ownview.data.timeline import Timeline
from ownview.federation.facts import OwnFacts
from ownview.round.residents import OwnData


def cut(samples: Tensor, count: int) -> list[range]:
    """Positions of clients in `count` shards in a row, each with about the same number of samples, one client at least.

    Args:
        samples: [n] of each client, n >= count.
        count: of shards.
    """
    total = (samples.double() + 1e-9).cumsum(0)  # clients without samples count for a little
    ends = [int(torch.searchsorted(total, total[-1] * (k + 1) / count)) + 1 for k in range(count - 1)]
    starts = [0]
    for k, end in enumerate(ends):
        starts.append(min(max(end, starts[-1] + 1), len(samples) - (count - 1 - k)))
    return [range(first, last) for first, last in zip(starts, [*starts[1:], len(samples)], strict=True)]


def shard_data(
    train: Ragged, excluded: Ragged, timeline: Timeline, users: IdArray, facts: OwnFacts, here: range
) -> OwnData:
    """What the clients at positions `here` know."""
    lists = part(train, here)
    times = None if timeline.times is None else part(timeline.times, here)
    now = None if timeline.now is None else timeline.now[here.start : here.stop].clone()
    line = lists if timeline.items is train else part(timeline.items, here)
    never = lists if excluded is train else part(excluded, here)
    identities = torch.arange(here.start, here.stop)
    names = np.array(users[here.start : here.stop])
    return OwnData(identities, lists, never, Timeline(line, times, now), names, facts.part(here))


def part(lists: Ragged, here: range) -> Ragged:
    """The lists of users in a row, copied: a part of a common tensor would take all of it along."""
    offsets = lists.offsets[here.start : here.stop + 1].cpu()
    values = lists.values[int(offsets[0]) : int(offsets[-1])].cpu()
    return Ragged(offsets - offsets[0], values.clone())
