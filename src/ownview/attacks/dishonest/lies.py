"""What liars send: honest work on a fake history, the same enlarged, or what moves the target's scores the most."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import torch
from torch import Tensor

from ownview.attacks.dishonest.crew import COUNTED, DEGRADE, DEMOTE, Crew
from ownview.messages.upload import Upload
from ownview.seam.client import Patch, Product, Sent, Summand
from ownview.seam.training import Params


def enlarged(upload: Upload, factor: float) -> Upload:
    """One liar's upload times a factor."""
    return upload.scaled(torch.full((1,), factor, dtype=torch.float64))


def to_norm(upload: Upload, norm: float) -> Upload:
    """One liar's upload as long as an honest one."""
    return enlarged(upload, norm / max(float(upload.norms()[0]), 1e-30))


def worst_direction(upload: Upload, crew: Crew, declared: Mapping[str, Summand], tables: Params) -> Upload:
    """What pulls the target's scores up (or down), all of it in one place.

    Sums over pairs of items: a column from the items that people have to the target. Tables and other sums with a row
    an item: the target's row alone. It moves to where the rows of these items lie, where the server has sent such a
    table, else to where the fake history moves it. To degrade, the fake history's upload with the other sign.

    Args:
        upload: of the fake history, tables as changes; a stack of one.
        crew: of the liars.
        declared: what clients report, by name.
        tables: what the server has sent.
    """
    if crew.goal == DEGRADE:
        return enlarged(upload, -1.0)
    sign = -1.0 if crew.goal == DEMOTE else 1.0
    m = crew.split.num_items
    found = {name: _towards(crew, one.shape, m, sign, one.symmetric) for name, one in declared.items()}
    if any(one is not None for one in found.values()):
        like = next(one.values if isinstance(one, Patch) else torch.zeros(1) for one in upload.sums.values())
        sums = {name: _typed(one, like) if one is not None else _nothing(like) for name, one in found.items()}
        return replace(upload, sums=sums)
    return _target_alone(upload, crew, tables, sign)


def _towards(crew: Crew, shape: tuple[int, ...], num_items: int, sign: float, symmetric: bool) -> Patch | None:
    """1 from every item that people have to the target; of a symmetric matrix the other way as well."""
    sources, target = crew.sources, torch.tensor([crew.target])
    if len(shape) != 2 or shape[1] != num_items or shape[0] % num_items:
        return None
    if not symmetric:
        rows = torch.cat([sources + k * num_items for k in range(shape[0] // num_items)])
        return Patch(rows[None], target[None], torch.full((1, len(rows), 1), sign))
    rows = torch.cat([target, sources])
    values = torch.zeros(1, len(rows), len(rows))
    values[0, 0, 1:] = values[0, 1:, 0] = sign
    values[0, 0, 0] = sign * (crew.means in COUNTED)
    return Patch(rows[None], rows[None], values)


def _target_alone(upload: Upload, crew: Crew, tables: Params, sign: float) -> Upload:
    """With 0 but for the target's rows."""
    m, target = crew.split.num_items, crew.target
    mine = (upload.items == target) & upload.touched
    rows = {
        name: _direction(tables, name, crew, sign, (one * mine.reshape(1, -1, *[1] * (one.dim() - 2))).sum(1)[0])
        for name, one in upload.rows.items()
    }
    whole = {}
    for name, one in upload.whole.items():
        whole[name] = torch.zeros_like(one)
        if one.shape[1:2] == (m,):
            whole[name][0, target] = _direction(tables, name, crew, sign, one[0, target])
    return replace(
        upload,
        items=torch.full_like(upload.items[:, :1], target),
        touched=torch.ones_like(upload.touched[:, :1]),
        rows={name: one[None, None] for name, one in rows.items()},
        whole=whole,
        sums={name: _row(one, upload.shapes[name], target, m, sign) for name, one in upload.sums.items()},
    )


def _direction(tables: Params, name: str, crew: Crew, sign: float, own: Tensor) -> Tensor:
    """[...] to where the rows of the most popular twentieth lie; where all rows are equal, what the liar found."""
    table = tables.get(name)
    if table is None or table.shape[1:] != own.shape:
        return sign * own
    popular = crew.sources[: max(1, len(table) // 20)].to(table.device)
    found = table[popular].mean(0) - table.mean(0)
    return sign * (found if bool(found.norm() > 1e-6) else own)


def _row(one: Sent, shape: tuple[int, ...], target: int, m: int, sign: float) -> Sent:
    """A summand with 0 but for the target's row; one that has no row an item is 0, or where it is a number as it is."""
    if not shape or shape[0] != m:
        return one if not shape else _times_nothing(one)
    if isinstance(one, Product):
        return Product(_kept(one.left, 2, target, sign), one.right)
    if isinstance(one, Patch):
        return one._replace(values=sign * one.values * (one.rows == target)[:, :, None])
    return _kept(one, 1, target, sign)


def _kept(values: Tensor, axis: int, target: int, sign: float) -> Tensor:
    alone = torch.zeros_like(values)
    alone.select(axis, target).copy_(sign * values.select(axis, target))
    return alone


def _times_nothing(one: Sent) -> Sent:
    if isinstance(one, Product):
        return Product(torch.zeros_like(one.left), one.right)
    return one._replace(values=torch.zeros_like(one.values)) if isinstance(one, Patch) else torch.zeros_like(one)


def _typed(one: Patch, like: Tensor) -> Patch:
    return one._replace(values=one.values.to(like))


def _nothing(like: Tensor) -> Patch:
    zero = torch.zeros(1, 1, dtype=torch.long)
    return Patch(zero, zero, like.new_zeros(1, 1, 1))
