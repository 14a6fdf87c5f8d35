"""A portable form as text that fits into a page: rounded, packed, and where need be its strongest weights alone.

Weights from items to items are rounded to one of 255 steps of their row's greatest, closer to each other near 0 where
there is room for all; what rounds to 0 is left out.
Vectors are rounded to one of 65,535 steps. What comes out is both: the text, and the form that it stands for, number by
number, so that figures about the page are measured with the page's own numbers.
"""

from __future__ import annotations

import base64
import gzip
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from scipy import sparse
from torch import Tensor

from ownview.base.errors import SettingError
from ownview.pages.packing import described
from ownview.seam.portable import Factors, Linear, LowRank, SparseRows, Term

Array = npt.NDArray[Any]
Texts = dict[str, dict[str, str]]

FEWEST = 20
"""Weights that every item keeps however little room there is, so that a pick of it counts."""

_ATTEMPTS = 6
"""In search of the greatest share of weights that fits."""

_ENOUGH = 0.95
"""Of the room: who has filled so much of it stops searching."""

_POWER = 1.6
"""The more weights, the weaker and the cheaper: a share grows about as the size to the power of this."""

_MOST = 4
"""No weight takes less than a quarter of a byte, so that more than so many a byte of room need not be tried."""


class Encoded(NamedTuple):
    """A form inside a page.

    form:   as the page has it, rounded and thinned
    plain:  what JSON holds: a description, and arrays as text
    kept:   share of the weights that are there, of those that are not 0; 1 where none were left out but by rounding
    """

    form: Linear | Factors
    plain: dict[str, Any]
    kept: float


def encode(form: Linear | Factors, room: int) -> Encoded:
    """Encode as much of a form as fits into so many bytes of text.

    Raises:
        SettingError: even the least of it does not fit.
    """
    if isinstance(form, Factors):
        encoded = _factors(form)
        _require(_size(encoded.plain), room)
        return encoded
    thin = _Thinning(form, room)
    for fine in (True, False):
        whole = thin.at(1.0, fine=fine)
        if _size(whole.plain) <= room:
            return whole
    best = thin.at(0.0)
    _require(_size(best.plain), room)
    low, high, size, power = 0.0, 1.0, _size(whole.plain), _POWER
    for _ in range(_ATTEMPTS):
        guess = high * (0.98 * room / size) ** power
        middle = guess if low < guess < high else (low + high) / 2
        tried = thin.at(middle)
        if _size(tried.plain) > room:
            high, size = middle, _size(tried.plain)
        else:
            low, best = middle, tried
            if _size(best.plain) > _ENOUGH * room:
                break
        if low:  # between what fits and what does not, the power is known better
            power = float(np.log(high / low) / np.log(size / _size(best.plain)))
    return best


def _require(size: int, room: int) -> None:
    if size > room:
        raise SettingError(
            f"the model takes at least {size / 1e6:.3g} MB in a page, and there is room for {max(room, 0) / 1e6:.3g} "
            "MB; raise --megabytes, or take ownview export"
        )


def _size(plain: dict[str, Any]) -> int:
    return sum(len(text) for one in plain["arrays"].values() for text in one.values())


def _factors(form: Factors) -> Encoded:
    items, text = _steps(form.items)
    rounded = replace(form, items=items)
    return Encoded(rounded, {**described(form), "arrays": {"items": text, **_bias(form)}}, 1.0)


class _Thinning:
    """A linear form with a share of its weights.

    Args:
        form: in full.
        room: bytes of text that there will be at most.
    """

    def __init__(self, form: Linear, room: int) -> None:
        self.form = form
        self.terms: list[_Sparse | None] = [
            None if isinstance(term.weights, LowRank) else _Sparse(term.weights, _MOST * max(room, 1))
            for term in form.terms
        ]

    def at(self, share: float, *, fine: bool = False) -> Encoded:
        """With the strongest weights of every term, and the `FEWEST` strongest of every item; `fine` in finer steps."""
        arrays, kept = _bias(self.form), 0
        terms: list[Term] = []
        for place, (term, weights) in enumerate(zip(self.form.terms, self.terms, strict=True)):
            made: SparseRows | LowRank
            if weights is None:
                assert isinstance(term.weights, LowRank)
                (left, left_text), (right, right_text) = (_steps(part) for part in term.weights)
                made, texts = LowRank(left, right), {"left": left_text, "right": right_text}
            else:
                strongest = weights.strongest(share)
                kept += strongest.nnz
                made, text = _rounded_rows(strongest, fine=fine)
                texts = {"rows": text}
            terms.append(replace(term, weights=made))
            arrays |= {f"term{place}.{name}": text for name, text in texts.items()}
        form = replace(self.form, terms=tuple(terms))
        possible = sum(one.total for one in self.terms if one is not None)
        return Encoded(form, {**described(form), "arrays": arrays}, kept / possible if possible else 1.0)


