"""Writes, reads and sizes a method's messages: one place for all three, so that they cannot differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

import torch
from torch import Tensor

from ownview.base.counts import counts
from ownview.base.errors import MessageError
from ownview.messages import wire
from ownview.messages.coarse import Coarse, coarse_size, steps
from ownview.messages.download import Download
from ownview.messages.expected_tables import Expected
from ownview.messages.unwritten import parts_of
from ownview.messages.upload import Upload
from ownview.seam.client import Client, Nearby, Patch, Product, Reporting, Sent, Summand, Training
from ownview.seam.roles import PERSONAL

_TOUCHED = "@touched"
_WORDS = "@words"
_MOVE = "move "


@dataclass(frozen=True)
class Codec:
    """Writes and reads messages of one method.

    Args:
        client: the method's.
        num_items: m.
        mixed: names of the personal tables that the server mixes for each client.
        tells_samples: whether the server needs to know how many samples a client has.
        tells_touched: whether it needs to know which rows a client's samples are about, noise or not.
        shrunk: names of values that training makes exactly 0, so that a sparse form is tried.
        words: how many whole numbers modulo 2^32 a client sends in the place of tables; 0 where it sends tables.
        width: bytes of a value.
        sends: names of a client's uploaded values, without whole numbers and touched rows.
    """

    client: Client
    num_items: int
    mixed: frozenset[str] = frozenset()
    tells_samples: bool = True
    tells_touched: bool = False
    shrunk: frozenset[str] = frozenset()
    words: int = 0
    width: int = 4
    sends: frozenset[str] = frozenset()

    # --- down ---

    def write_download(self, download: Download, index: int) -> bytes:
        """The message to the client at one position of the stack."""
        tables: dict[str, wire.Table] = {
            name: wire.Whole(download.mixtures[name][index]) if name in self.mixed else download.values[name]
            for name in self._downloaded(receives=download.receives is None or bool(download.receives[index]))
        }
        tables |= {_MOVE + name: wire.Whole(move[index]) for name, move in download.moves.items()}
        return wire.Message(wire.DOWNLOAD, download.round, 0, tables).pack()

    def read_download(self, data: bytes) -> Download:
        """What `write_download` wrote, for one client; `MessageError` for anything else."""
        message = _of_kind(wire.Message.unpack(data, self._expected_down), wire.DOWNLOAD, "download")
        tables = {name: _dense(table) for name, table in message.tables.items()}
        moves = {name.removeprefix(_MOVE): tables.pop(name)[None] for name in list(tables) if name.startswith(_MOVE)}
        receives = set(self._downloaded(receives=True)) <= set(tables)
        mixtures = {name: tables[name][None] for name in self.mixed if name in tables}
        like = next(iter(tables.values()), torch.zeros(()))
        for name in (one for one in self._downloaded(receives=True) if one not in tables):
            tables[name] = like.new_zeros(
                self._expected_down.shapes[name]
            )  # a placeholder for values not received; never read
        return Download(message.round, tables, mixtures, moves, None if receives else torch.tensor([False]))

    def download_size(self, download: Download, *, receives: bool = True) -> int:
        """Bytes of the message to one client, by whether it receives tables in this round."""
        sizes: dict[str, Tensor | int] = {}
        values = {name: download.values[name] for name in self._downloaded(receives=receives)}
        sparse = {name: value for name, value in values.items() if name not in self.mixed}
        filled = counts(sparse, torch.count_nonzero)
        for name, value in values.items():
            shape, width = tuple(value.shape), value.element_size()
            short = wire.sparse_size(shape, width, filled[name]) if name in filled else None
            sizes[name] = wire.dense_size(shape, width) if short is None else short
        for name, move in download.moves.items():
            sizes[_MOVE + name] = wire.dense_size(tuple(move.shape[1:]), move.element_size())
        return int(wire.message_size(sizes))

    def dense_download(self, download: Download) -> int:
        """Bytes of a download's tables if all were dense."""
        values = (download.values[name] for name in self._downloaded(receives=True))
        return sum(wire.dense_size(tuple(value.shape), value.element_size()) for value in values)

    def _downloaded(self, *, receives: bool) -> list[str]:
        return [
            table
            for name, param in self.client.params.items()
            if param.from_server and (receives or param.role is not PERSONAL)
            for table in (name, param.everybodys_mean)
            if table
        ]

    # --- up ---

    def write_upload(self, upload: Upload, number: int) -> bytes:
        """The message of one client, a stack of one; empty where it shares nothing."""
        if upload.words is not None:
            return wire.Message(wire.UPLOAD, number, 0, {_WORDS: wire.Words(upload.words[0])}).pack()
        here = upload.touched[0]
        items = upload.items[0][here].cpu()
        tables: dict[str, wire.Table] = {
            name: self._sparse(name, wire.Rows(items, value[0][here].cpu(), self.num_items, self.tells_touched))
            for name, value in upload.rows.items()
        }
        tables |= {name: wire.Whole(value[0]) for name, value in upload.whole.items()}
        tables |= {name: self._summand(name, one) for name, one in upload.sums.items()}
        if self.tells_touched and not upload.rows:
            tables[_TOUCHED] = wire.Rows(items, torch.ones(len(items), 0), self.num_items, always=True)
        if not tables:
            return b""
        return wire.Message(wire.UPLOAD, number, int(upload.samples[0]) if self.tells_samples else 0, tables).pack()

    def read_upload(self, data: bytes, identity: int) -> Upload:
        """What `write_upload` wrote; the server knows whose it is by other means than the message.

        Raises `MessageError` for anything else: what is returned can be added to sums as it is.
        """
        message = _of_kind(wire.Message.unpack(data, self._expected_up), wire.UPLOAD, "upload")
        work = self.client.work
        most = work.most_samples(self.num_items) if self.tells_samples and isinstance(work, Training) else 0
        if message.samples > most:
            raise MessageError(f"an upload of {message.samples} samples; expected {most} at most")
        tables = dict(message.tables)
        words = tables.pop(_WORDS, None)
        if isinstance(words, wire.Words) != bool(self.words) or (self.words and tables):
            raise MessageError("an upload with tables and whole numbers mixed up; expected what was agreed on")
        touched = tables.pop(_TOUCHED, None)
        self._require_all(tables)
        sums = {name: _sent(tables.pop(name)) for name in self._sends() if name in tables}
        by_row = {name: one for name, one in tables.items() if isinstance(one, wire.Rows)}
        items = _rows_of([*by_row.values(), *([] if touched is None else [touched])])
        return Upload(
            torch.tensor([identity]),
            torch.tensor([message.samples]),
            items[None],
            torch.ones(1, len(items), dtype=torch.bool),
            {name: one.values[None] for name, one in by_row.items()},
            {name: _dense(one)[None] for name, one in tables.items() if name not in by_row},
            sums,
            {name: one.shape for name, one in self._sends().items()},
            words.values[None] if isinstance(words, wire.Words) else None,
        )

    def upload_sizes(self, upload: Upload) -> Tensor:
        """[B] bytes of the messages of a block."""
        if upload.words is not None:
            size = wire.message_size({_WORDS: wire.dense_size((upload.words.shape[1],), 4)})
            return torch.as_tensor(size).to(upload.clients.device).expand(len(upload.clients))
        rows = upload.touched.sum(1)
        sizes: dict[str, Tensor | int] = {}
        for name, value in upload.rows.items():
            shape, width = (self.num_items, *value.shape[2:]), value.element_size()
            by_row = wire.rows_size(shape, width, rows, always=self.tells_touched)
            if name in self.shrunk and not self.tells_touched:
                by_row = torch.minimum(by_row, wire.sparse_size(shape, width, _nonzero(value, upload.touched)))
            sizes[name] = by_row
        for name, value in upload.whole.items():
            sizes[name] = wire.dense_size(tuple(value.shape[1:]), value.element_size())
        sizes |= {name: self._summand_size(name, one) for name, one in parts_of(upload.sums).items()}
        if self.tells_touched and not upload.rows:
            sizes[_TOUCHED] = wire.rows_size((self.num_items, 0), 4, rows, always=True)
        return torch.as_tensor(wire.message_size(sizes) if sizes else 0).to(rows.device).expand(len(rows))

    @cached_property
    def _expected_down(self) -> Expected:
        """Every table that a download may hold."""
        names = [*self._downloaded(receives=True), *(_MOVE + name for name in self.client.params)]
        shapes = {name: self.client.params[name].whole_shape(self.num_items) for name in self.client.params}
        means = {one.everybodys_mean: shapes[name] for name, one in self.client.params.items() if one.everybodys_mean}
        known = shapes | means | {_MOVE + name: shape for name, shape in shapes.items()}
        return Expected({name: known[name] for name in names}, self.width)

    @cached_property
    def _expected_up(self) -> Expected:
        """Every table that an upload may hold."""
        if self.words:
            return Expected({_WORDS: (self.words,)}, self.width)
        params = self.client.params
        shapes = {name: params[name].whole_shape(self.num_items) for name in self.sends if name in params}
        shapes |= {name: one.shape for name, one in self._sends().items()}
        return Expected(shapes | ({_TOUCHED: (self.num_items, 0)} if self.tells_touched else {}), self.width)

    def _require_all(self, tables: Mapping[str, object]) -> None:
        """Refuse an upload that leaves out what everybody sends."""
        missing = sorted(set(self._expected_up.shapes) - {_TOUCHED, _WORDS} - set(tables))
        if missing:
            raise MessageError(f"an upload without {missing[0]!r}; expected what was agreed on")

    def _sends(self) -> Mapping[str, Summand]:
        return self.client.work.sends if isinstance(self.client.work, Reporting) else {}

    def _sparse(self, name: str, table: wire.Rows) -> wire.Table:
        """The table by row, or sparse, if training makes zeros and that is shorter."""
        if name not in self.shrunk or table.always:
            return table
        whole = wire.whole_table(table)
        return whole if len(wire.encode(whole)) < len(wire.encode(table)) else table

    def _summand(self, name: str, one: Sent) -> wire.Table:
        declared = self._sends()[name]
        if isinstance(one, Product):
            return wire.Matrix(Product(one.left[0].cpu(), one.right[0].cpu()), declared.shape, declared.symmetric)
        if isinstance(one, Patch):
            rows, columns, values = (part[0].cpu() for part in one)
            if not one.of_rows:
                return wire.Matrix(Patch(rows, columns, values), declared.shape, declared.symmetric)
            here = torch.nonzero((values != 0).any(1))[:, 0]
            here = here[torch.argsort(rows[here])]
            if declared.coarse:
                return Coarse(rows[here], values[here], declared.shape[0])
            return wire.Rows(rows[here], values[here].reshape(-1, *declared.shape[1:]), declared.shape[0])
        return one[0].reshape(declared.shape)

    def _summand_size(self, name: str, one: Sent | Nearby) -> Tensor | int:
        declared = self._sends()[name]
        if isinstance(one, Nearby):  # no row is all 0: an item has itself
            there = (one.mask != 0).sum(1)
            width = one.mask.element_size()
            return wire.matrix_size(declared.shape, width, there, there, symmetric=declared.symmetric)
        if isinstance(one, Patch):
            width, up = one.values.element_size(), _filled(one.values, 2)
            if one.of_rows:
                by_row = wire.rows_size(declared.shape, width, up)
                fits = steps(one.values)[1].all(-1) if declared.coarse else None
                return by_row if fits is None else torch.where(fits, coarse_size(up, declared.shape[1]), by_row)
            # A symmetric matrix has as many columns as rows that are not 0; to look along columns takes twice as long.
            across = up if declared.symmetric else _filled(one.values, 1)
            return wire.matrix_size(declared.shape, width, up, across, symmetric=declared.symmetric)
        if isinstance(one, Product):
            left, right = ((side != 0).any(1) for side in one)
            rows = (left & right).sum(1) if declared.symmetric else left.sum(1)
            width = one.left.element_size()
            return wire.matrix_size(declared.shape, width, rows, right.sum(1), symmetric=declared.symmetric)
        flat = one.reshape(len(one), prod(declared.shape))  # a block may be empty
        return wire.sparse_size(declared.shape, one.element_size(), torch.count_nonzero(flat, dim=1))


