"""What liars send: honest work on a fake history, the same enlarged, or what moves a sum the most."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import torch
from torch import Tensor

from ownview.attacks.dishonest.crew import DEGRADE, DEMOTE, Crew
from ownview.messages.upload import Upload
from ownview.seam.client import Patch, Sent, Summand


def enlarged(upload: Upload, factor: float) -> Upload:
    """One liar's upload times a factor."""
    return upload.scaled(torch.full((1,), factor, dtype=torch.float64))


def to_norm(upload: Upload, norm: float) -> Upload:
    """One liar's upload as long as an honest one."""
    return enlarged(upload, norm / max(float(upload.norms()[0]), 1e-30))


def worst_direction(upload: Upload, crew: Crew, declared: Mapping[str, Summand], num_items: int) -> Upload:
    """What pulls the target's scores up (or down) where the sums' axes are items; else the upload of the fake history.

    To degrade, the fake history's upload with the other sign.
    """
    if crew.goal == DEGRADE:
        return enlarged(upload, -1.0)
    sign = -1.0 if crew.goal == DEMOTE else 1.0
    found = {name: _towards(crew, one.shape, num_items, sign, one.symmetric) for name, one in declared.items()}
    if not any(one is not None for one in found.values()):
        return enlarged(upload, sign)
    like = next(one.values if isinstance(one, Patch) else torch.zeros(1) for one in upload.sums.values())
    sums: dict[str, Sent] = {
        name: _typed(one, like) if one is not None else _nothing(like) for name, one in found.items()
    }
    return replace(upload, sums=sums)


def _towards(crew: Crew, shape: tuple[int, ...], num_items: int, sign: float, symmetric: bool) -> Patch | None:
    """1 from every popular item to the target; of a symmetric matrix the other way as well."""
    popular, target = crew.popular, torch.tensor([crew.target])
    if shape == (num_items,):
        return Patch(target[None], torch.zeros(1, 1, dtype=torch.long), torch.full((1, 1, 1), sign))
    if len(shape) != 2 or shape[1] != num_items or shape[0] % num_items:
        return None
    if not symmetric:
        rows = torch.cat([popular + k * num_items for k in range(shape[0] // num_items)])
        return Patch(rows[None], target[None], torch.full((1, len(rows), 1), sign))
    rows = torch.cat([target, popular])
    values = torch.zeros(1, len(rows), len(rows))
    values[0, 0, 1:] = values[0, 1:, 0] = sign
    return Patch(rows[None], rows[None], values)


def _typed(one: Patch, like: Tensor) -> Patch:
    return one._replace(values=one.values.to(like))


def _nothing(like: Tensor) -> Patch:
    zero = torch.zeros(1, 1, dtype=torch.long)
    return Patch(zero, zero, like.new_zeros(1, 1, 1))
