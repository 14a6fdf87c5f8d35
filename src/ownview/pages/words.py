"""Titles that are none of a model's items, by their words: Python and numpy are all it needs."""

import copy
import json
import re
import unicodedata
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np


def plain(text: str) -> str:
    """Words in small letters without accents, one space between them."""
    bare = "".join(one for one in unicodedata.normalize("NFD", text) if not unicodedata.category(one).startswith("M"))
    return re.sub(r"[\W_]+", " ", bare.lower()).strip()


class Words:
    """What the text of w items says, and so of which of them a title is the sum that is none of them."""

    def __init__(self, text: dict[str, Any]) -> None:
        self.names, self.rows, self.ridge = text["terms"], text["rows"], text["ridge"]
        self.place = {name: place for place, name in enumerate(self.names)}
        self.weights = np.array(text["weights"])
        self.item = np.repeat(np.arange(len(self.rows)), [len(row) for row in self.rows])
        self.term = np.array([term for row in self.rows for term in row], dtype=int)
        length = np.sqrt(np.bincount(self.item, self.weights[self.term] ** 2, len(self.rows)))
        self.value = self.weights[self.term] / np.where(length > 0, length, 1)[self.item]

    def known(self, title: str) -> list[int]:
        """Terms of a title: words, pairs of them, and whole makers and categories that stand in it."""
        words = re.findall(r"[^\W_]+(?:'[^\W_]+)?", title.lower().replace("\u00df", "ss"))
        words = [word for word in words if len(word) > 1]
        terms = [*words, *(f"{one} {two}" for one, two in pairwise(words))]
        found = [self.place[term] for term in terms if term in self.place]
        for place, name in enumerate(self.names):
            kind, of_a_list, entry = name.partition(":")
            if of_a_list and kind != "decade" and plain(entry) and f" {plain(entry)} " in f" {plain(title)} ":
                found.append(place)
        return list(dict.fromkeys(found))

    def shares(self, title: str) -> Any:
        """[w] of the items, 1 in all: (F F^T + ridge I)^-1 F f, by conjugate gradients, and the rest to all alike."""
        known, vector = self.known(title), np.zeros(len(self.names))
        vector[known] = self.weights[known] / (np.sqrt((self.weights[known] ** 2).sum()) or 1)
        right = self._likeness(vector)
        found, rest, way = np.zeros(len(right)), right, right
        left = enough = rest @ rest
        for _ in range(len(right)):
            if left <= 1e-24 * enough:
                break
            spread = np.bincount(self.term, self.value * way[self.item], len(self.names))
            along = self._likeness(spread) + self.ridge * way
            far = left / (way @ along)
            found, rest = found + far * way, rest - far * along
            left, before = rest @ rest, left
            way = rest + left / before * way
        return found + (1 - found.sum()) / len(found)

    def _likeness(self, vector: Any) -> Any:
        return np.bincount(self.item, self.value * vector[self.term], len(self.rows))


def widened(model: Any, folder: Path, titles: list[str]) -> Any:
    """A `scorer.Model` with titles behind its items: what they say is the sum of the items that they stand for.

    Raises KeyError for a title of which no item has a word.
    """
    words, wide, count, m = (
        Words(json.loads((folder / "text.json").read_text("utf-8"))),
        copy.copy(model),
        len(titles),
        len(model.items),
    )
    for one in titles:
        if not words.known(one):
            raise KeyError(one)
    shares = np.array([words.shares(one) for one in titles])
    wide.items = [*model.items, *((one, one) for one in titles)]
    wide.place = {item: place for place, (item, _) in enumerate(wide.items)}
    wide.arrays = dict(model.arrays)
    for name, values in model.arrays.items():
        if name.endswith((".weights", ".left")) or name == "items":
            wide.arrays[name] = np.concatenate([values, shares @ values[: shares.shape[1]]])
        if name.endswith((".weights", ".right")):
            wide.arrays[name] = np.pad(wide.arrays[name], ((0, 0), (0, count)))
        if name == "bias":
            own = shares @ values[: shares.shape[1]] if "items" in model.arrays else np.zeros(count)
            wide.arrays[name] = np.concatenate([values, own])
        if name.endswith(".offsets"):
            columns, numbers = (model.arrays[name.replace("offsets", one)] for one in ("columns", "values"))
            rows = np.zeros((count, m))
            for item in range(shares.shape[1]):
                here = slice(values[item], values[item + 1])
                rows[:, columns[here]] += shares[:, item : item + 1] * numbers[here]
            wide.arrays[name] = np.concatenate([values, values[-1] + m * np.arange(1, count + 1)])
            wide.arrays[name.replace("offsets", "columns")] = np.concatenate([columns, np.tile(np.arange(m), count)])
            wide.arrays[name.replace("offsets", "values")] = np.concatenate([numbers, rows.ravel()])
    wide.vectors = wide.arrays.get("items", np.zeros((0, 0))).astype(float)
    wide.squares = wide.vectors.T @ wide.vectors
    return wide
