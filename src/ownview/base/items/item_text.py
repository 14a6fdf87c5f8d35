"""Items as sparse vectors of what their text says, and how alike two items are by it.

A term is a word, a pair of neighbouring words, a whole entry of a list (a maker, a category), a tag or a decade. Item i
has the vector f_i, whose entry of term t is weight(t) log(m / m_t), m_t the items of m that have t, over its norm.
Terms of one item alone say nothing of two items and are left out. The kernel K = F F^T is the cosine of two items.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from ownview.base.items.column_names import ALIASES, bare_name
from ownview.base.items.item_table import ItemTable

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
_LONG_ENTRIES = 0.02
"""Share of longer entries that a list may have."""
_JOINED = 0.02
"""Share of a column's words that are joined by _ (systems_biology), beyond which they are tags: prose has none."""
_ENTRIES_SHARED = 0.3
"""Share of a column's entries that other items have too, beyond which the column is a list and not prose."""


class Terms(NamedTuple):
    """What a table says, by item and term.

    names:   [terms] of the terms
    weights: [terms] weight(t) log(m / m_t); 0 for a term of one item
    present: [m, terms] 1 where the item has the term, as compressed rows
    """

    names: tuple[str, ...]
    weights: npt.NDArray[np.float64]
    present: csr_matrix


@lru_cache(maxsize=4)
def item_terms(table: ItemTable) -> Terms:
    """The terms of all items, in order of first appearance."""
    from scipy import sparse  # noqa: PLC0415 - slow to import

    place: dict[str, int] = {}
    weight_of: list[float] = []  # a term's name says of what kind it is, so that it has one weight in all columns
    rows: list[int] = []
    columns: list[int] = []
    by_column = [_terms_of_column(name, values) for name, values in table.columns.items()]
    items = len(next(iter(table.columns.values()), ()))
    for item in range(items):
        found = {term: weight for column in by_column for term, weight in column[item]}
        weight_of += [weight for term, weight in found.items() if term not in place]
        columns += [place.setdefault(term, len(place)) for term in found]
        rows += [item] * len(found)
    count = np.bincount(np.asarray(columns, dtype=np.int64), minlength=len(place))
    rare = np.log(items / np.maximum(count, 1)) * (count > 1)
    present = sparse.csr_matrix((np.ones(len(rows)), (rows, columns)), shape=(items, len(place)))
    return Terms(tuple(place), np.array(weight_of) * rare, present)


@lru_cache(maxsize=4)
def term_vectors(table: ItemTable) -> csr_matrix:
    """[m, terms] the vectors f, of length 1; 0 for an item that nothing is said of."""
    from scipy import sparse  # noqa: PLC0415 - slow to import

    terms = item_terms(table)
    matrix = terms.present @ sparse.diags(terms.weights)
    length = np.sqrt(np.asarray(matrix.multiply(matrix).sum(1)).ravel())
    return sparse.csr_matrix(sparse.diags(1 / np.where(length > 0, length, 1.0)) @ matrix)


def feature_matrix(table: ItemTable, most: int) -> npt.NDArray[np.float32]:
    """[m, d] the `most` terms that most items have, ties by name of the column, and every column of numbers.

    Numbers are standardised over the items that have one; 0 where an item has none.
    """
    vectors = term_vectors(table)
    count = np.asarray((vectors > 0).sum(0)).ravel()
    order = np.argsort(-count, kind="stable")
    chosen = np.sort(order[: min(most, int((count > 0).sum()))])
    parts = [vectors[:, chosen].toarray()]
    for values in table.columns.values():
        filled = [value for value in values if value]
        if filled and all(map(_is_number, filled)) and not all(_YEAR.fullmatch(value) for value in filled):
            numbers = np.array([float(value) if value else np.nan for value in values])
            spread = np.nanstd(numbers)
            parts.append(np.nan_to_num((numbers - np.nanmean(numbers)) / (spread or 1.0))[:, None])
    return np.ascontiguousarray(np.concatenate(parts, axis=1)[:, : max(most, 1)], dtype=np.float32)


def _terms_of_column(name: str, values: Sequence[str]) -> list[list[tuple[str, float]]]:
    """By item, the terms of one column and their weights; its values say its kind, and titles are prose."""
    filled = [value for value in values if value]
    if filled and all(_YEAR.fullmatch(value) for value in filled):
        return [[(f"decade:{value[:3]}", _DECADE_WEIGHT)] if value else [] for value in values]
    if filled and all(_is_number(value) for value in filled):
        return [[] for _ in values]  # a price or a number of pages: no two items share it as a word
    if bare_name(name) not in ALIASES["title"] and _is_list(filled):
        return [[(f"{name}:{entry}", _ENTRY_WEIGHT) for entry in dict.fromkeys(entries_of(value))] for value in values]
    words = _tags if _are_tags(filled) else _words
    return [[(term, 1.0) for term in dict.fromkeys(words(value))] for value in values]


def _are_tags(values: Sequence[str]) -> bool:
    """Whether values are tags with spaces between them."""
    words = [word for value in values for word in value.split()]
    return sum("_" in word.strip("_") for word in words) > _JOINED * len(words)


def _tags(value: str) -> Iterator[str]:
    """Whole tags and the words in them; the order of tags says nothing, so there are no pairs."""
    for tag in value.casefold().split():
        yield f"tag:{tag}"
        yield from (word for word in _WORD.findall(tag) if len(word) > 1)


def _is_list(values: Sequence[str]) -> bool:
    """Whether values are short entries that several items share, as makers and categories are."""
    entries = Counter(entry for value in values for entry in dict.fromkeys(entries_of(value)))
    total = sum(entries.values())
    long = sum(count for entry, count in entries.items() if len(entry) > _LONGEST_ENTRY)
    if not total or long > _LONG_ENTRIES * total:
        return False
    return sum(count for count in entries.values() if count > 1) > _ENTRIES_SHARED * total


def entries_of(value: str) -> Iterator[str]:
    """Entries of a list that is written as text."""
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
