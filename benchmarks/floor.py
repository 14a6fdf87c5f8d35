"""What a machine cannot go below: its bandwidth, and the bytes that training must move through it."""

from __future__ import annotations

import math
import time

import torch

from ownview.federation.training import TrainingWork
from ownview.round.federation import Federation
from ownview.seam.optimizers import Adam

_NUMBERS = 2**25
_PASSES = {True: 6, False: 2}
"""Adam reads and writes a value and two moments, SGD a value; a gradient made on the way costs nothing."""


def bandwidth() -> float:
    """Bytes a second that one core reads and writes while it copies 128 MB, the best of seven."""
    source, target = torch.zeros(_NUMBERS), torch.ones(_NUMBERS)
    seconds = []
    for _ in range(7):
        start = time.process_time()
        target.copy_(source)
        seconds.append(time.process_time() - start)
    return 2 * source.numel() * source.element_size() / min(seconds)


def bytes_of_a_round(one: Federation, number: int) -> int | None:
    """Bytes that the optimisers of all clients read and write in a round; None where clients do not train.

    Every step moves what its phase says: of tables the rows that the client's samples of the round are about. Phases on
    half of the samples, and early stops, are counted as if they had all.
    """
    work = one.work
    if not isinstance(work, TrainingWork):
        return None
    params, total = one.client.params, 0
    for block in work.blocks(torch.arange(one.world.num_clients)):
        samples = work.samples(number, block)
        steps = torch.tensor([math.ceil(size / work.work.batch_size) for size in samples.host_sizes])
        for phase in one.client.phases:
            for part in (part for step in phase.steps for part in step.parts):
                passes = _PASSES[isinstance(part.optimizer, Adam)]
                for name in part.names:
                    numbers = math.prod(params[name].shape)
                    held = samples.num_rows * numbers if params[name].rows else torch.full_like(steps, numbers)
                    total += int((held * steps).sum()) * phase.epochs * passes * one.machine.bytes_per_value
    return total
