"""Recommends from a history with the model in this folder: Python and numpy are all it needs.

    python scorer.py ID ID ...      ten recommendations for a person who had these items, the latest last
    python scorer.py ID --title "A title that is none of these items"

In a program: Model(folder).recommend(["ID", "ID"], k=10, titles=["A new one"]), or .scores(positions) for all items.
"""

import csv
import hashlib
import json
import re
import sys
import unicodedata
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

KINDS = {"F32": "<f4", "F64": "<f8", "I64": "<i8", "I32": "<i4"}


def tensors(content: bytes) -> dict[str, Any]:
    """The arrays of a safetensors file: its header's length, the header as JSON, and raw bytes."""
    start = 8 + int.from_bytes(content[:8], "little")
    header = json.loads(content[8:start])
    header.pop("__metadata__", None)
    found = {}
    for name, about in header.items():
        raw = content[start + about["data_offsets"][0] : start + about["data_offsets"][1]]
        found[name] = np.frombuffer(raw, KINDS[about["dtype"]]).reshape(about["shape"])
    return found


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


class Model:
    """The model of a folder that `ownview export` wrote."""

    def __init__(self, folder: Path = Path(__file__).parent) -> None:
        self.about = json.loads((folder / "model.json").read_text(encoding="utf-8"))
        for name, expected in self.about["sha256"].items():
            if hashlib.sha256((folder / name).read_bytes()).hexdigest() != expected:
                raise ValueError(f"{folder / name}: is damaged: its SHA-256 is not the one in model.json")
        with (folder / "items.csv").open(encoding="utf-8", newline="") as lines:
            # Text that spreadsheets would take for a formula has an apostrophe in front.
            cells = [[re.sub(r"^'(?='*[=+\-@\t\r])", "", cell) for cell in row] for row in csv.reader(lines)]
        self.items = [(item, title) for item, title in cells[1:]]
        self.place = {item: place for place, (item, _) in enumerate(self.items)}
        self.arrays = tensors((folder / "model.safetensors").read_bytes())
        self.vectors = self.arrays.get("items", np.zeros((0, 0))).astype(float)
        self.squares = self.vectors.T @ self.vectors
        named = "text.json" in self.about["sha256"]
        self.words = Words(json.loads((folder / "text.json").read_text(encoding="utf-8"))) if named else None

    def scores(self, history: list[int], titles: list[str] | None = None) -> Any:
        """[m] for positions of items, oldest first; one that is repeated counts once, at its latest place.

        Titles that are none of the items come last, each as the sum of items that its words stand for.
        """
        once = list(dict.fromkeys(reversed(history)))[::-1]
        shares = [self._shares(one) for one in dict.fromkeys(titles or [])]
        form = self.about["form"]
        total = self.arrays["bias"].astype(float) if form["bias"] else np.zeros(len(self.items))
        if form["kind"] == "factors":
            return (
                total + self.vectors @ self._vector(form["fold_in"], total, once, shares) if once or shares else total
            )
        picks = [([item], np.ones(1)) for item in once] + [(list(range(len(one))), one) for one in shares]
        for number, term in enumerate(form["terms"]):
            latest = picks[-term["most"] :] if term["most"] else picks
            fading = np.exp(-np.arange(len(latest))[::-1] / (term["fades"] or np.inf))
            places = [place for pick, _ in latest for place in pick]
            counts = [one * share for one, (_, part) in zip(fading, latest, strict=True) for share in part]
            total = total + self._term(term["weights"], f"term{number}.", places, np.array(counts))
        return total

    def _shares(self, title: str) -> Any:
        if self.words is None or not self.words.known(title):
            raise KeyError(title)
        return self.words.shares(title)

    def _term(self, kind: str, name: str, latest: list[int], counts: Any) -> Any:
        part = {key.removeprefix(name): value for key, value in self.arrays.items() if key.startswith(name)}
        if kind == "whole":
            return counts @ part["weights"][latest].astype(float)
        if kind == "product":
            return (counts @ part["left"][latest].astype(float)) @ part["right"].astype(float)
        total = np.zeros(len(self.items))
        for item, count in zip(latest, counts, strict=True):
            here = slice(part["offsets"][item], part["offsets"][item + 1])
            total[part["columns"][here]] += count * part["values"][here]
        return total

    def _vector(self, how: dict[str, Any], bias: Any, once: list[int], shares: list[Any]) -> Any:
        items, squares = self.vectors, self.squares
        if shares:  # titles stand behind the items, with vectors and biases of their own
            known = np.array(shares)
            once = [*once, *range(len(items), len(items) + len(known))]
            bias = np.concatenate([bias, known @ bias[: known.shape[1]]])
            items = np.concatenate([items, known @ items[: known.shape[1]]])
            squares = items.T @ items
        mine, same = items[once], np.eye(items.shape[1])
        if how["kind"] == "ridge":
            weight = how["ridge"] * (len(once) + how["count"]) ** how["exponent"]
            left = how["seen"] * mine.T @ mine + how["every"] * squares + weight * same
            return np.linalg.solve(left, how["target"] * mine.sum(0))
        others = len(items) - len(once)
        seen, share = np.zeros(len(items)), how["negatives"] * len(once) / others if others else 0.0
        seen[once] = 1
        weight, user = np.where(seen > 0, 1.0, share), np.zeros(items.shape[1])
        bound = (items.T * weight) @ items / 4 + how["ridge"] * same
        for _ in range(how["steps"]):
            error = weight * (0.5 + 0.5 * np.tanh((items @ user + bias) / 2) - seen)
            user = user - np.linalg.solve(bound, error @ items + how["ridge"] * user)
        return user

    def recommend(
        self, history: list[str], k: int = 10, titles: list[str] | None = None
    ) -> list[tuple[str, str, float]]:
        """The k best items that are not in the history: id, title and score.

        Ids that are unknown raise KeyError, and so do titles of which no item has a word.
        """
        places = [self.place[item] for item in history]
        scores = self.scores(places, titles)
        scores[places] = -np.inf
        best = np.argsort(-scores, kind="stable")[:k]
        return [(*self.items[i], float(scores[i])) for i in best.tolist() if np.isfinite(scores[i])]


if __name__ == "__main__":
    model, given = Model(), sys.argv[1:]
    titles = [given[k + 1] for k, one in enumerate(given[:-1]) if one == "--title"]
    history = [one for k, one in enumerate(given) if "--title" not in given[max(k - 1, 0) : k + 1]]
    unknown = [item for item in history if item not in model.place]
    wordless = [one for one in titles if model.words is None or not model.words.known(one)]
    if unknown or wordless or not (history or titles):
        found = f"no item has the id {unknown[0]!r}" if unknown else "no ids"
        if wordless:
            found = f"no item has a word of {wordless[0]!r}"
        sys.stderr.write(f"scorer.py: {found}; expected ids of items.csv, the latest last\n")
        sys.exit(2)
    for item, title, score in model.recommend(history, titles=titles):
        plain = "".join(letter if letter.isprintable() else "?" for letter in f"{item}  {title}")
        sys.stdout.write(f"{score:9.4f}  {plain}\n")
