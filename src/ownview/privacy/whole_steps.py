"""Summands of protected sums as whole steps of exactly bounded norm; and noise in whole steps.

Sums of floating-point numbers are rounded, each in a way that depends on all others, and their last digits tell more
than noise hides. So whatever is added up is brought to whole numbers first, client by client: a user more or less then
changes the sum by a vector of whole numbers whose norm is bounded, exactly, whatever the client sent. Noise is a whole
number of steps as well (`privacy.exact_gaussian`), of standard deviation 2^e, e = 20: steps are so fine that rounding
is lost in the noise. (Where z is below 2^-6, which hides nothing, e is smaller: norms must stay below 2^26, so that
their squares are exact in float64.)

A change x becomes round(x scale), scale = 2^e / (z C (1 + 2^-16)), and all of a client's numbers together have norm
2^e / z at most; a longer vector is shortened and cut towards 0. The hair above C leaves room for rounding, so that a
client at the bound is not shortened for it; it costs as much in noise.

Of a symmetric matrix the numbers on and above the diagonal count, those above it times sqrt 2: the vector of these is
as long as the matrix, and the same noise on all of its numbers is z C on the diagonal and z C / sqrt 2 off it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from ownview.messages.upload import Upload, wide
from ownview.privacy.entropy import NoiseKey
from ownview.privacy.exact_gaussian import rounded_gaussian
from ownview.seam.client import Patch, Product, Sent
from ownview.seam.protection import Protection

BOUND = "privacy.clip"
"""What clients receive as the bound C and answer with 1/2, or -1/2 where they are above it; adaptive clips only."""

_FINEST, _LONGEST = 20, 26
"""Noise has a standard deviation of 2^20 steps at most, and a client's whole numbers a norm of 2^26."""

_ROOM = 1 + 2.0**-16
_SHORTER = 1 - 2.0**-40
_NUMBERS_TOGETHER = 2**22
"""Numbers of products that are multiplied out at once."""


