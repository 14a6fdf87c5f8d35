"""A block of clients with a round's training samples, on the rows they touch, and halves of them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from ownview.base.randomness import bits, sort_keys
from ownview.data.negatives import NegativeSampler
from ownview.data.ragged import Ragged

_PLACE_BITS = 31
_PLACES = 1 << _PLACE_BITS
"""More samples than any client has; packs an item and a place into one sortable integer."""

_CHANGING = ("identities", "sizes", "rows", "labels", "partners")
"""What training reads of samples, and what may be another in the next round."""


@dataclass(frozen=True, eq=False)
class Samples:
    """The samples of B clients in one round. Only touched rows get a place in the clients' tables.

    A row that a client never touches has zero gradient and zero momentum, so leaving it out is exact.

    Args:
        clients: [B] positions among the clients that are here.
        identities: [B] the clients' stable identities, which key all randomness, wherever they are.
        items: [B, R] the item behind each row, ascending; padding repeats item 0 and is never in a batch.
        num_rows: [B] real rows of each client.
        rows: [B, S] the row of each sample.
        labels: [B, S] 1.0 for positives, else 0.0; 0.0 for padding.
        sizes: [B] real samples of each client; they come first.
        host_sizes: the same as plain numbers, read without waiting for a GPU.
        partners: [B, S] the row of the positive that each sample was drawn for; [B, 0] without `pairs`.
    """

    clients: Tensor
    identities: Tensor
    items: Tensor
    num_rows: Tensor
    rows: Tensor
    labels: Tensor
    sizes: Tensor
    host_sizes: tuple[int, ...]
    partners: Tensor

    @property
    def real_rows(self) -> Tensor:
        """[B, R] True where a row is no padding."""
        return torch.arange(self.items.shape[1], device=self.items.device) < self.num_rows[:, None]

    @property
    def real_samples(self) -> Tensor:
        """[B, S] False for padding, which stands behind the samples in every order."""
        return torch.arange(self.rows.shape[-1], device=self.rows.device) < self.sizes[..., None]

    @property
    def sampled_rows(self) -> Tensor:
        """[B, R] True for rows that a sample is about: all but padding, unless every item is kept as a row."""
        counts = torch.zeros(self.items.shape, dtype=torch.long, device=self.items.device)
        return counts.scatter_add(-1, self.rows, self.real_samples.long()) > 0

    def copied(self) -> Samples:
        """A copy; tensors that are the same in every round are shared."""
        return replace(self, **{name: getattr(self, name).clone() for name in _CHANGING})

    def take_over(self, other: Samples) -> None:
        """Overwrite these tensors with the samples of another round, of the same shapes."""
        for name in _CHANGING:
            getattr(self, name).copy_(getattr(other, name))

    def alone(self, index: int) -> Samples:
        """One client without padding and without the client axis."""
        rows, size = int(self.num_rows[index]), self.host_sizes[index]
        return Samples(
            self.clients[index],
            self.identities[index],
            self.items[index, :rows],
            self.num_rows[index],
            self.rows[index, :size],
            self.labels[index, :size],
            self.sizes[index],
            (size,),
            self.partners[index, :size],
        )


@dataclass(frozen=True)
class Foreseen:
    """Upper bounds known before drawing, so that the host need not wait for a GPU.

    Args:
        lengths: of their training lists.
        excluded: length of the longest list that negatives are not drawn from.
        rows: allocated; see `likely_rows`.
    """

    lengths: tuple[int, ...]
    excluded: int
    rows: int

    @classmethod
    def of(cls, clients: Tensor, train: Ragged, sampler: NegativeSampler) -> Foreseen:
        """Sizes of the samples of clients [B], whose positions are on the host."""
        lengths, excluded = train.host_lengths_of(clients), sampler.excluded.host_lengths_of(clients)
        rows = likely_rows(lengths, sampler.num_items - excluded, sampler.per_positive, sampler.num_items)
        return cls(tuple(lengths.tolist()), int(excluded.max()), rows)


_SPREADS = 8
"""How many standard deviations above what is expected a count of rows is not looked for: chance below 1e-14."""

_ROWS_TOGETHER = 32
"""Tables have a multiple of this many rows on a GPU."""


def likely_rows(positives: Tensor, allowed: Tensor, per_positive: int, num_items: int) -> int:
    """Rows that none of some clients touches more of, but for a chance below 1e-14: the same in every round.

    Of N allowed items n uniform draws hit N (1 - e^-x) distinct ones with a variance of N e^-x (1 - (1 + x) e^-x),
    x = n / N. Draws for one positive are distinct, which adds less than the spread that is left.

    Args:
        positives: [B] training items.
        allowed: [B] items that negatives are drawn from.
        per_positive: negatives.
        num_items: m.
    """
    draws, among = (positives * per_positive).double(), allowed.clamp(min=1).double()
    missed = torch.exp(-draws / among)
    spread = (among * missed * (1 - (1 + draws / among) * missed)).clamp(min=0).sqrt()
    found = positives + torch.minimum(among * (1 - missed) + _SPREADS * (spread + 1), draws)
    rounded = -(-int(found.max().ceil()) // _ROWS_TOGETHER) * _ROWS_TOGETHER
    return max(1, min(rounded, num_items))


def draw_samples(
    key: int | Tensor,
    clients: Tensor,
    identities: Tensor,
    train: Ragged,
    sampler: NegativeSampler,
    dtype: torch.dtype,
    *,
    dense: bool = False,
    pairs: bool = False,
    foreseen: Foreseen | None = None,
) -> Samples:
    """Positives with fresh negatives: each positive is followed by its own negatives.

    Args:
        key: of this round, in a tensor [] where drawing is recorded.
        clients: [B] positions.
        identities: [B] of the clients.
        train: training positives of the clients that are here.
        sampler: of the negatives.
        dtype: of the labels.
        dense: keep every item as a row, touched or not (for checks).
        pairs: note which positive each negative was drawn for.
        foreseen: what is known of the clients; then the host waits for nothing, and where a client has more `num_rows`
            than there is place for, the samples are of no use.
    """
    longest, of_excluded = (None, None) if foreseen is None else (max(foreseen.lengths), foreseen.excluded)
    positives, real = train.padded(clients, longest)
    negatives = sampler.draw(key, clients, positives.shape[1], identities, of_excluded)
    drawn = torch.cat([positives[..., None], negatives], dim=-1)
    labels = torch.zeros(drawn.shape, dtype=dtype, device=drawn.device)
    labels[..., 0] = real.to(dtype)
    present = real[..., None].expand(drawn.shape).reshape(len(clients), -1)
    sampled = drawn.reshape(len(clients), -1)
    if dense:
        items, num_rows, rows = _all_rows(sampled, sampler.num_items)
    else:
        items, num_rows, rows = touched(
            sampled, present, sampler.num_items, None if foreseen is None else foreseen.rows
        )
    group = 1 + sampler.per_positive
    sizes = real.sum(1) * group
    known = tuple(sizes.tolist() if foreseen is None else (length * group for length in foreseen.lengths))
    first_of_group = rows.reshape(drawn.shape)[..., :1].expand(drawn.shape).reshape(rows.shape)
    partners = first_of_group if pairs else rows[:, :0]
    labels = labels.reshape(len(clients), -1)
    return Samples(clients, identities, items, num_rows, rows, labels, sizes, known, partners)


_SPARSE = 16
"""With more items than this for each sample, samples are sorted: marking every item would take more."""


def touched(
    sampled: Tensor, present: Tensor, num_items: int, width: int | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """Number the distinct items of every client.

    Args:
        sampled: [B, S] items.
        present: [B, S] False for padding.
        num_items: m.
        width: R; None for the most that a client has, which on a GPU the host waits for.

    Returns:
        items [B, R] distinct and ascending, num_rows [B], and rows [B, S] with items[b, rows[b, s]] = sampled[b, s]
        (row 0 for padding). Of a client with more than R items, only num_rows is true.
    """
    if sampled.device.type != "cpu" and num_items <= _SPARSE * sampled.shape[1]:
        return marked(sampled, present, num_items, width)
    place = torch.arange(sampled.shape[1], device=sampled.device)
    keys = torch.where(present, sampled, _PLACES) << _PLACE_BITS | place
    keys = sort_keys(keys)
    item, place = keys >> _PLACE_BITS, keys & (_PLACES - 1)
    real = item < _PLACES
    fresh = real.clone()
    fresh[:, 1:] &= item[:, 1:] != item[:, :-1]
    row = (fresh.cumsum(1) - 1).clamp(min=0)
    num_rows = fresh.sum(1)
    width = max(int(num_rows.max()), 1) if width is None else width
    row = torch.where(real, row, 0).clamp_(max=width - 1)
    rows = torch.zeros_like(sampled).scatter_(1, place, row)
    # Equal items are written to one row, and padding writes row 0's item there once more.
    first = torch.where(real[:, :1], item[:, :1], 0)
    items = item.new_zeros(len(sampled), width).scatter_(1, row, torch.where(real, item, first))
    return items, num_rows, rows


def marked(sampled: Tensor, present: Tensor, num_items: int, width: int | None = None) -> tuple[Tensor, Tensor, Tensor]:
    """`touched` by marking present items in an array, without sorting."""
    count = len(sampled)
    marks = torch.zeros(count, num_items + 1, dtype=torch.int32, device=sampled.device)
    marks.scatter_(1, torch.where(present, sampled, num_items), 1)
    marks = marks[:, :num_items]
    upto = marks.cumsum(1, dtype=torch.int32)
    num_rows = upto[:, -1].long()
    width = max(int(num_rows.max()), 1) if width is None else width
    row_of = (upto - 1).clamp_(min=0, max=width - 1).long()
    rows = torch.where(present, row_of.gather(1, sampled), 0)
    every = torch.arange(num_items, device=sampled.device).expand(count, num_items)
    # What is not marked is written behind the last row and left there.
    items = every.new_zeros(count, width + 1).scatter_(1, torch.where(marks > 0, row_of, width), every)
    return items[:, :width].contiguous(), num_rows, rows


def _all_rows(sampled: Tensor, num_items: int) -> tuple[Tensor, Tensor, Tensor]:
    every = torch.arange(num_items, device=sampled.device).expand(len(sampled), num_items)
    return every, torch.full((len(sampled),), num_items, device=sampled.device), sampled


_PLACE = (1 << 25) - 1
"""The low bits of a sort key hold a sample's place; no client has 33 million samples."""


