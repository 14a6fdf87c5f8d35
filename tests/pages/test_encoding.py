"""Forms as text: rounded, thinned where need be, and the same numbers on both sides."""

from __future__ import annotations

import base64
import gzip
from typing import Any

import numpy as np
import pytest
import torch

from ownview.base.errors import SettingError
from ownview.pages import encoding
from ownview.pages.encoding import FEWEST, encode
from ownview.seam.portable import Factors, Linear, Logistic, SparseRows, Term

M = 90


def numbers(text: str, kind: str) -> Any:
    return np.frombuffer(gzip.decompress(base64.b64decode(text)), kind)


def linear() -> Linear:
    drawn = torch.randn(M, M, generator=torch.Generator().manual_seed(3)) ** 3
    drawn[7] = 0
    return Linear((Term(drawn, 4.0),), bias=torch.arange(float(M)))


def rows_of(form: Linear | Factors) -> SparseRows:
    assert isinstance(form, Linear)
    weights = form.terms[0].weights
    assert isinstance(weights, SparseRows)
    return weights


def test_with_room_all_weights_are_there_to_half_a_step() -> None:
    full = linear()
    made = encode(full, 10**6)
    assert made.kept == 1
    weights = rows_of(made.form)
    dense = torch.zeros(M, M)
    owner = torch.repeat_interleave(torch.arange(M), weights.offsets.diff())
    dense[owner, weights.columns] = weights.values
    given = full.terms[0].weights
    assert isinstance(given, torch.Tensor)
    # Steps are q sqrt(|q|) of the greatest over 127 sqrt(127): the widest lies at the greatest, the least at 0.
    greatest = given.abs().amax(1, keepdim=True)
    place = (given.abs() / greatest.clamp(min=1e-9)) ** (2 / 3) * 127
    half_a_step = greatest * ((place + 0.5) ** 1.5 - place**1.5).clamp(min=0.5) / 127**1.5
    assert bool(((dense - given).abs() <= half_a_step * 1.001).all())


def test_the_text_is_the_form() -> None:
    made = encode(linear(), 10**6)
    text, weights = made.plain["arrays"]["term0.rows"], rows_of(made.form)
    lengths, gaps = numbers(text["lengths"], "<u4"), numbers(text["gaps"], f"<u{text['gap_bytes']}")
    owner = np.repeat(np.arange(M), lengths)
    begin = np.repeat(np.cumsum(lengths) - lengths, lengths)
    summed = np.cumsum(gaps.astype(np.int64))
    columns = summed - (summed[begin] - gaps[begin])
    assert columns.tolist() == weights.columns.tolist()
    whole = numbers(text["whole"], "|i1").astype(np.float64)
    assert text["fine"] == "1"
    values = (whole * np.sqrt(np.abs(whole)) * numbers(text["scales"], "<f4")[owner]).astype(np.float32)
    assert values.tolist() == weights.values.tolist()
    assert numbers(made.plain["arrays"]["bias"]["floats"], "<f4").tolist() == list(range(M))
    assert made.plain["terms"] == [{"weights": "rows", "fades": 4.0, "most": None}]


def test_where_there_is_little_room_the_strongest_weights_are_taken() -> None:
    whole = encode(linear(), 10**6)
    size = sum(len(text) for one in whole.plain["arrays"].values() for text in one.values())
    made = encode(linear(), round(0.6 * size))
    assert sum(len(text) for one in made.plain["arrays"].values() for text in one.values()) <= 0.6 * size
    assert 0.2 < made.kept < 0.9
    weights = rows_of(made.form)
    lengths = weights.offsets.diff()
    assert int(lengths[7]) == 0
    assert int(lengths[torch.arange(M) != 7].min()) >= FEWEST // 2  # of the least twenty some may round to 0
    full = linear().terms[0].weights
    assert isinstance(full, torch.Tensor)
    row = slice(int(weights.offsets[0]), int(weights.offsets[1]))
    left_out = torch.ones(M, dtype=torch.bool).index_fill(0, weights.columns[row], False)
    assert full[0, left_out].abs().max() < full[0, ~left_out].abs().max()


def test_a_large_form_fills_the_room_and_is_not_packed_whole_to_see_that_it_does_not_fit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shares: list[float] = []
    packed = encoding._Thinning.at

    def noted(self: Any, share: float, *, fine: bool = False) -> encoding.Encoded:
        shares.append(share)
        return packed(self, share, fine=fine)

    monkeypatch.setattr(encoding._Thinning, "at", noted)
    many = 2 * encoding._SAMPLED + 100  # so many that every second row is a sample
    drawn = torch.randn(many, many, generator=torch.Generator().manual_seed(3)) ** 3
    drawn[1::2] *= 3
    room = 200_000
    made = encode(Linear((Term(drawn, 4.0),)), room)
    size = sum(len(text) for one in made.plain["arrays"].values() for text in one.values())
    assert encoding._ENOUGH * room < size <= room
    assert 0.05 < made.kept < 0.9
    assert max(shares) < 0.9
    assert len(shares) <= 3


def test_what_does_not_fit_at_all_is_refused() -> None:
    with pytest.raises(SettingError, match=r"at least 0\.0\d+ MB in a page.*--megabytes"):
        encode(linear(), 100)
    with pytest.raises(SettingError, match="--megabytes"):
        encode(Factors(torch.randn(M, 8), Logistic(4.0)), 100)


def test_vectors_are_rounded_finely() -> None:
    items = torch.randn(M, 8, generator=torch.Generator().manual_seed(5))
    items[3] = 0
    made = encode(Factors(items, Logistic(4.0)), 10**6)
    assert isinstance(made.form, Factors)
    torch.testing.assert_close(made.form.items, items, rtol=0, atol=float(items.abs().max()) / 60_000)
    text = made.plain["arrays"]["items"]
    whole = numbers(text["whole"], "<i2").reshape(M, int(text["width"]))
    assert (whole * numbers(text["scales"], "<f4")[:, None]).tolist() == made.form.items.tolist()
