"""The server's check of norms: no honest client's upload has a norm above what was agreed on.

A clip is applied by the client. The server refuses an upload whose norm is too large: in clear above C, with noise
above C plus the largest norm of the noise. Under masks it sees random numbers and can check nothing.

Noise of standard deviation s on D numbers has a norm above s (sqrt D + sqrt 2t) with a chance below e^-t (Laurent and
Massart 2000, lemma 1). t = 64 ln 2: one honest upload in 2^64 is refused.
"""

from __future__ import annotations

import math
from collections.abc import Collection

import torch
from torch import Tensor

from ownview.messages.upload import Upload
from ownview.seam.client import Patch, Product

_TAIL = math.sqrt(2 * 64 * math.log(2))
_ROUNDING = 2.0**-19
"""Share of its norm that rounding may add to an upload: sixteen times what float32 tells apart."""


def noise_norm(scale: float, numbers: int) -> float:
    """The largest norm of Gaussian noise of that standard deviation on so many numbers, but for a chance of 2^-64."""
    return scale * (math.sqrt(numbers) + _TAIL)


def numbers_of(upload: Upload, symmetric: Collection[str] = ()) -> int:
    """How many independent noise values one client's upload has; of symmetric matrices one half."""
    sizes = {name: math.prod(one.shape[1:]) for name, one in upload.whole.items()}
    for name, shape in upload.shapes.items():
        side = shape[0] if shape else 1
        sizes[name] = side * (side + 1) // 2 if name in symmetric else math.prod(shape)
    return sum(sizes.values()) + sum(math.prod(one.shape[1:]) for one in upload.rows.values())


def over(upload: Upload, longest: float, weights: Tensor) -> Tensor:
    """[B] weighted norms over the largest allowed; above 1 or nan is no honest upload."""
    norms, slack = upload.norms(), _slack(upload)
    return (norms - slack).clamp(min=0) * weights.double() / longest + 0 * norms


def _slack(upload: Upload) -> Tensor:
    """[B] norm that rounding may have added: parts of a product are rounded, and may be larger than the product."""
    lengths, share = upload.norms(), _ROUNDING
    for one in upload.sums.values():
        if isinstance(one, Product):
            lengths = lengths + _length(one.left) * _length(one.right)
    for value in (*upload.rows.values(), *upload.whole.values(), *map(_values, upload.sums.values())):
        share = max(share, 16 * torch.finfo(value.dtype).eps)
    return share * lengths


def _values(one: Tensor | Product | Patch) -> Tensor:
    if isinstance(one, Product):
        return one.left
    return one.values if isinstance(one, Patch) else one


def _length(value: Tensor) -> Tensor:
    """[B] Euclidean norm, in float64."""
    norms: Tensor = torch.linalg.vector_norm(value.reshape(len(value), -1), dim=1, dtype=torch.float64)
    return norms
