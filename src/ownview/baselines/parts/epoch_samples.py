"""What a central model trains on: the samples that a federation would draw in that round, of all users at once."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from ownview.base.randomness import derive, generator
from ownview.baselines.parts.central import Lessons
from ownview.data.negatives import NegativeSampler
from ownview.data.ragged import Ragged

_USERS = 256
"""Users whose negatives are drawn at once: bounds memory."""

Samples = tuple[Tensor, Tensor, Tensor]
"""Users, items and labels, [S] each."""


def drawn(train: Ragged, sampler: NegativeSampler, key: int) -> tuple[Tensor, Tensor]:
    """Users [P] and items [P, 1 + k]: every positive, then its k fresh negatives.

    Args:
        train: the positives.
        sampler: knows k, and which items it may not draw.
        key: of this epoch, from `ownview.base.randomness.derive`.
    """
    users, items = (torch.cat(column) for column in zip(*_drawn_by_some(train, sampler, key), strict=True))
    return users, items


def _drawn_by_some(train: Ragged, sampler: NegativeSampler, key: int) -> Iterator[tuple[Tensor, Tensor]]:
    for users in torch.split(torch.arange(len(train), device=train.values.device), _USERS):
        positives, real = train.padded(users)
        items = torch.cat([positives[..., None], sampler.draw(key, users, positives.shape[1])], dim=-1)
        yield users[:, None].expand_as(positives)[real], items[real]


def labelled(train: Ragged, sampler: NegativeSampler, key: int) -> Samples:
    """Every positive and every negative as a sample of its own."""
    users, items = drawn(train, sampler, key)
    labels = torch.zeros(items.shape, device=items.device)
    labels[:, 0] = 1
    return users.repeat_interleave(items.shape[1]), items.reshape(-1), labels.reshape(-1)


def labelled_batches(lessons: Lessons, number: int, negatives: int, size: int) -> Iterator[Samples]:
    """An epoch's samples in batches, in an order of its own."""
    users, items, labels = labelled(lessons.train, _sampler(lessons, negatives), _key(lessons, number))
    for batch in _batches(lessons, number, len(users), size):
        yield users[batch], items[batch], labels[batch]


def paired_batches(lessons: Lessons, number: int, size: int) -> Iterator[Samples]:
    """An epoch's pairs in batches: users, their positives, and one negative for each, [S] every one of them."""
    users, items = drawn(lessons.train, _sampler(lessons, 1), _key(lessons, number))
    for batch in _batches(lessons, number, len(users), size):
        yield users[batch], items[batch, 0], items[batch, 1]


def _sampler(lessons: Lessons, negatives: int) -> NegativeSampler:
    return NegativeSampler(lessons.excluded, lessons.num_items, negatives, lessons.names)


def _key(lessons: Lessons, number: int) -> int:
    return derive(lessons.seed, "negatives", number)


def _batches(lessons: Lessons, number: int, count: int, size: int) -> tuple[Tensor, ...]:
    """Drawn on the CPU, so that the order is the same on every device."""
    order = torch.randperm(count, generator=generator(lessons.seed, "shuffle", number))
    return torch.split(order.to(lessons.device), size)
