"""A causal transformer over one client's items: from what it took so far to what it takes next.

Kang and McAuley, "Self-Attentive Sequential Recommendation", ICDM 2018, with normalisation before every part of a block
(Xiong et al., ICML 2020) and the loss over all items, or over some drawn ones. Everything is written for one sequence
and maps over many.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import embedding, layer_norm, normalize, relu

from ownview.base.randomness import below, bits, derive
from ownview.parts.sequences.filters import filtered, low_pass
from ownview.parts.sequences.passes import candidates, divergence, first_places, seen, shares
from ownview.parts.sequences.transitions import future
from ownview.seam.initial import Constant, Normal, Uniform
from ownview.seam.roles import RECEIVED, Param, Role
from ownview.seam.training import Params

_DROPOUT, _ITEMS, _NEGATIVES, _SECOND = (
    derive(0, f"transformer:{what}") for what in ("dropout", "items", "negatives", "second")
)
_PARTS, _SIDES = ("attention", "forward"), ("inward", "outward")
_BITS = 31
"""A value is dropped where this many random bits, as a number, are below the share that is dropped."""


Layers = Callable[[Params, str, Tensor], Tensor]
"""Parameters, the name of a matrix [a, b], rows [W, a] -> their products with it [W, b]."""


def product(p: Params, name: str, rows: Tensor) -> Tensor:
    """[W, b] of rows [W, a]."""
    return rows @ p[name]


class Lesson(NamedTuple):
    """What one sequence teaches: after its first t + 1 items comes another. W places, real ones first.

    items:   [W + 1] the sequence; its last W are the targets
    real:    [W] 1 where there is a target, 0 for padding
    """

    items: Tensor
    real: Tensor


def latest(rows: Tensor, mask: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The last `count` items of a sequence, or all where it has fewer.

    Args:
        rows: [L] items, oldest first, padding behind the last.
        mask: [L] 1 for an item, 0 for padding.
        count: at most so many.

    Returns:
        [W] items, W = min(L, count), padding (any item) behind the last; and [] how many are real.
    """
    width, there = min(len(rows), count), mask.sum().long()
    place = (there - count).clamp(min=0) + torch.arange(width, device=rows.device)
    return rows[place], there.clamp(max=width)


def lesson(rows: Tensor, mask: Tensor, length: int) -> Lesson:
    """The last `length` targets of a sequence and what came before each; none where it has one item."""
    if len(rows) == 1:  # there must be a place, if only for padding
        rows, mask = torch.cat([rows, rows]), torch.cat([mask, torch.zeros_like(mask)])
    items, there = latest(rows, mask, length + 1)
    return Lesson(items, (torch.arange(1, len(items), device=rows.device) < there).to(mask.dtype))


