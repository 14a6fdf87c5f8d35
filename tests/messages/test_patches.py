"""Patches: the third form of a summand, summed, sent, transformed and refused."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from ownview import Patch, Summand
from ownview.base.errors import MessageError, SettingError
from ownview.messages.sums import SumPartial, require_declared
from ownview.messages.upload import Upload, add_symmetric_cells
from ownview.messages.wire import Matrix, encode, matrix_size
from ownview.privacy.entropy import NoiseKey
from ownview.privacy.transforms import Sending, transforms
from tests.messages.test_wire import decode

ROWS, COLUMNS = torch.tensor([[4, 1, 0], [2, 0, 3]]), torch.tensor([[3, 0], [1, 2]])
VALUES = torch.tensor([[[1.0, 2.0], [3.0, 4.0], [0.0, 0.0]], [[5.0, 6.0], [7.0, 8.0], [9.0, 10.0]]])
"""Two clients on a matrix of 5 by 4; the last row of the first one is padding."""
SHAPE = (5, 2, 2)
DECLARED = {"x": Summand(SHAPE, "x")}


def _upload(patch: Patch) -> Upload:
    count = len(patch.rows)
    nothing = torch.zeros(count, 0, dtype=torch.long)
    samples = torch.ones(count, dtype=torch.long)
    return Upload(torch.arange(count), samples, nothing, nothing.bool(), sums={"x": patch}, shapes={"x": SHAPE})


def _written_out(patch: Patch) -> Tensor:
    whole = torch.zeros(len(patch.rows), 5, 4)
    for b in range(len(patch.rows)):
        for i, row in enumerate(patch.rows[b].tolist()):
            for j in range(patch.values.shape[2]):
                column = j if patch.of_rows else int(patch.columns[b, j])
                whole[b, row, column] += patch.values[b, i, j]
    return whole.reshape(-1, *SHAPE)


PATCHES = {
    "cells": Patch(ROWS, COLUMNS, VALUES),
    "whole rows": Patch(ROWS, torch.zeros(2, 0, dtype=torch.long), torch.cat([VALUES, VALUES + 1], dim=2)),
    "nothing": Patch(ROWS[:, :0], COLUMNS[:, :0], VALUES[:, :0, :0]),
}


@pytest.mark.parametrize("name", PATCHES)
def test_a_sum_of_patches_is_the_sum_of_written_out_patches(name: str) -> None:
    total = SumPartial(DECLARED, torch.empty(0))
    upload = _upload(PATCHES[name])
    require_declared(upload, DECLARED)
    total.add(upload)
    assert torch.equal(total.sums["x"], _written_out(PATCHES[name]).sum(0))
    assert torch.equal(upload.written_out()["x"], _written_out(PATCHES[name]))


def test_symmetric_patches_are_summed_whichever_half_is_added_and_however_often_their_sum_is_looked_at() -> None:
    shape, drawn = (70, 70), torch.Generator().manual_seed(0)
    rows = torch.stack([torch.randperm(70, generator=drawn) for _ in range(3)])
    pasts = torch.randn(3, 5, 70, generator=drawn, dtype=torch.float64)
    patch = Patch(rows, rows, pasts.mT @ pasts)
    nothing = torch.zeros(3, 0, dtype=torch.long)
    ones = torch.ones(3, dtype=torch.long)
    upload = Upload(torch.arange(3), ones, nothing, nothing.bool(), sums={"x": patch}, shapes={"x": shape})
    expected = upload.written_out()["x"].sum(0)
    total = SumPartial({"x": Summand(shape, "x", symmetric=True)}, torch.empty(0, dtype=torch.float64))
    for times in (1, 2):
        total.add(upload)
        torch.testing.assert_close(total.sums["x"], times * expected)
    total.merge(total.pack())
    total.add(upload)
    torch.testing.assert_close(total.sums["x"], 5 * expected)
    plain = torch.zeros(shape, dtype=torch.float64)
    add_symmetric_cells(plain, patch)
    assert not torch.equal(plain, plain.T)  # one half alone was added


def test_items_travel_in_ascending_order_without_padding() -> None:
    table = Matrix(Patch(ROWS[0], COLUMNS[0], VALUES[0]), (50, 40), symmetric=False)
    data = encode(table)
    assert torch.equal(decode(data)[:5, :4].reshape(SHAPE), _written_out(PATCHES["cells"])[0])
    places = np.frombuffer(data, dtype="<u4", count=4, offset=4 + 8 + 8)
    assert places.tolist() == [1, 4, 0, 3]
    assert len(data) == int(matrix_size((50, 40), 4, torch.tensor(2), torch.tensor(2), symmetric=False))


def test_a_symmetric_patch_is_sent_by_half() -> None:
    values = torch.tensor([[1.0, 2.0, 0.0], [2.0, 5.0, 0.0], [0.0, 0.0, 0.0]])
    table = Matrix(Patch(ROWS[0], ROWS[0], values), (50, 50), symmetric=True)
    data = encode(table)
    assert len(data) == 4 + 2 * 4 + 4 * (1 + 2) + 3 * 4
    whole = decode(data)
    assert whole[4, 4] == 1
    assert whole[1, 4] == whole[4, 1] == 2
    assert whole[1, 1] == 5
    assert torch.count_nonzero(whole) == 4


def test_cells_outside_the_matrix_are_no_message() -> None:
    data = bytearray(encode(Matrix(Patch(ROWS[0], COLUMNS[0], VALUES[0]), (50, 40), symmetric=False)))
    data[20:24] = np.array([77], dtype="<u4").tobytes()
    with pytest.raises((ValueError, MessageError), match="row 77 of a table of 50 rows"):
        decode(bytes(data))


def test_noise_writes_a_patch_out() -> None:
    chosen = transforms("gaussian:clip=2,noise=1e-9")
    assert chosen is not None
    noisy = chosen.on_client(
        _upload(PATCHES["cells"]).one(1), Sending(7, torch.ones(1), 5, noise=NoiseKey.from_seed(7))
    ).sums["x"]
    assert isinstance(noisy, Tensor)
    expected = _written_out(PATCHES["cells"])[1:]
    assert torch.allclose(noisy, 2 * expected / expected.norm(), atol=1e-6)
    assert torch.count_nonzero(noisy) == noisy.numel()


@pytest.mark.parametrize(
    ("patch", "found"),
    [
        (Patch(ROWS + 1, COLUMNS, VALUES), "row 5"),
        (Patch(ROWS, COLUMNS + 1, VALUES), "column 4"),
        (Patch(ROWS[:, :2], COLUMNS, VALUES), "3 x 2 values in 2 rows and 2 columns"),
        (Patch(ROWS, COLUMNS[:, :0], VALUES), "3 x 2 values in 3 rows and 4 columns"),
    ],
)
def test_patches_with_no_place_in_the_matrix_are_refused(patch: Patch, found: str) -> None:
    with pytest.raises(SettingError, match=f"summand 'x' came with {found}; declared is the shape"):
        require_declared(_upload(patch), DECLARED)
