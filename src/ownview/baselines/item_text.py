"""Items as sparse vectors of what their text says, and how alike two items are by it.

A term is a word, a pair of neighbouring words, a whole entry of a list (a maker, a category, a tag) or a decade. Item i
has the vector f_i, whose entry of term t is weight(t) log(m / m_t), m_t the items of m that have t, over its norm.
Terms of one item alone say nothing of two items and are left out. The kernel K = F F^T is the cosine of two items.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from ownview.data.column_names import ALIASES
from ownview.data.columns import bare_name
from ownview.data.item_table import ItemTable
from ownview.seam.portable import SparseRows

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)?")
_YEAR = re.compile(r"(1[0-9]|20)\d\d(?:\.0)?")
_SEPARATORS = re.compile(r"\s*[|;,/]\s*")
_ENTRY_WEIGHT = 2.0
"""Of a whole maker or category: it says more of taste than one word of a title."""
_DECADE_WEIGHT = 0.5
_LONGEST_ENTRY = 40
"""Characters of an entry of a list; longer ones are prose."""
_ENTRIES_SHARED = 0.3
"""Share of a column's entries that other items have too, beyond which the column is a list and not prose."""
_ROWS = 256
"""Rows of the kernel that are made together."""


def term_vectors(table: ItemTable) -> csr_matrix:
    """[m, terms] the vectors f, of length 1; 0 for an item that nothing is said of."""
    from scipy import sparse  # noqa: PLC0415 - slow to import

    vocabulary: dict[str, int] = {}
    rows: list[int] = []
    columns: list[int] = []
    weights: list[float] = []
    terms_of = [_terms_of_column(name, values) for name, values in table.columns.items()]
    items = len(next(iter(table.columns.values()), ()))
    for item in range(items):
        found: dict[str, float] = {}
        for column in terms_of:
            for term, weight in column[item]:
                found[term] = max(weight, found.get(term, 0.0))
        rows += [item] * len(found)
        columns += [vocabulary.setdefault(term, len(vocabulary)) for term in found]
        weights += found.values()
    count = np.bincount(np.asarray(columns, dtype=np.int64), minlength=len(vocabulary))
    rare = np.log(items / np.maximum(count, 1)) * (count > 1)
    matrix = sparse.csr_matrix((weights, (rows, columns)), shape=(items, len(vocabulary))) @ sparse.diags(rare)
    length = np.sqrt(np.asarray(matrix.multiply(matrix).sum(1)).ravel())
    return sparse.csr_matrix(sparse.diags(1 / np.where(length > 0, length, 1.0)) @ matrix)


def nearest_by_text(vectors: csr_matrix, neighbours: int) -> SparseRows:
    """Every item's `neighbours` largest values of the kernel, itself left out; ties go to earlier items."""
    offsets, columns, values = [0], [], []
    for start in range(0, vectors.shape[0], _ROWS):
        block = (vectors[start : start + _ROWS] @ vectors.T).tocsr()
        block.sort_indices()
        for row in range(block.shape[0]):
            near, like = _row(block, row, start + row, neighbours)
            columns.append(near)
            values.append(like)
            offsets.append(offsets[-1] + len(near))
    joined = (np.concatenate(parts) if parts else np.zeros(0) for parts in (columns, values))
    places, likeness = joined
    return SparseRows(
        torch.tensor(offsets, dtype=torch.int64),
        torch.from_numpy(places.astype(np.int64)),
        torch.from_numpy(likeness.astype(np.float32)),
    )


def _row(block: Any, row: int, item: int, neighbours: int) -> tuple[Any, Any]:
    cells = slice(block.indptr[row], block.indptr[row + 1])
    near, like = block.indices[cells], block.data[cells]
    other = (near != item) & (like > 0)
    near, like = near[other], like[other]
    if len(near) > neighbours:
        kept = np.sort(np.argsort(-like, kind="stable")[:neighbours])
        near, like = near[kept], like[kept]
    return near, like


def _terms_of_column(name: str, values: Sequence[str]) -> list[list[tuple[str, float]]]:
    """By item, the terms of one column and their weights; its values say its kind, and titles are prose."""
    filled = [value for value in values if value]
    if filled and all(_YEAR.fullmatch(value) for value in filled):
        return [[(f"decade:{value[:3]}", _DECADE_WEIGHT)] if value else [] for value in values]
    if filled and all(_is_number(value) for value in filled):
        return [[] for _ in values]  # a price or a number of pages: no two items share it as a word
    if bare_name(name) not in ALIASES["title"] and _is_list(filled):
        return [[(f"{name}:{entry}", _ENTRY_WEIGHT) for entry in dict.fromkeys(_entries(value))] for value in values]
    return [[(term, 1.0) for term in dict.fromkeys(_words(value))] for value in values]


def _is_list(values: Sequence[str]) -> bool:
    """Whether values are short entries that several items share, as makers and categories are."""
    entries = Counter(entry for value in values for entry in dict.fromkeys(_entries(value)))
    total = sum(entries.values())
    if not total or max(map(len, entries)) > _LONGEST_ENTRY:
        return False
    return sum(count for count in entries.values() if count > 1) > _ENTRIES_SHARED * total


def _entries(value: str) -> Iterator[str]:
    return (part.casefold() for part in _SEPARATORS.split(value.strip().strip("[]")) if part)


def _words(value: str) -> Iterator[str]:
    """Words of at least two characters, and pairs of neighbouring ones."""
    words = [word for word in _WORD.findall(value.casefold()) if len(word) > 1]
    yield from words
    yield from (f"{first} {second}" for first, second in pairwise(words))


def _is_number(value: str) -> bool:
    try:
        return math.isfinite(float(value))
    except ValueError:
        return False