class _Sparse:
    """Weights from items to items, as compressed rows, and how strong they are."""

    def __init__(self, given: Tensor | SparseRows, most: int) -> None:
        self.weights = _compressed(given, most)
        self.total = int(torch.count_nonzero(given.values if isinstance(given, SparseRows) else given))
        strong = np.abs(self.weights.data)
        self.falling = np.sort(strong)[::-1]
        ends = self.weights.indptr
        self.needed = np.repeat(
            [_nth(strong[ends[row] : ends[row + 1]], FEWEST) for row in range(len(ends) - 1)], np.diff(ends)
        )
        """[c] what is at least so strong is among the strongest of its row."""

    def strongest(self, share: float) -> Any:
        """Compressed rows."""
        count = round(share * len(self.falling))
        least = self.falling[count - 1] if count else np.inf
        strong = np.abs(self.weights.data)
        kept = self.weights.copy()
        kept.data = np.where((strong >= least) | (strong >= self.needed), kept.data, 0)
        kept.eliminate_zeros()
        return kept


def _nth(values: Array, place: int) -> float:
    """The place-th greatest of some values, place from 1; 0 where there are fewer."""
    return float(-np.partition(-values, place - 1)[place - 1]) if len(values) >= place else 0.0


def _compressed(given: Tensor | SparseRows, most: int) -> Any:
    if isinstance(given, SparseRows):
        size = len(given.offsets) - 1
        parts = (given.values.float().numpy(), given.columns.numpy(), given.offsets.numpy())
        found = sparse.csr_matrix(parts, shape=(size, size), copy=True)
        found.sort_indices()
        return found
    dense = given.float()
    if dense.numel() > most:
        strong = dense.abs()
        least = np.partition(strong.numpy().reshape(-1), -most)[-most]
        needed = strong.topk(min(FEWEST, len(dense)), dim=1).values[:, -1:]
        dense = torch.where((strong >= least) | (strong >= needed), dense, 0.0)
    return sparse.csr_matrix(dense.numpy())


def _rounded_rows(weights: Any, *, fine: bool) -> tuple[SparseRows, dict[str, str]]:
    """Values as whole numbers q times a scale of their row, columns as the gap to the one before in the same row.

    Fine steps are q sqrt(|q|): near 0, where most weights lie, they are eleven times as close.
    """
    rows = weights.shape[0]
    owner = np.repeat(np.arange(rows), np.diff(weights.indptr))
    greatest = np.zeros(rows, dtype=np.float32)
    np.maximum.at(greatest, owner, np.abs(weights.data))
    steps = 127 * np.sqrt(127) if fine else 127.0
    scales = np.where(greatest > 0, greatest / np.float32(steps), np.float32(1)).astype(np.float32)
    share = np.clip(weights.data / scales[owner], -steps, steps)
    whole = np.rint(np.sign(share) * np.abs(share) ** (2 / 3) if fine else share).astype(np.int8)
    there = whole != 0
    owner, columns, whole = owner[there], weights.indices[there].astype(np.int64), whole[there]
    lengths = np.bincount(owner, minlength=rows)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    gaps = np.diff(columns, prepend=0)
    begins = offsets[:-1][lengths > 0]
    gaps[begins] = columns[begins]
    stretched = whole * np.sqrt(np.abs(whole.astype(np.float64))) if fine else whole.astype(np.float64)
    values = (stretched * scales[owner].astype(np.float64)).astype(np.float32)  # as the page's script does it
    made = SparseRows(*(torch.from_numpy(one) for one in (offsets, columns, values)))
    wide = "<u2" if rows <= 2**16 else "<u4"
    texts = _side_by_side({"lengths": (lengths, "<u4"), "gaps": (gaps, wide), "whole": (whole, "|i1")})
    return made, {"gap_bytes": wide[2], **({"fine": "1"} if fine else {}), **texts, "scales": _text(scales, "<f4")}


def _steps(vectors: Tensor) -> tuple[Tensor, dict[str, str]]:
    """A matrix [a, b] as whole numbers times a scale of their row, and its width."""
    given = vectors.detach().float().numpy()
    greatest = np.abs(given).max(axis=1, initial=0)
    scales = np.where(greatest > 0, greatest / np.float32(32767), np.float32(1)).astype(np.float32)
    whole = np.rint(given / scales[:, None]).astype(np.int16)
    rounded = torch.from_numpy(whole.astype(np.float32) * scales[:, None])
    return rounded, {"width": str(given.shape[1]), "whole": _text(whole, "<i2"), "scales": _text(scales, "<f4")}


def _bias(form: Linear | Factors) -> Texts:
    return {} if form.bias is None else {"bias": {"floats": _text(form.bias.numpy(), "<f4")}}


def _side_by_side(arrays: dict[str, tuple[Array, str]]) -> dict[str, str]:
    """Texts of arrays, a thread each: packing lets go of the interpreter, and takes most of what a page takes."""
    with ThreadPoolExecutor(len(arrays)) as threads:
        return dict(zip(arrays, threads.map(_text, *zip(*arrays.values(), strict=True)), strict=True))


def _text(values: Array, kind: str) -> str:
    """Base64 of gzip of the numbers' bytes, the lowest first."""
    packed = gzip.compress(np.ascontiguousarray(values.astype(kind)).tobytes(), compresslevel=6, mtime=0)
    return base64.b64encode(packed).decode("ascii")