def half_of(samples: Samples, part: str, group: int, key: int) -> Samples:
    """The support or the query half of every client's samples, on the same rows.

    A client's positives are put in a random order that follows from the key, the client and the positive's place; the
    first half of them, rounded up, is the support. So clients with more samples never have a smaller half, and a stack
    with the busiest first remains one.

    Args:
        samples: of a stack of clients, or of one without the client axis; every positive is followed by its negatives.
        part: support or query.
        group: a positive and its negatives.
        key: of the draw.
    """
    counts = samples.sizes // group
    supports = (counts + 1) // 2
    order = random_order(key, samples.identities, samples.rows.shape[-1] // group, counts)
    kept = supports if part == "support" else counts - supports
    host = [size // group for size in samples.host_sizes]
    host_kept = [(count + 1) // 2 if part == "support" else count // 2 for count in host]
    first = torch.zeros_like(supports) if part == "support" else supports
    place = torch.arange(max(*host_kept, 1), device=order.device)
    chosen = order.gather(-1, (first[..., None] + place).clamp(max=order.shape[-1] - 1))
    members = (chosen[..., None] * group + torch.arange(group, device=order.device)).flatten(-2)
    real = (place < kept[..., None]).repeat_interleave(group, dim=-1)
    rows = torch.where(real, samples.rows.gather(-1, members), 0)
    labels = torch.where(real, samples.labels.gather(-1, members), 0.0)
    partners = samples.partners
    if partners.shape[-1]:
        partners = torch.where(real, partners.gather(-1, members), 0)
    host_sizes = tuple(one * group for one in host_kept)
    return replace(samples, rows=rows, labels=labels, sizes=kept * group, host_sizes=host_sizes, partners=partners)


def random_order(key: int | Tensor, identities: Tensor, length: int, sizes: Tensor) -> Tensor:
    """[..., length] places 0, 1, ... in a random order of each client's own; those from its size on stay behind."""
    place = torch.arange(length, device=identities.device)
    random = bits(key, identities[..., None], place) >> 1 & ~_PLACE
    return sort_keys(torch.where(place < sizes[..., None], random, 1 << 62) | place) & _PLACE
