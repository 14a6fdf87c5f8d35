"""Messages as bytes: tables and messages come back as they were, are as long as accounted, and damage is noticed."""

from __future__ import annotations

import struct

import numpy as np
import numpy.typing as npt
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from torch import Tensor

from ownview.base.errors import MessageError
from ownview.messages.coarse import Coarse, coarse_size
from ownview.messages.expected_tables import Expected
from ownview.messages.wire import (
    DOWNLOAD,
    UPLOAD,
    VERSION,
    Matrix,
    Message,
    Rows,
    Whole,
    _decode,
    dense_size,
    encode,
    matrix_size,
    message_size,
    rows_size,
    sparse_size,
    whole_table,
)
from ownview.round.conduct import sparsity
from ownview.seam.client import Product

_OFTEN_ZERO = st.one_of(st.just(0.0), st.just(0.0), st.floats(-1e6, 1e6, width=32))
_SMALL = st.one_of(st.just(0.0), st.integers(-9, 9).map(float))
"""Products of small whole numbers are exact, in whatever order they are added up."""
_KINDS = st.sampled_from([np.float32, np.float64])


def decode(data: bytes) -> Tensor:
    """The whole table of `encode`'s bytes."""
    return whole_table(_decode(data, 0)[0])


@st.composite
def tables(draw: st.DrawFn) -> Tensor:
    shape = draw(arrays.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=6))
    return torch.from_numpy(
        np.asarray(draw(arrays.arrays(draw(_KINDS), shape, elements=_OFTEN_ZERO, fill=st.just(0.0))))
    )


@st.composite
def some_rows(draw: st.DrawFn, *, always: bool | None = None) -> Rows:
    num_rows = draw(st.integers(0, 8))
    chosen = sorted(draw(st.sets(st.integers(0, num_rows - 1)))) if num_rows else []
    behind = draw(arrays.array_shapes(min_dims=0, max_dims=2, min_side=1, max_side=4))
    values = draw(arrays.arrays(draw(_KINDS), (len(chosen), *behind), elements=_OFTEN_ZERO))
    by_row = draw(st.booleans()) if always is None else always
    return Rows(torch.tensor(chosen, dtype=torch.long), torch.from_numpy(np.asarray(values)), num_rows, by_row)


@st.composite
def matrices(draw: st.DrawFn) -> Matrix:
    """A symmetric one is some multiple of x^T x, as clients send it."""
    symmetric, kind, summed = draw(st.booleans()), draw(_KINDS), draw(st.integers(1, 3))
    a, b = draw(st.integers(1, 7)), draw(st.integers(1, 7))
    left = torch.from_numpy(draw(arrays.arrays(kind, (summed, a), elements=_SMALL)))
    right = torch.from_numpy(draw(arrays.arrays(kind, (summed, b), elements=_SMALL)))
    if symmetric:
        return Matrix(Product(left * draw(st.integers(0, 2)), left), (a, a), symmetric=True)
    shape = (a, b) if draw(st.booleans()) else (a, 1, b)
    return Matrix(Product(left, right), shape, symmetric=False)


def _same(left: Tensor, right: Tensor) -> bool:
    return left.dtype == right.dtype and torch.equal(left, right)


# --- tables ---


@given(tables())
def test_tables_come_back_and_are_as_long_as_accounted(table: Tensor) -> None:
    written = encode(table)
    shape, width = tuple(table.shape), table.element_size()
    assert _same(decode(written), table)
    assert len(written) == int(sparse_size(shape, width, torch.count_nonzero(table))) <= dense_size(shape, width)


@given(tables())
def test_whole_tables_keep_their_zeros(table: Tensor) -> None:
    written = encode(Whole(table))
    assert _same(decode(written), table)
    assert len(written) == dense_size(tuple(table.shape), table.element_size())


@given(some_rows())
def test_rows_come_back_and_are_as_long_as_accounted(table: Rows) -> None:
    whole = torch.zeros(table.num_rows, *table.values.shape[1:], dtype=table.values.dtype)
    whole[table.rows] = table.values
    written = encode(table)
    assert _same(decode(written), whole)
    shape, width = tuple(whole.shape), whole.element_size()
    assert len(written) == int(rows_size(shape, width, len(table.rows), always=table.always))


@given(matrices())
def test_products_come_back_multiplied_out_and_are_as_long_as_accounted(matrix: Matrix) -> None:
    assert isinstance(matrix.cells, Product)
    left, right = matrix.cells
    written = encode(matrix)
    assert _same(decode(written), (left.T @ right).reshape(matrix.shape))
    rows, columns = ((side != 0).any(0) for side in (left, right))
    count = (rows & columns).sum() if matrix.symmetric else rows.sum()
    width = left.element_size()
    accounted = matrix_size(matrix.shape, width, count, columns.sum(), symmetric=matrix.symmetric)
    assert len(written) == int(accounted) <= dense_size(matrix.shape, width)