@dataclass(frozen=True)
class Transformer:
    """score of item i after items j_1 .. j_n = h_n . e_i, with n at most `length`.

    x_t = sqrt(d) e_(j_t) + p_(n - t); in every block x <- x + attention(norm(x)), then
    x <- x + W2 relu(W1 norm(x) + b1) + b2; h = norm(x). Attention looks back alone. Places are counted from the latest
    item, whose place is 0. While training, dropout works on x before the first block and on what each part of a block
    adds, and whole items are left out of the sequence, their places staying empty.

    With a frequency a > 0 a block adds (1 - a) attention(z) + a filter(z), z = norm(x), in the place of attention(z):
    see `parts.sequences.filters`.

    With `relative` a head weighs a place by softmax(q . k / sqrt(d / heads) + b_n), b_n learnt for places n apart. With
    a temperature T > 0 the score is the cosine of h and e_i, over T.

    Args:
        size: d, length of an item's vector e.
        blocks: one after the other.
        heads: of attention, each d / heads wide.
        length: items that are looked back at.
        dropout: share of values dropped.
        horizon: how far targets reach: with 0 a place learns the item after it alone, else a mixture of all later ones
            in which the one k places further on weighs exp(-k / horizon), weights summing to 1.
        item_dropout: share of a sequence's items that are left out; they stay targets.
        label_smoothing: share of a place's target that is spread over all items alike.
        widening: the layer of a block is so many times d wide inside.
        frequency: a, weight of the filter; 0 for attention alone.
        waves: that pass the filter unweighed, of a period of `length` places.
        looks_back: whether a place's filter sees those up to it alone; else all, which only a sequence whose last place
            alone learns may do.
        relative: whether attention learns how much each distance of two places counts.
        temperature: T; 0 for products of the vectors as they are.
        exclude_seen: whether items that stand in the sequence up to a place are no candidates there, in the loss over
            all items; the item that comes next is one always.
        r_drop: a > 0: the loss is the mean of two passes whose dropout differs, plus a / 2 times how far their shares
            are apart, see `parts.sequences.passes`; 0 for one pass.
    """

    size: int
    blocks: int
    heads: int
    length: int
    dropout: float
    horizon: float = 0.0
    item_dropout: float = 0.0
    label_smoothing: float = 0.0
    widening: int = 1
    frequency: float = 0.0
    waves: int = 3
    looks_back: bool = True
    relative: bool = False
    temperature: float = 0.0
    exclude_seen: bool = False
    r_drop: float = 0.0

    def params(self, num_items: int, role: Role) -> dict[str, Param]:
        """Items [m, d] and places [length, d] Gaussian with 0.02; layers of k inputs uniform within 1 / sqrt(k)."""
        d, wide, vector, layer = self.size, self.widening * self.size, Normal(0.02), Uniform(1 / math.sqrt(self.size))
        made = {"items": Param((num_items, d), role, initial=vector)}
        made["places"] = Param((self.length, d), role, initial=vector)
        for k in range(self.blocks):
            made |= _norm(f"block{k}.attention", d, role)
            made[f"block{k}.attention.inward"] = Param((d, 3 * d), role, initial=layer)
            made[f"block{k}.attention.outward"] = Param((d, d), role, initial=layer)
            if self.relative:
                made[f"block{k}.attention.apart"] = Param((self.heads, self.length), role, initial=Constant(0.0))
            if self.frequency > 0:
                made[f"block{k}.filter.root"] = Param((d,), role, initial=Normal(1.0))
            made |= _norm(f"block{k}.forward", d, role)
            for side, (many, few) in {"inward": (d, wide), "outward": (wide, d)}.items():
                made[f"block{k}.forward.{side}"] = Param((many, few), role, initial=Uniform(1 / math.sqrt(many)))
                made[f"block{k}.forward.{side}.bias"] = Param((few,), role, initial=Constant(0.0))
        return made | _norm("last", d, role)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all parameters."""
        return tuple(self.params(1, RECEIVED))

    @property
    def matrices(self) -> tuple[str, ...]:
        """Names of the matrices that rows go through."""
        return tuple(f"block{k}.{part}.{side}" for k in range(self.blocks) for part in _PARTS for side in _SIDES)

    def working(self, candidates: int) -> int:
        """Numbers held by one sequence's loss and gradient: scores of all candidates, attention, activations."""
        return self.score_matrices * self.length * candidates + self.passes * self.inside(self.length)

    @property
    def score_matrices(self) -> int:
        """Scores of all candidates at all places, how many times over: two passes are compared item by item."""
        return 3 * self.passes + 9 * (self.passes - 1) + self.exclude_seen

    def inside(self, length: int) -> int:
        """Numbers held by attention, and between layers, for a sequence of this length."""
        filtering = 6 * self.size if self.frequency > 0 else 0
        wide = 40 * self.size + 6 * (self.widening - 1) * self.size + filtering
        weights = (6 if self.relative else 4) * self.heads * length**2
        return self.blocks * (weights + length * wide)

    def loss(self, p: Params, taught: Lesson, chance: Tensor, negatives: int = 0, step: int = 0) -> Tensor:
        """[] the sum over places of -log softmax(scores)[target], over all items or, with `negatives`, some drawn.

        Drawn are that many items a sequence and step, with equal chances; where one is the target it is left out. With
        a horizon or smoothing it is the mean over the targets of a place, and over all items.
        """
        table = self.table(p)
        hidden, wanted = self.taught(p, table, taught, chance, step)
        if negatives:
            every = every_score(table, hidden[0], wanted, taught.items[1:], chance, negatives, step)
        else:
            every = self._every_score(hidden @ table.T, self.excludes(taught, len(table)))
        return (taught.real * (every - wanted)).sum()

    def _every_score(self, scores: Tensor, excluded: Tensor | None) -> Tensor:
        """[W] the mean over passes of log sum exp of the scores [K, W, m], with what R-Drop adds."""
        every = torch.logsumexp(candidates(scores, excluded), -1).mean(0)
        return every + self.r_drop / 2 * divergence(scores, shares(scores, excluded)) if self.r_drop else every

    def excludes(self, taught: Lesson, many: int) -> Tensor | None:
        """[W, m] which items are no candidates at each place of a lesson; None where all are."""
        if not self.exclude_seen:
            return None
        first = self.firsts(taught, many)
        return seen(first[None], torch.arange(len(taught.real), device=first.device), taught.items[1:])

    def firsts(self, taught: Lesson, many: int) -> Tensor:
        """[m] the first place of each item of a lesson."""
        return first_places(taught.items, taught.real.sum().long() + 1, many)

    @property
    def passes(self) -> int:
        """K, how often a sequence is gone through for its loss."""
        return 2 if self.r_drop else 1

    def chances(self, chance: Tensor) -> tuple[Tensor, ...]:
        """What keys the dropout of each pass."""
        return (chance, bits(_SECOND, chance, torch.zeros_like(chance)))[: self.passes]

    def taught(self, p: Params, table: Tensor, taught: Lesson, chance: Tensor, step: int = 0) -> tuple[Tensor, Tensor]:
        """[K, W, d] h after each item of a lesson in each pass, and [W] the mean score of what comes next, or comes.

        `table` is `self.table(p)`, given so that it is computed once for many lessons.
        """
        items, there = taught.items[:-1], taught.real.sum().long()
        hidden = torch.stack([self.hidden(p, items, there, one, step) for one in self.chances(chance)])
        targets = embedding(taught.items[1:], table)
        if self.horizon > 0:
            targets = self.ahead(taught.real) @ targets
        return hidden, self.wanted(table, hidden.mean(0), targets)

    def ahead(self, real: Tensor) -> Tensor:
        """[W, W] how much each place [W] learns of the target of every place: of its own, or of all from its own on.

        Padding has no weight, and a place of padding does not count.
        """
        if self.horizon == 0:
            return torch.diag_embed(real)
        ahead = future(len(real), self.horizon, real) * real
        return ahead / ahead.sum(-1, keepdim=True).clamp(min=1e-30)

    def wanted(self, table: Tensor, hidden: Tensor, targets: Tensor) -> Tensor:
        """[W] h . target, of states [W, d] and targets [W, d], a share of them spread over all items."""
        if self.label_smoothing > 0:
            targets = torch.lerp(targets, table.mean(0).expand_as(targets), self.label_smoothing)
        return (hidden * targets).sum(-1)

    def table(self, p: Params) -> Tensor:
        """[m, d] what states are multiplied with: the items, or with a temperature their directions over it."""
        return normalize(p["items"], dim=-1) / self.temperature if self.temperature > 0 else p["items"]

    def scores(self, p: Params, rows: Tensor, mask: Tensor) -> Tensor:
        """[m] of what comes next after a whole sequence; by the places alone where it is empty."""
        return self.table(p) @ self.last(p, rows, mask)

    def last(self, p: Params, rows: Tensor, mask: Tensor) -> Tensor:
        """[d] h at the latest item of a sequence, rows and mask [L] as in `latest`."""
        return self.at_last(p, *latest(rows, mask, self.length))

    def at_last(self, p: Params, items: Tensor, there: Tensor, chance: Tensor | None = None) -> Tensor:
        """[d] h at the last real item; the arguments are those of `hidden`."""
        return self.hidden(p, items, there, chance).index_select(0, (there - 1).clamp(min=0).reshape(1))[0]

    def hidden(
        self, p: Params, items: Tensor, there: Tensor, chance: Tensor | None = None, step: int = 0,
        layers: Layers | None = None,
    ) -> Tensor:  # fmt: skip
        """[W, d] h after each item, with a temperature of length 1.

        Args:
            p: parameters.
            items: [W], padding behind the last: attention never looks ahead and the filter sees 0 there, so it changes
                nothing.
            there: [] how many are real.
            chance: of the client in this round, which keys dropout; None for none.
            step: index that separates draws of the same chance.
            layers: how rows go through matrices, where somebody listens; None for products alone.
        """
        through = product if layers is None else layers
        t = torch.arange(len(items), device=items.device)
        known = t < there  # of an empty sequence not even the first is
        if chance is not None and self.item_dropout > 0:
            known = known & _stays(_ITEMS, chance, step * self.length + t, self.item_dropout)
        vectors = math.sqrt(self.size) * embedding(items, p["items"]) * known.to(p["items"].dtype)[:, None]
        x = vectors + embedding((there - 1 - t).clamp(min=0), p["places"])
        x = self._dropped(x, chance, 0, step)
        around = self._around(x, t < there.clamp(min=1))
        for k in range(self.blocks):
            x = x + self._dropped(self._looked(p, f"block{k}", x, around, through), chance, 2 * k + 1, step)
            x = x + self._dropped(_forward(p, f"block{k}.forward", x, through), chance, 2 * k + 2, step)
        last = _normed(p, "last", x)
        return normalize(last, dim=-1) if self.temperature > 0 else last

    def low_pass(self, like: Tensor) -> Tensor:
        """[length, length] the filter's matrix, of the type and on the device of another tensor."""
        return low_pass(self.length, self.waves, like, back_alone=self.looks_back)

    def _around(self, x: Tensor, real: Tensor) -> tuple[Tensor, Tensor] | None:
        """The filter's matrix, and [W, 1] which places it sees; None without a filter."""
        return (self.low_pass(x), real.to(x.dtype)[:, None]) if self.frequency > 0 else None

    def _looked(
        self, p: Params, block: str, x: Tensor, around: tuple[Tensor, Tensor] | None, through: Layers
    ) -> Tensor:
        """[W, d] what a block takes from other places: by attention, and by the filter."""
        normed = _normed(p, f"{block}.attention", x)
        attention = self._attention(p, f"{block}.attention", normed, through)
        if around is None:
            return attention
        kernel, real = around
        return torch.lerp(attention, filtered(normed * real, kernel, p[f"{block}.filter.root"]), self.frequency)

    def _attention(self, p: Params, name: str, normed: Tensor, through: Layers) -> Tensor:
        """[W, d] every head's mean of values over the places so far, weighed as `Transformer` has it."""
        width, d = normed.shape
        parts = through(p, f"{name}.inward", normed).reshape(width, 3, self.heads, d // self.heads)
        query, key, value = parts.permute(1, 2, 0, 3).unbind(0)
        ahead = torch.ones(width, width, dtype=torch.bool, device=normed.device).triu(1)
        near = query @ key.transpose(-1, -2) / math.sqrt(d // self.heads)
        if self.relative:
            t = torch.arange(width, device=normed.device)
            near = near + p[f"{name}.apart"][:, (t[:, None] - t).clamp(min=0)]
        weights = torch.softmax(torch.where(ahead, -torch.inf, near), -1)
        mean = (weights @ value).transpose(0, 1).reshape(width, d)
        return through(p, f"{name}.outward", mean)

    def _dropped(self, x: Tensor, chance: Tensor | None, place: int, step: int) -> Tensor:
        """x with a share of its values 0 and the others larger by as much; the same however long the padding."""
        if chance is None or self.dropout == 0:
            return x
        width, d = x.shape
        first = (step * (2 * self.blocks + 1) + place) * self.length * d
        counters = first + torch.arange(width * d, device=x.device).reshape(width, d)
        left: Tensor = x * _stays(_DROPOUT, chance, counters, self.dropout).to(x.dtype) / (1 - self.dropout)
        return left


def every_score(
    table: Tensor, hidden: Tensor, wanted: Tensor, targets: Tensor, chance: Tensor, negatives: int, step: int
) -> Tensor:
    """[W] log sum exp of the scores of all items, or of the wanted one and so many that are drawn for a sequence.

    Args:
        table: [m, d] vectors of items.
        hidden: [W, d] states.
        wanted: [W] scores of the targets.
        targets: [W] items, which are left out where they are drawn.
        chance: of the client in this round.
        negatives: items that are drawn; 0 for all.
        step: index that separates draws of the same chance.
    """
    if negatives == 0:
        return torch.logsumexp(hidden @ table.T, -1)
    counters = step * negatives + torch.arange(negatives, device=hidden.device)
    drawn = below(bits(_NEGATIVES, chance, counters), len(table))
    others = hidden @ embedding(drawn, table).T
    others = torch.where(drawn == targets[:, None], -torch.inf, others)
    return torch.logsumexp(torch.cat([wanted[:, None], others], -1), -1)


def _stays(stream: int, chance: Tensor, counters: Tensor, dropped: float) -> Tensor:
    """Which of some draws stay where a share is dropped: the same for the same chance and counter."""
    stays: Tensor = (bits(stream, chance, counters) >> (63 - _BITS)) >= round(dropped * 2**_BITS)
    return stays


def _norm(name: str, size: int, role: Role) -> dict[str, Param]:
    scale, shift = (Param((size,), role, initial=Constant(value)) for value in (1.0, 0.0))
    return {f"{name}.scale": scale, f"{name}.shift": shift}


def _normed(p: Params, name: str, x: Tensor) -> Tensor:
    return layer_norm(x, x.shape[-1:], p[f"{name}.scale"], p[f"{name}.shift"], 1e-8)


def _forward(p: Params, name: str, x: Tensor, through: Layers) -> Tensor:
    inner = relu(through(p, f"{name}.inward", _normed(p, name, x)) + p[f"{name}.inward.bias"])
    return through(p, f"{name}.outward", inner) + p[f"{name}.outward.bias"]
