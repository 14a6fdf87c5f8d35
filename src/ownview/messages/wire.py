"""Messages as bytes: a version, a round, and tables by name, each in the shortest form it may take.

A message, little-endian:

    "OV", version, kind (1 download, 2 upload): 4 bytes; round, training samples (0 where the server need not
    know them), number of tables: 4 bytes each; then for every table the length of its name in one byte, the name,
    and the table

A table:

    form, bytes a value (4 or 8), number of axes, 0: one byte each; the length of every axis, 4 bytes each; then
    dense    all values
    sparse   how many values are not 0; their positions in the flattened table; these values
    rows     how many rows are sent; which; their values. All other rows are 0
    block    how many rows and columns of a matrix have values that are not 0; which; the values where they cross
    half     likewise of a symmetric matrix: which rows; the values on and above the diagonal, row by row
    coarse   how many rows are sent; which; the power of two of each (2 bytes); their values as multiples of it (a byte)
    words    all values, as whole numbers modulo 2^32 of 4 bytes

Numbers of rows, columns and positions take 4 bytes each.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from ownview.base.errors import MessageError
from ownview.messages.coarse import Coarse, packed
from ownview.messages.expected_tables import Expectation, Expected
from ownview.messages.limits import MOST_AXES
from ownview.messages.reader import Reader
from ownview.seam.client import Patch, Product

MAGIC = b"OV"
VERSION = 1
DOWNLOAD, UPLOAD = 1, 2
_DENSE, _SPARSE, _ROWS, _BLOCK, _HALF, _WORDS, _COARSE = range(7)
_WHOLE = 4
"""Bytes of a whole number."""
_TYPES = {4: "<f4", 8: "<f8"}
_HEAD = "<2s2B3I"

Array = npt.NDArray[Any]


@dataclass(frozen=True, eq=False)
class Rows:
    """A table of which only some rows are not 0.

    Args:
        rows: [R] which.
        values: [R, ...].
        num_rows: of the whole table.
        always: send it by row even where the dense form is shorter, because the receiver needs to know which rows.
    """

    rows: Tensor
    values: Tensor
    num_rows: int
    always: bool = False


@dataclass(frozen=True, eq=False)
class Whole:
    """A table in its dense form, zeros included."""

    values: Tensor


@dataclass(frozen=True, eq=False)
class Matrix:
    """A product or a patch, brought to a shape; sent by the rows and columns that are not 0.

    Rows and columns are sent in ascending order, not in a patch's own order: that may be the order in which a
    client took its items, which is private.

    Args:
        cells: left [k, a] and right [k, b], or rows [k], columns [l] and their values [k, l].
        shape: of the whole.
        symmetric: whether one half is enough.
    """

    cells: Product | Patch
    shape: tuple[int, ...]
    symmetric: bool


@dataclass(frozen=True, eq=False)
class Words:
    """Whole numbers modulo 2^32.

    Args:
        values: [D] int64, from 0.
    """

    values: Tensor


Table = Tensor | Whole | Rows | Matrix | Words | Coarse
"""A plain tensor is sent without its zeros where that is shorter."""

Read = Tensor | Rows | Matrix | Words
"""A table as it is read; of a matrix, the patch that was sent."""


@dataclass(frozen=True, eq=False)
class Message:
    """One client's, either way.

    Args:
        kind: `DOWNLOAD` or `UPLOAD`.
        round: it belongs to.
        samples: how many the client trained on; 0 where the server need not know.
        tables: by name.
    """

    kind: int
    round: int
    samples: int = 0
    tables: Mapping[str, Table] = field(default_factory=dict)

    def pack(self) -> bytes:
        """Serialise."""
        parts = [struct.pack(_HEAD, MAGIC, VERSION, self.kind, self.round, self.samples, len(self.tables))]
        for name, table in self.tables.items():
            parts += [struct.pack("<B", len(name.encode())), name.encode(), encode(table)]
        return b"".join(parts)

    @classmethod
    def unpack(cls, data: bytes, expected: Expected | None = None) -> Message:
        """Parse bytes; tables sent by row become `Rows`, by rows and columns a `Matrix`, all others dense tensors.

        Raises `MessageError` for malformed bytes.

        Args:
            data: of a message.
            expected: tables that it may hold; None for any, of a message that was written here.
        """
        try:
            magic, version, kind, number, samples, count = struct.unpack_from(_HEAD, data)
            if magic != MAGIC:
                raise MessageError("no Ownview message: it does not begin with OV")
            if version != VERSION:
                raise MessageError(f"a message of version {version}; this program speaks version {VERSION}")
            place = struct.calcsize(_HEAD)
            tables: dict[str, Table] = {}
            for _ in range(count):
                length = data[place]
                name = data[place + 1 : place + 1 + length].decode()
                if name in tables:
                    raise ValueError(f"a table {name!r} that is sent twice")
                tables[name], place = _decode(data, place + 1 + length, None if expected is None else expected.of(name))
        except (struct.error, IndexError, ValueError, KeyError, OverflowError, MemoryError) as error:
            raise MessageError(f"a damaged message of {len(data)} bytes: {error}") from error
        if place != len(data):
            raise MessageError(f"a damaged message: {len(data) - place} bytes behind its end")
        return cls(kind, number, samples, tables)


def encode(table: Table) -> bytes:
    """A table as bytes, in the shortest form that its kind allows; -0 may come back as 0."""
    if isinstance(table, Whole):
        values = table.values.detach().cpu().numpy()
        return _header(_DENSE, values.itemsize, tuple(values.shape)) + _bytes(values)
    if isinstance(table, Matrix | Words | Coarse):
        return _encode_kind(table)
    if isinstance(table, Rows):
        shape = (table.num_rows, *table.values.shape[1:])
        values = table.values.detach().cpu().numpy()
        by_row = rows_size(shape, values.itemsize, len(table.rows), always=True)
        if dense_size(shape, values.itemsize) < by_row and not table.always:
            return encode(Whole(whole_table(table)))
        return _header(_ROWS, values.itemsize, shape) + _numbers(len(table.rows), *table.rows.tolist()) + _bytes(values)
    values = table.detach().cpu().numpy().reshape(-1)
    where = np.flatnonzero(values)
    if _WHOLE + len(where) * (_WHOLE + values.itemsize) < values.nbytes:
        head = _header(_SPARSE, values.itemsize, tuple(table.shape))
        return head + _numbers(len(where), *where.tolist()) + _bytes(values[where])
    return encode(Whole(table))


def dense_size(shape: tuple[int, ...], width: int) -> int:
    """Bytes of the dense form of values of so many bytes."""
    return _header_size(len(shape)) + prod(shape) * width


def sparse_size(shape: tuple[int, ...], width: int, nonzero: Tensor | int) -> Tensor:
    """Bytes of tables with so many values that are not 0, in the shorter of the dense and the sparse form."""
    sparse = _header_size(len(shape)) + _WHOLE + torch.as_tensor(nonzero) * (_WHOLE + width)
    return sparse.clamp(max=dense_size(shape, width))


def rows_size(shape: tuple[int, ...], width: int, rows: Tensor | int, *, always: bool = False) -> Tensor:
    """Bytes of tables of which so many rows are sent, by row; in the dense form where that is shorter and allowed."""
    by_row = _header_size(len(shape)) + _WHOLE + torch.as_tensor(rows) * (_WHOLE + prod(shape[1:]) * width)
    return by_row if always else by_row.clamp(max=dense_size(shape, width))


def whole_table(table: Read) -> Tensor:
    """The table with all its rows."""
    if isinstance(table, Tensor):
        return table
    if isinstance(table, Words):
        raise MessageError("whole numbers modulo 2^32 where a table belongs")
    if isinstance(table, Matrix):
        rows, columns, values = _cells(table.cells, symmetric=table.symmetric)
        matrix = values.new_zeros(table.shape[0], prod(table.shape[1:]))
        matrix[rows[:, None], columns[None]] = values
        return matrix.reshape(table.shape)
    whole = torch.zeros((table.num_rows, *table.values.shape[1:]), dtype=table.values.dtype, device=table.values.device)
    return whole.index_copy_(0, table.rows, table.values)


def matrix_size(shape: tuple[int, ...], width: int, rows: Tensor, columns: Tensor, *, symmetric: bool) -> Tensor:
    """Bytes of matrices with so many rows and columns that are not 0, in the shorter of two forms."""
    if symmetric:
        block = _WHOLE * (1 + rows) + rows * (rows + 1) // 2 * width
    else:
        block = _WHOLE * (2 + rows + columns) + rows * columns * width
    return (_header_size(len(shape)) + block).clamp(max=dense_size(shape, width))


def message_size(names: Mapping[str, Tensor | int]) -> Tensor | int:
    """Bytes of messages whose tables have these sizes, by name."""
    return struct.calcsize(_HEAD) + sum((1 + len(name.encode()) + size for name, size in names.items()), start=0)


def _encode_kind(table: Matrix | Words | Coarse) -> bytes:
    if isinstance(table, Matrix):
        return _encode_matrix(table)
    return _encode_words(table) if isinstance(table, Words) else _encode_coarse(table)


def _encode_coarse(table: Coarse) -> bytes:
    if (body := packed(table.values)) is None:
        return encode(Rows(table.rows, table.values, table.num_rows))
    head = _header(_COARSE, table.values.element_size(), (table.num_rows, table.values.shape[1]))
    return head + _numbers(len(table.rows), *table.rows.tolist()) + body


def _encode_words(table: Words) -> bytes:
    words = table.values.cpu().numpy()
    return _header(_WORDS, _WHOLE, tuple(words.shape)) + words.astype("<u4").tobytes()


def _encode_matrix(table: Matrix) -> bytes:
    rows, columns, block = _cells(table.cells, symmetric=table.symmetric)
    width = block.element_size()
    counts = torch.tensor(len(rows)), torch.tensor(len(columns))
    if int(matrix_size(table.shape, width, *counts, symmetric=table.symmetric)) == dense_size(table.shape, width):
        return encode(Whole(whole_table(table)))
    if table.symmetric:
        upper = block[tuple(torch.triu_indices(len(rows), len(rows)))]
        return _header(_HALF, width, table.shape) + _numbers(len(rows), *rows.tolist()) + _bytes(upper.numpy())
    places = _numbers(len(rows), len(columns), *rows.tolist(), *columns.tolist())
    return _header(_BLOCK, width, table.shape) + places + _bytes(block.numpy())


def _cells(cells: Product | Patch, *, symmetric: bool) -> Patch:
    """The rows and columns that are not 0, ascending, and their values."""
    if isinstance(cells, Product):
        left, right = cells
        here, there = (left != 0).any(0), (right != 0).any(0)
        rows, columns = (torch.nonzero(side)[:, 0] for side in ((here & there,) * 2 if symmetric else (here, there)))
        return Patch(rows, columns, left[:, rows].T @ right[:, columns])
    here, there = ((cells.values != 0).any(axis) for axis in (1, 0))
    up, across = (
        torch.nonzero(side)[:, 0][torch.argsort(places[side])]
        for side, places in ((here, cells.rows), (here if symmetric else there, cells.columns))
    )
    return Patch(cells.rows[up], cells.columns[across], cells.values[up][:, across])


def _decode(data: bytes, place: int, expected: Expectation | None = None) -> tuple[Read, int]:
    """Parse the table at an offset; returns it and the offset behind it."""
    form, width, axes, _ = struct.unpack_from("<4B", data, place)
    if axes > MOST_AXES or width not in _TYPES:
        raise ValueError(f"a table of {axes} axes and values of {width} bytes")
    shape = struct.unpack_from(f"<{axes}I", data, place + 4)
    if expected is not None:
        expected.require(shape, expected.width if form == _WORDS else width)
    reader = Reader(data, place + _header_size(axes), _TYPES[width], bounded=expected is not None)
    if form in (_ROWS, _COARSE):
        where = reader.numbers(reader.number())
        _require_places("row", where, shape[0])
        values = _native(reader.rows(len(where), prod(shape[1:]), coarse=form == _COARSE)).reshape(
            len(where), *shape[1:]
        )
        return Rows(torch.from_numpy(where.astype(np.int64)), values, shape[0]), reader.place
    if form == _WORDS:
        return Words(torch.from_numpy(reader.numbers(prod(shape)).astype(np.int64))), reader.place
    if form == _DENSE:
        return _native(reader.values(prod(shape))).reshape(shape), reader.place
    if form == _SPARSE:
        where = reader.numbers(reader.number())
        _require_places("value", where, prod(shape))
        table = np.zeros(prod(shape), dtype=reader.kind)
        table[where] = reader.values(len(where))
        return _native(table).reshape(shape), reader.place
    if form == _BLOCK:
        counts = reader.number(), reader.number()
        rows, columns = (reader.numbers(count) for count in counts)
        _require_cells(rows, columns, shape)
        return _patch(rows, columns, reader.values(prod(counts)).reshape(counts), shape, half=False), reader.place
    if form == _HALF:
        rows = reader.numbers(reader.number())
        _require_cells(rows, rows, shape)
        block = np.zeros((len(rows), len(rows)), dtype=reader.kind)
        block[np.triu_indices(len(rows))] = reader.values(len(rows) * (len(rows) + 1) // 2)
        return _patch(rows, rows, block + np.triu(block, 1).T, shape, half=True), reader.place
    raise ValueError(f"a table of unknown form {form}")


def _patch(rows: Array, columns: Array, values: Array, shape: tuple[int, ...], *, half: bool) -> Matrix:
    up, across = (torch.from_numpy(places.astype(np.int64)) for places in (rows, columns))
    return Matrix(Patch(up, across, _native(values)), shape, half)


def _require_cells(rows: Array, columns: Array, shape: tuple[int, ...]) -> None:
    _require_places("row", rows, shape[0])
    _require_places("column", columns, prod(shape[1:]))


def _require_places(what: str, places: Array, size: int) -> None:
    """Refuse indices that are out of range or repeated, before they are used."""
    if len(places) > size or (len(places) and places.max() >= size):
        found = f"{what} {places.max()}" if len(places) <= size else f"{len(places)} {what}s"
        raise ValueError(f"{found} of a table of {size} {what}s")
    if len(np.unique(places)) != len(places):
        raise ValueError(f"a {what} that is sent twice")


def _native(values: Array) -> Tensor:
    return torch.from_numpy(values.astype(values.dtype.newbyteorder("=")))


def _header(form: int, width: int, shape: tuple[int, ...]) -> bytes:
    if prod(shape) > 2**32:
        raise ValueError(f"a table of {prod(shape)} values: positions of 4 bytes reach to 2**32")
    return struct.pack(f"<4B{len(shape)}I", form, width, len(shape), 0, *shape)


def _header_size(axes: int) -> int:
    return 4 + _WHOLE * axes


def _numbers(*numbers: int) -> bytes:
    return np.array(numbers, dtype="<u4").tobytes()


def _bytes(values: Array) -> bytes:
    return values.astype(_TYPES[values.itemsize]).tobytes()