@pytest.mark.parametrize(("nonzero", "expected"), [(0, 16), (1, 24), (24, 208), (25, 212), (50, 212)])
def test_sizes_by_hand(nonzero: int, expected: int) -> None:
    """10 by 5 values of 4 bytes: 12 bytes of header; then 200 bytes, or 4 and 8 for each value that is not 0."""
    table = torch.zeros(10, 5)
    table.view(-1)[:nonzero] = 2.5
    assert len(encode(table)) == expected


@pytest.mark.parametrize(
    ("rows", "always", "expected"), [(0, False, 16), (8, False, 208), (9, False, 212), (9, True, 232)]
)
def test_sizes_of_rows_by_hand(rows: int, always: bool, expected: int) -> None:
    """The same table: 12 bytes of header; then 4, and for each row 4 and its 5 values of 4 bytes; or 200 bytes."""
    assert len(encode(Rows(torch.arange(rows), torch.ones(rows, 5), 10, always))) == expected


@pytest.mark.parametrize(("symmetric", "rows", "expected"), [
    (True, 2, 12 + 4 * 3 + 3 * 4), (True, 6, 12 + 4 * 7 + 21 * 4), (True, 9, 12 + 4 * 10 + 45 * 4),
    (False, 2, 12 + 4 * 6 + 4 * 4), (False, 6, 12 + 4 * 14 + 36 * 4), (False, 9, 12 + 400),
    (True, 10, 12 + 4 * 11 + 55 * 4),
])  # fmt: skip
def test_sizes_of_products_by_hand(symmetric: bool, rows: int, expected: int) -> None:
    """10 by 10 values of 4 bytes: which rows and columns have any, then the values where they cross, or one half."""
    sides = torch.zeros(1, 10)
    sides[0, :rows] = 1.5
    assert len(encode(Matrix(Product(sides, sides), (10, 10), symmetric))) == expected


def test_bytes_by_hand() -> None:
    """A message with one table, number by number."""
    message = Message(UPLOAD, 7, 30, {"w": Rows(torch.tensor([1, 4]), torch.tensor([0.5, -2.0]), 6, always=True)})
    head = b"OV" + bytes([1, 2]) + struct.pack("<III", 7, 30, 1)
    table = bytes([2, 4, 1, 0]) + struct.pack("<I", 6) + struct.pack("<III", 2, 1, 4) + struct.pack("<ff", 0.5, -2.0)
    assert message.pack() == head + b"\x01w" + table


def test_sparsity_by_hand() -> None:
    found = sparsity({"items": torch.tensor([[0.0, -0.0, 0.0005, -0.0005], [0.001, -0.1, 3.0, 4.0]])})
    assert found == {"items": {"zero": 0.25, "below_0.001": 0.5}}


# --- messages ---


_NAMES = st.text(max_size=12)
_MESSAGES = st.builds(
    Message,
    st.sampled_from([DOWNLOAD, UPLOAD]),
    st.integers(0, 2**32 - 1),
    st.integers(0, 2**32 - 1),
    st.dictionaries(_NAMES, st.one_of(tables(), tables().map(Whole), some_rows(), matrices()), max_size=4),
)


@given(_MESSAGES)
def test_messages_come_back_and_are_as_long_as_accounted(message: Message) -> None:
    written = message.pack()
    back = Message.unpack(written)
    assert (back.kind, back.round, back.samples) == (message.kind, message.round, message.samples)
    assert list(back.tables) == list(message.tables)
    for name, table in message.tables.items():
        found = back.tables[name]
        assert isinstance(found, Tensor | Rows | Matrix)
        assert _same(whole_table(found), decode(encode(table)))
    assert len(written) == int(message_size({name: len(encode(table)) for name, table in message.tables.items()}))


@given(some_rows(always=True))
def test_which_rows_were_sent_is_known_where_it_matters(table: Rows) -> None:
    found = Message.unpack(Message(UPLOAD, 1, 0, {"items": table}).pack()).tables["items"]
    assert isinstance(found, Rows)
    assert found.rows.tolist() == table.rows.tolist()
    assert found.num_rows == table.num_rows
    assert _same(found.values, table.values)