@dataclass(frozen=True)
class WholeSteps:
    """Contributions of one round in whole steps, and their noise.

    Args:
        changes: z, standard deviation of the noise over C, for what clients learnt.
        quantile: standard deviation of the noise on the count of norms within C.
        clip: C of this round.
        symmetric: names of the sums that are symmetric matrices.
    """

    changes: float
    quantile: float
    clip: float
    symmetric: frozenset[str] = frozenset()

    @classmethod
    def of(cls, plan: Protection, number: int, clip: float, symmetric: frozenset[str]) -> WholeSteps:
        """The steps of round `number` of a plan."""
        return cls(plan.of_changes(number), plan.of_quantile(number), clip, symmetric)

    @property
    def exponent(self) -> int:
        """e: noise has a standard deviation of 2^e steps."""
        return max(0, min(_FINEST, math.floor(_LONGEST + math.log2(self.changes))))

    @property
    def longest(self) -> float:
        """The largest norm of one client's whole numbers."""
        return 2.0**self.exponent / self.changes

    def scale(self, name: str) -> float:
        """Steps per unit: 2^e / (z C (1 + 2^-16))."""
        return 2.0**self.exponent / (self.quantile if name == BOUND else self.changes * self.clip * _ROOM)

    def parts(self, upload: Upload) -> Iterator[Upload]:
        """`whole` in blocks of clients, to bound the memory of dense summands."""
        products = [one for one in upload.sums.values() if isinstance(one, Product)]
        numbers = sum(one.left.shape[-1] * one.right.shape[-1] for one in products)
        together = max(1, _NUMBERS_TOGETHER // max(1, numbers))
        if not products or together >= len(upload.clients):
            yield self.whole(upload)
            return
        for start in range(0, len(upload.clients), together):
            yield self.whole(upload.chosen(slice(start, start + together)))

    def whole(self, upload: Upload) -> Upload:
        """Summands as whole numbers, in float64; products are multiplied out.

        Numbers that are not finite count as 0.
        """
        rows = {name: self._rounded(name, value * wide(upload.touched, value)) for name, value in upload.rows.items()}
        kept = {name: self._rounded(name, value) for name, value in upload.whole.items() if name != BOUND}
        sums = {name: self._summand(name, one) for name, one in upload.sums.items()}
        cells = [one.values if isinstance(one, Patch) else one for one in sums.values()]
        factors = self._factors([*rows.values(), *kept.values(), *cells], upload)
        for value in (*rows.values(), *kept.values(), *cells):
            # What is within its norm stays as it is, because whole numbers times 1 are whole.
            value.mul_(wide(factors, value)).trunc_()
        if BOUND in upload.whole:
            half = upload.whole[BOUND].double().nan_to_num(0.0).clamp(-0.5, 0.5)
            kept[BOUND] = torch.trunc(half * self.scale(BOUND))
        return replace(upload, rows=rows, whole=kept, sums=sums)

    def noisy(self, name: str, steps: Tensor, noise: NoiseKey, *purpose: str | int) -> Tensor:
        """Whole numbers with noise, in place, and the values that they stand for, in float64.

        Args:
            name: of what they are.
            steps: [...] whole numbers in float64, contiguous; written over.
            noise: what to draw from.
            purpose: names the stream of the key.
        """
        here = steps.cpu()  # entropy comes from the processor's system
        stream = noise.stream(*purpose, name, content=here.numpy())
        if name not in self.symmetric:
            for piece in torch.split(here.view(-1), _NUMBERS_TOGETHER):
                piece.add_(torch.from_numpy(rounded_gaussian(stream, len(piece), self.exponent)))
            return here.div_(self.scale(name)).to(steps.device)
        size, band = len(here), max(1, _NUMBERS_TOGETHER // max(1, len(here)))
        for start in range(0, size, band):
            rows = here[start : start + band]
            above = torch.ones_like(rows, dtype=torch.bool).triu_(start)
            rows[above] += torch.from_numpy(rounded_gaussian(stream, int(above.sum()), self.exponent))
        here.triu_().div_(self.scale(name))
        above = here.triu(1).div_(math.sqrt(2))
        here = torch.diag(here.diagonal()) + above
        return here.add_(above.mT).to(steps.device)

    def _rounded(self, name: str, value: Tensor) -> Tensor:
        return value.double().mul(self.scale(name)).nan_to_num_(0.0, 0.0, 0.0).round_()

    def _summand(self, name: str, one: Sent) -> Tensor | Patch:
        if isinstance(one, Patch):
            columns = _places(one.values) if one.of_rows else one.columns
            return one._replace(
                values=self._rounded(name, one.values.double() * self._counted(name, one.rows, columns))
            )
        values = (one.left.mT @ one.right if isinstance(one, Product) else one).double()
        places = _places(values)
        return self._rounded(name, values * self._counted(name, places, places))

    def _counted(self, name: str, rows: Tensor, columns: Tensor) -> Tensor | float:
        """[B, k, l] weights of cells in the norm: of a symmetric matrix 1 on the diagonal, sqrt 2 above, 0 below."""
        if name not in self.symmetric:
            return 1.0
        apart = columns[:, None, :] - rows[:, :, None]
        return (apart > 0) * math.sqrt(2) + (apart == 0)

    def _factors(self, numbers: list[Tensor], upload: Upload) -> Tensor:
        """[B] 1 where a client's norm is within the bound, else less; exact: no sum of squares there reaches 2^53."""
        squares = torch.zeros(len(upload.clients), dtype=torch.float64, device=upload.clients.device)
        for one in numbers:
            squares += one.reshape(len(one), -1).square().sum(1)
        fits = squares <= self.longest**2
        return torch.where(fits, 1.0, self.longest * _SHORTER / squares.clamp(min=1).sqrt())


def _places(values: Tensor) -> Tensor:
    """[1, b] all columns in order."""
    return torch.arange(values.shape[-1], device=values.device)[None]