def _filled(values: Tensor, along: int) -> Tensor:
    """[B] how many rows of [B, k, l], along axis 2, or columns, along 1, are not all 0; no copy of them is made."""
    if not values.shape[along]:
        return values.new_zeros(len(values), dtype=torch.long)
    return ((values.amax(along) != 0) | (values.amin(along) != 0)).sum(1)


def _nonzero(rows: Tensor, touched: Tensor) -> Tensor:
    """[B] how many values of the touched rows [B, R, ...] are not 0."""
    return ((rows != 0).flatten(2).sum(2) * touched).sum(1) if rows.dim() > 2 else ((rows != 0) & touched).sum(1)


def _sent(table: wire.Table) -> Tensor | Patch:
    """A parsed summand, as a stack of one client."""
    if isinstance(table, wire.Matrix) and isinstance(table.cells, Patch):
        rows, columns, values = table.cells
        return Patch(rows[None], columns[None], values[None])
    if isinstance(table, wire.Rows) and table.values.dim() == 2:
        return Patch(table.rows[None], table.rows.new_zeros(1, 0), table.values[None])
    return _dense(table)[None]


def _rows_of(tables: Sequence[wire.Table]) -> Tensor:
    """[R] rows of the tables that are sent by row; refused unless all tables have the same."""
    found = [table.rows for table in tables if isinstance(table, wire.Rows)]
    if len(found) < len(tables) or any(not torch.equal(one, found[0]) for one in found[1:]):
        raise MessageError("an upload whose tables are about different rows; expected the same rows in each")
    return found[0] if found else torch.zeros(0, dtype=torch.long)


def _dense(table: wire.Table) -> Tensor:
    if isinstance(table, wire.Whole | Coarse):
        raise TypeError("a table that was read is a tensor, or some rows and columns of one")
    return wire.whole_table(table)


def _of_kind(message: wire.Message, kind: int, what: str) -> wire.Message:
    if message.kind != kind:
        raise MessageError(f"a message of kind {message.kind}; expected kind {kind}, {what}")
    return message