@given(
    arrays.arrays(np.int8, st.tuples(st.integers(0, 6), st.integers(1, 5)), elements=st.integers(-127, 127)),
    st.integers(-100, 20),
    st.sampled_from([torch.float32, torch.float64]),
)
def test_multiples_of_a_power_of_two_take_a_byte_each_and_come_back_bit_for_bit(
    counts: npt.NDArray[np.int8], power: int, kind: torch.dtype
) -> None:
    powers = power + torch.arange(len(counts))[:, None]
    values = (torch.from_numpy(counts).double() * 2.0**powers).to(kind)
    rows = torch.arange(len(counts)) * 2 + 1
    data = encode(Coarse(rows, values, 13))
    assert len(data) == int(coarse_size(torch.tensor(len(counts)), counts.shape[1]))
    table = Rows(rows, values, 13)
    assert torch.equal(decode(data), whole_table(table))
    if counts.any():
        other = values.clone()
        other[counts.any(1).argmax(), 0] += values.abs().max() / 257  # is no multiple any more
        assert encode(Coarse(rows, other, 13)) == encode(Rows(rows, other, 13))


def test_values_that_come_from_elsewhere_are_bounded_in_the_coarse_form_too() -> None:
    large = Message(UPLOAD, 1, 0, {"x": Coarse(torch.tensor([0]), torch.tensor([[2.0**110]]), 2)}).pack()
    Message.unpack(large)
    with pytest.raises(MessageError, match="not finite or beyond"):
        Message.unpack(large, Expected({"x": (2, 1)}, 4))


# --- damage ---


def _of_every_form() -> Message:
    sides = torch.zeros(1, 12)
    sides[0, [2, 5]] = 1.5
    other = torch.zeros(1, 12)
    other[0, [0, 7, 9]] = 1.0
    few = torch.zeros(30)
    few[3] = 2.0
    return Message(UPLOAD, 3, 12, {
        "dense": torch.ones(2, 3), "sparse": few, "rows": Rows(torch.tensor([1, 4]), torch.ones(2, 3), 9, always=True),
        "block": Matrix(Product(sides, other), (12, 12), symmetric=False),
        "half": Matrix(Product(sides, sides), (12, 12), symmetric=True),
        "coarse": Coarse(torch.tensor([2, 7]), torch.tensor([[1.0, -127.0, 64.0], [0.5, 0.0, -1.5]]), 9),
    })  # fmt: skip


_SOUND = _of_every_form().pack()


def _place_of(name: str) -> int:
    """Where a table begins in the message of every form."""
    return _SOUND.index(bytes([len(name)]) + name.encode()) + 1 + len(name)


def _changed(place: int, new: bytes) -> bytes:
    return _SOUND[:place] + new + _SOUND[place + len(new) :]


def test_the_message_of_every_form_has_every_form() -> None:
    """Otherwise the tests below would test less than they say."""
    assert [_SOUND[_place_of(name)] for name in ("dense", "sparse", "rows", "block", "half", "coarse")] == [
        0,
        1,
        2,
        3,
        4,
        6,
    ]
    Message.unpack(_SOUND)


def test_a_message_that_breaks_off_anywhere_is_damaged() -> None:
    for length in range(len(_SOUND)):
        with pytest.raises(MessageError, match="damaged"):
            Message.unpack(_SOUND[:length])


@given(st.binary(min_size=1, max_size=40))
def test_more_than_a_message_is_damaged(more: bytes) -> None:
    with pytest.raises(MessageError, match=f"damaged message: {len(more)} bytes behind its end"):
        Message.unpack(_SOUND + more)


@given(st.binary(max_size=60).filter(lambda data: data[:2] != b"OV"))
def test_other_bytes_are_no_message(data: bytes) -> None:
    with pytest.raises(MessageError):
        Message.unpack(data)


@pytest.mark.parametrize("version", [0, VERSION + 1, 255])
def test_a_message_of_another_version_is_refused(version: int) -> None:
    with pytest.raises(MessageError, match=f"a message of version {version}; this program speaks version {VERSION}"):
        Message.unpack(_changed(2, bytes([version])))


@pytest.mark.parametrize(
    ("name", "offset", "new"),
    [
        ("dense", 0, b"\x09"),  # a form that there is not
        ("sparse", 0, b"\xff"),
        ("dense", 1, b"\x03"),  # values of three bytes
        ("dense", -5, b"\xff"),  # a name that is no text
        ("sparse", 12, b"\x1e"),  # position 30 of 30 values
        ("rows", 16, b"\x09"),  # row 9 of 9
        ("block", 20, b"\x0c"),  # row 12 of 12
        ("block", 28, b"\x0c"),  # column 12 of 12
        ("half", 16, b"\x0c"),
        ("coarse", 16, b"\x09"),  # row 9 of 9
        ("coarse", 20, b"\x02"),  # the same row again
        ("coarse", 24, b"\x79"),  # a power of 121
        ("coarse", 29, b"\x80"),  # -128 steps
    ],
)
def test_a_table_that_cannot_be_is_damaged(name: str, offset: int, new: bytes) -> None:
    with pytest.raises(MessageError, match="damaged"):
        Message.unpack(_changed(_place_of(name) + offset, new))
