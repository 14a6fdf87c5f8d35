"""What one message tells about items, by its form alone: rows that changed, counts by item, values sent as they are.

Nothing here knows a method. What a server knows of any is public: the roles of its parameters, the shapes of its
summands, and what it has itself sent out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from ownview.federation.terms import Terms
from ownview.messages.download import Download
from ownview.messages.upload import Upload
from ownview.privacy.whole_steps import BOUND
from ownview.seam.client import Patch, Product, Sent
from ownview.seam.roles import PERSONAL, REPORTED

_WIDEST = 256
"""Numbers an item's row may have to be kept; wider ones tell no more and take memory."""

_ROUNDING = 1e-5
"""A row has changed where one of its numbers moved by more than this share of the largest move."""


@dataclass(frozen=True, eq=False)
class Evidence:
    """One upload as its reader sees it.

    Args:
        client: identity of the sender, known from the connection and not from the message.
        round: it belongs to.
        samples: how many the message says the client trained on; 0 where it does not say.
        size: bytes of the message.
        absolute: sum of the absolute values of everything in it that is a change or a summand.
        listed: whether the message itself names rows; else `touched` was found by looking for changes.
        touched: [m] items whose rows the message is about.
        changes: by name [m, d], how far every item's row moved; 0 for rows that are not in the message.
        counts: by name [m], one number an item: a summand of that shape, or the diagonal of one that is items by items,
            summed where it has them several times over.
        reported: by name [d], values that the client sent as they are.
        tables: by name [m, ...], personal tables as they arrived, to tell the next round's change by.
    """

    client: int
    round: int
    samples: int
    size: int
    absolute: float
    listed: bool
    touched: Tensor
    changes: Mapping[str, Tensor]
    counts: Mapping[str, Tensor]
    reported: Mapping[str, Tensor]
    tables: Mapping[str, Tensor]

    @property
    def empty(self) -> bool:
        """Whether it says nothing of any item."""
        return not (self.listed or self.changes or self.counts)

    @property
    def filled(self) -> bool:
        """Whether every row of every table, and every count, is other than 0: as noise leaves them."""
        return all(bool(part.ne(0).reshape(len(part), -1).any(1).all()) for part in _all(self.changes, self.counts))


def read(message: bytes, identity: int, terms: Terms, offered: Download, before: Mapping[str, Tensor]) -> Evidence:
    """What a message says.

    Args:
        message: of one client.
        identity: of the client.
        terms: that everybody knows; whole numbers are read as the tables they would be without masks.
        offered: what the server sent this client in the same round.
        before: by name, personal tables that it had from this client earlier.
    """
    codec = terms.codec
    upload = terms.seen(codec.read_upload(message, identity), offered.round, offered.values.get(BOUND))
    changes = _rows(upload, codec.num_items)
    reported: dict[str, Tensor] = {}
    other: dict[str, Tensor] = {}
    tables: dict[str, Tensor] = {}
    for name, value in upload.whole.items():
        param = codec.client.params[name]
        if param.role is PERSONAL:
            tables[name] = value[0]
            sent_out = offered.offered(name, 1)[0].cpu()
            change = moved(value[0], sent_out, before.get(name))
            if param.rows:
                changes[name] = change.reshape(codec.num_items, -1)
            else:
                other[name] = change
        elif param.rows:
            changes[name] = value[0].reshape(codec.num_items, -1)
        elif param.role is REPORTED:
            reported[name] = value[0].reshape(-1)
        else:
            other[name] = value[0]
    parts = [*changes.values(), *reported.values(), *other.values()]
    parts += [
        one.values if isinstance(one, Patch) else one for one in upload.sums.values() if not isinstance(one, Product)
    ]
    absolute = sum(float(part.abs().sum(dtype=torch.float64)) for part in parts)
    counts: dict[str, Tensor] = {}
    for name, one in upload.sums.items():
        _read_summand(name, one, upload, codec.num_items, changes, counts)
    touched = torch.zeros(codec.num_items, dtype=torch.bool)
    listed = upload.items.shape[1] > 0
    if listed:
        touched[upload.items[0]] = True
    else:
        for change in (*changes.values(), *counts.values()):
            touched |= changed(change)
    kept = {name: change for name, change in changes.items() if change.shape[1] <= _WIDEST}
    samples, size = int(upload.samples[0]), len(message)
    return Evidence(identity, offered.round, samples, size, absolute, listed, touched, kept, counts, reported, tables)


def changed(change: Tensor) -> Tensor:
    """[m] whether an item's number or row [m, ...] is other than 0, up to rounding."""
    sizes = change.abs().reshape(len(change), -1).amax(1)
    return sizes > _ROUNDING * sizes.max()


def moved(arrived: Tensor, sent_out: Tensor, before: Tensor | None) -> Tensor:
    """How far a personal table moved by training alone, as far as the server can tell.

    A client goes on from its own table, from the one it received, or from a mixture b + a (r - b) of the two. Most rows
    did not train, so that the median of (arrived - b) / (r - b) over all numbers is a, whatever the method is.

    Args:
        arrived: [m, ...] the table.
        sent_out: r [m, ...], what the client received.
        before: b, what it had sent in an earlier round; None in its first.
    """
    if before is None:
        return arrived - sent_out
    apart = (sent_out - before).double()
    here = apart.abs() > 1e-6 * apart.abs().max()
    if not bool(here.any()):
        return arrived - before
    share = ((arrived - before).double()[here] / apart[here]).median()
    return (arrived - before).double().sub(share * apart).to(arrived.dtype)


def _all(*parts: Mapping[str, Tensor]) -> list[Tensor]:
    return [value for part in parts for value in part.values()]


def _rows(upload: Upload, num_items: int) -> dict[str, Tensor]:
    """Tables that were sent by row, with all their rows."""
    found = {}
    for name, value in upload.rows.items():
        whole = value.new_zeros(num_items, value[0, 0].numel() if value.shape[1] else 1)
        whole[upload.items[0]] = value[0].reshape(value.shape[1], whole.shape[1])
        found[name] = whole
    return found


def _read_summand(
    name: str, one: Sent, upload: Upload, num_items: int, changes: dict[str, Tensor], counts: dict[str, Tensor]
) -> None:
    """Put a summand of one row an item where it belongs; others say nothing of single items.

    A square one may have items several times over, one time after the other.
    """
    shape = upload.shapes[name]
    if len(shape) == 2 and shape[0] == shape[1] and shape[0] % num_items == 0:
        counts[name] = _diagonal(one, shape[0]).reshape(-1, num_items).sum(0)
        return
    if not shape or shape[0] != num_items:
        return
    whole = replace(upload, sums={name: one}).written_out()[name][0]
    if len(shape) == 1:
        counts[name] = whole.reshape(num_items)
    else:
        changes[name] = whole.reshape(num_items, -1)


def _diagonal(one: Sent, width: int) -> Tensor:
    """[width] of one client's square summand, without writing out what is not."""
    if isinstance(one, Product):
        return (one.left[0] * one.right[0]).sum(0)
    if not isinstance(one, Patch):
        return one[0].reshape(width, width).diagonal().clone()
    rows, columns, values = (part[0] for part in one)
    if one.of_rows:
        columns = torch.arange(width)
    up, across = torch.nonzero(rows[:, None] == columns[None], as_tuple=True)
    return values.new_zeros(width).index_add_(0, rows[up], values[up, across])
