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
from dataclasses import dataclass, replace
from functools import cached_property
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

_SAMPLED = 400
"""Rows, about, by which the size of all is reckoned: packing takes most of what a page takes."""

_FILLED, _SURELY = 0.98, 1.1
"""Of the room: what is reckoned to take so much is tried, and all weights where these take no more than that."""

_ENOUGH = 0.97
"""Of the room: who has filled so much of it stops searching."""

_CLOSE = 0.99
"""Of what is looked for: a share that is reckoned to take so much of it ends the search."""

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
    size = 0.0
    for fine in (True, False):
        size = thin.reckoned(1.0, fine=fine)
        if size <= _SURELY * room:
            whole = thin.at(1.0, fine=fine)
            size = _size(whole.plain)
            if size <= room:
                return whole
    share, best = _greatest(thin, _FILLED * room, size) if room > 0 else 0.0, None
    for _ in range(_ATTEMPTS if share else 0):
        tried = thin.at(share)
        size = _size(tried.plain)
        if size <= room and (best is None or tried.kept > best.kept):
            best = tried
        if _ENOUGH * room < size <= room:
            break
        share = min(share * (_FILLED * room / size) ** _POWER, 1.0)
    if best is None:
        best = thin.at(0.0)
        _require(_size(best.plain), room)
    return best


def _greatest(thin: _Thinning, room: float, size: float) -> float:
    """The greatest share of weights that is reckoned to fit, or nearly; 0 where none does. `size` is that of all."""
    low, high, power = 0.0, 1.0, _POWER
    for _ in range(_ATTEMPTS):
        guess = high * (room / size) ** power
        middle = guess if low < guess < high else (low + high) / 2
        found = thin.reckoned(middle)
        if found > room:
            high, size = middle, found
        else:
            low, fits = middle, found
            if fits > _CLOSE * room:
                break
        if low:  # between what fits and what does not, the power is known better
            power = float(np.log(high / low) / np.log(size / fits))
    return low


def _require(size: int, room: int) -> None:
    if size > room:
        raise SettingError(
            f"the model takes at least {size / 1e6:.3g} MB in a page, and there is room for {max(room, 0) / 1e6:.3g} "
            "MB; raise --megabytes, or take ownview export"
        )


def _size(plain: dict[str, Any]) -> int:
    return _length(plain["arrays"])


def _length(texts: Texts) -> int:
    return sum(len(text) for one in texts.values() for text in one.values())


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
            None if isinstance(term.weights, LowRank) else _Sparse.of(term.weights, _MOST * max(room, 1))
            for term in form.terms
        ]

    def reckoned(self, share: float, *, fine: bool = False) -> float:
        """Bytes of text that `at` makes, about: of sparse terms some rows are packed."""
        found = float(self._fixed)
        for one in self.terms:
            if one is not None:
                some, times = one.some
                found += times * _length({"rows": _rounded_rows(some.strongest(share), fine=fine)[1]})
        return found

    @cached_property
    def _fixed(self) -> int:
        """Bytes of what no share makes smaller."""
        parts = [term.weights for term in self.form.terms if isinstance(term.weights, LowRank)]
        return _length(_bias(self.form)) + sum(_length({"part": _steps(part)[1]}) for both in parts for part in both)

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


@dataclass(frozen=True, eq=False)
class _Sparse:
    """Weights from items to items, as compressed rows, and how strong they are.

    weights: [r, m]
    needed:  [r] what is at least so strong is among the `FEWEST` strongest of its row
    falling: of all rows, how strong each weight is, falling
    total:   how many of all rows are not 0
    """

    weights: Any
    needed: Array
    falling: Array
    total: int

    @classmethod
    def of(cls, given: Tensor | SparseRows, most: int) -> _Sparse:
        weights = _compressed(given, most)
        strong, ends = np.abs(weights.data), weights.indptr
        needed = np.array([_nth(strong[ends[row] : ends[row + 1]], FEWEST) for row in range(len(ends) - 1)])
        total = int(torch.count_nonzero(given.values if isinstance(given, SparseRows) else given))
        return cls(weights, needed, np.sort(strong)[::-1], total)

    @cached_property
    def some(self) -> tuple[_Sparse, float]:
        """Every so manyth row, and how many times as many there are of all."""
        step = max(1, len(self.needed) // _SAMPLED)
        needed = self.needed[::step]
        return replace(self, weights=self.weights[::step], needed=needed), len(self.needed) / max(len(needed), 1)

    def strongest(self, share: float) -> Any:
        """Compressed rows: so large a share of the weights of all rows, those that are the strongest among all."""
        count = round(share * len(self.falling))
        least = self.falling[count - 1] if count else np.inf
        strong, kept = np.abs(self.weights.data), self.weights.copy()
        needed = np.repeat(self.needed, np.diff(kept.indptr))
        kept.data = np.where((strong >= least) | (strong >= needed), kept.data, 0)
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
    wide = "<u2" if weights.shape[1] <= 2**16 else "<u4"
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
