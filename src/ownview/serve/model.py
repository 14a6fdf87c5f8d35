"""A model as a server holds it: read once from its folder, then only looked at, by as many requests as come."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from ownview.base.errors import DataError
from ownview.pages.scorer import Model, tensors
from ownview.serve.titles import TitleSearch

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

FORMAT = 1
"""Of the folder, as `pages.export` writes it."""

_GROUPS = 3
"""Of items by popularity; each has the same share of all interactions."""

_PARTS = re.compile(r"\s*[|;,]\s*")
"""Between several values in one cell of a column about items."""


class ServedModel(Model):
    """The portable form of a model with m items, and what the server knows besides.

    Args:
        folder: as `pages.export.write_portable` leaves it, and as `serve.served_run` adds to it.

    Raises:
        DataError: the folder is damaged or of another format.
    """

    def __init__(self, folder: Path) -> None:
        try:
            super().__init__(folder)
            self._complete(folder)
        except (ArithmeticError, AttributeError, LookupError, OSError, TypeError, ValueError) as error:
            raise DataError(f"{folder}: cannot be served: {type(error).__name__}: {error}") from error

    def _complete(self, folder: Path) -> None:
        extra = folder / "serving.json"
        about = json.loads(extra.read_text(encoding="utf-8")) if extra.is_file() else {"columns": {}, "users": []}
        arrays = tensors((folder / "serving.safetensors").read_bytes()) if extra.is_file() else {}
        if self.about.get("format") != FORMAT:
            raise DataError(f"{folder}: has format {self.about.get('format')!r}; expected {FORMAT}")
        self.form: dict[str, Any] = self.about["form"]
        self.size = len(self.items)
        self.parts = [
            {key.partition(".")[2]: value for key, value in self.arrays.items() if key.startswith(f"term{number}.")}
            for number in range(len(self.form.get("terms", ())))
        ]
        digests = json.dumps(self.about["sha256"], sort_keys=True).encode()
        self.version = hashlib.sha256(digests).hexdigest()[:12]
        self.columns = {name: [frozenset(_values(cell)) for cell in cells] for name, cells in about["columns"].items()}
        self.popularity: npt.NDArray[np.int64] | None = arrays.get("popularity")
        self.group = None if self.popularity is None else popularity_groups(self.popularity)
        self._user = {user: place for place, user in enumerate(about["users"])}
        self._known = (arrays.get("offsets"), arrays.get("known"))
        weight = self.popularity if self.popularity is not None else np.zeros(self.size)
        self.titles = TitleSearch([title for _, title in self.items], np.argsort(-weight, kind="stable").tolist())
        self._sparse: dict[int, Any] = {
            number: sparse.csr_matrix((part["values"], part["columns"], part["offsets"]), shape=(self.size, self.size))
            for number, part in enumerate(self.parts)
            if "offsets" in part
        }
        if self.size and self.scores([0]).shape != (self.size,):
            raise ValueError("its arrays are not of so many items as items.csv has")

    @property
    def users(self) -> int:
        """How many are known by id."""
        return len(self._user)

    def history_of(self, user: str) -> list[int] | None:
        """What a known user had, positions oldest first; None for an id that is not known."""
        place = self._user.get(user)
        if place is None:
            return None
        offsets, known = self._known
        assert offsets is not None
        assert known is not None
        found: list[int] = known[offsets[place] : offsets[place + 1]].tolist()
        return found

    def found(self, ids: Sequence[str]) -> tuple[list[int], list[str]]:
        """Positions of the ids that are known, in their order, and the ids that are not."""
        places = list(map(self.place.get, ids))
        if None not in places:
            return places, []  # type: ignore[return-value]  # the usual case
        unknown = [one for one, place in zip(ids, places, strict=True) if place is None]
        return [place for place in places if place is not None], unknown

    def having(self, column: str, values: Sequence[str]) -> Mask:
        """[m] items of which a column says one of the values; a cell may hold several, parted by | ; or a comma."""
        wanted = {value.casefold() for value in values}
        return np.fromiter((not wanted.isdisjoint(cell) for cell in self.columns[column]), bool, self.size)

    def reasons(self, once: Sequence[int], wanted: Sequence[int]) -> Floats:
        """[w, h] how much each item of a history speaks for each wanted one.

        In a sum it is what the item adds to the score; between vectors, the cosine of the two.

        Args:
            once: [h] the history, oldest first, every item once.
            wanted: [w] items.
        """
        if self.form["kind"] == "factors":
            return _cosines(self.vectors[list(wanted)], self.vectors[list(once)])
        total = np.zeros((len(wanted), len(once)))
        for number, term in enumerate(self.form["terms"]):
            size = min(len(once), term["most"] or len(once))
            counts = np.exp(-np.arange(size)[::-1] / (term["fades"] or np.inf))
            latest = list(once)[len(once) - size :]
            total[:, len(once) - size :] += (counts[:, None] * self._weights(number, latest, list(wanted))).T
        return total

    def likeness(self, items: Sequence[int]) -> Floats:
        """[c, c] how alike items are, from 0 to 1: 1 for the two of them that are most alike.

        Between vectors it is the cosine; else the greater of the weights from one item to the other. What is negative
        is 0. The diagonal has no meaning.
        """
        if self.form["kind"] == "factors":
            vectors = self.vectors[list(items)]
            found = _cosines(vectors, vectors)
        else:
            found = np.zeros((len(items), len(items)))
            for number in range(len(self.parts)):
                found += self._weights(number, list(items), list(items))
            found = np.maximum(found, found.T)
        found = np.maximum(found, 0.0)
        np.fill_diagonal(found, 0.0)
        greatest = float(found.max(initial=0.0))
        return found / greatest if greatest > 0 else found

    def _weights(self, number: int, rows: list[int], columns: list[int]) -> Floats:
        """[r, c] of a term, in float64."""
        part = self.parts[number]
        if number in self._sparse:
            found = self._sparse[number][rows][:, columns].toarray()
        elif "left" in part:
            found = part["left"][rows].astype(float) @ part["right"][:, columns].astype(float)
        else:
            found = part["weights"][np.ix_(rows, columns)]
        return np.asarray(found, dtype=np.float64)


def popularity_groups(popularity: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """[m] 0 for the most popular items, which together have a third of all interactions, then 1, then 2."""
    order = np.argsort(-popularity, kind="stable")
    total = max(int(popularity.sum()), 1)
    before = np.cumsum(popularity[order]) - popularity[order]
    group = np.empty(len(popularity), dtype=np.int64)
    group[order] = np.minimum(_GROUPS * before // total, _GROUPS - 1)
    return group


def once_each(history: Sequence[int]) -> list[int]:
    """The different items of a history, oldest first, each at its latest place."""
    return list(dict.fromkeys(reversed(history)))[::-1]


def _values(cell: str) -> list[str]:
    folded = cell.casefold().strip()
    return [folded, *_PARTS.split(folded)] if folded else []


def _cosines(left: Floats, right: Floats) -> Floats:
    def unit(rows: Floats) -> Floats:
        length = np.linalg.norm(rows, axis=1, keepdims=True)
        return rows / np.where(length > 0, length, 1.0)

    product: Floats = unit(left) @ unit(right).T
    return product
