"""Recommends from a history with the model in this folder: Python and numpy are all it needs.

    python scorer.py ID ID ...      ten recommendations for a person who had these items, the latest last
    python scorer.py ID "A title"   of which no item has that id: by its words, where anything is known of the items

In a program: Model(folder).recommend(["ID", "ID"], k=10), or .scores(positions) for all items.
"""

import csv
import hashlib
import json
import re
import runpy
import sys
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
        self.folder = folder

    def with_titles(self, titles: list[str]) -> "Model":
        """The same with titles behind the items; KeyError for one of which no item has a word."""
        if "words.py" not in self.about["sha256"]:
            raise KeyError(titles[0])
        return runpy.run_path(str(self.folder / "words.py"))["widened"](self, self.folder, titles)  # type: ignore[no-any-return]

    def scores(self, history: list[int]) -> Any:
        """[m] for positions of items, oldest first; one that is repeated counts once, at its latest place."""
        once = list(dict.fromkeys(reversed(history)))[::-1]
        form = self.about["form"]
        total = self.arrays["bias"].astype(float) if form["bias"] else np.zeros(len(self.items))
        if form["kind"] == "factors":
            return total + self.vectors @ self._vector(form["fold_in"], total, once) if once else total
        for number, term in enumerate(form["terms"]):
            latest = once[-term["most"] :] if term["most"] else once
            counts = np.exp(-np.arange(len(latest))[::-1] / (term["fades"] or np.inf))
            total = total + self._term(term["weights"], f"term{number}.", latest, counts)
        return total

    def _term(self, kind: str, name: str, latest: list[int], counts: Any) -> Any:
        part = {key.removeprefix(name): value for key, value in self.arrays.items() if key.startswith(name)}
        if kind == "whole":
            # In double precision, without a copy of the rows in it: a quarter less time than a product of one.
            return np.einsum("i,ij->j", counts, part["weights"][latest])
        if kind == "product":
            return (counts @ part["left"][latest].astype(float)) @ part["right"].astype(float)
        total = np.zeros(len(self.items))
        for item, count in zip(latest, counts, strict=True):
            here = slice(part["offsets"][item], part["offsets"][item + 1])
            total[part["columns"][here]] += count * part["values"][here]
        return total

    def _vector(self, how: dict[str, Any], bias: Any, once: list[int]) -> Any:
        items, mine, same = self.vectors, self.vectors[once], np.eye(self.vectors.shape[1])
        if how["kind"] == "ridge":
            weight = how["ridge"] * (len(once) + how["count"]) ** how["exponent"]
            left = how["seen"] * mine.T @ mine + how["every"] * self.squares + weight * same
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

    def recommend(self, history: list[str], k: int = 10) -> list[tuple[str, str, float]]:
        """The k best items that are not in the history: id, title and score. Ids that are unknown raise KeyError."""
        places = [self.place[item] for item in history]
        scores = self.scores(places)
        scores[places] = -np.inf
        best = np.argsort(-scores, kind="stable")[:k]
        return [(*self.items[i], float(scores[i])) for i in best.tolist() if np.isfinite(scores[i])]


if __name__ == "__main__":
    model, history = Model(), sys.argv[1:]
    unknown = [item for item in history if item not in model.place]
    try:
        model, unknown = model.with_titles(unknown) if unknown else model, []
    except KeyError as error:
        unknown = [error.args[0]]
    if unknown or not history:
        found = f"no item has the id {unknown[0]!r}" if unknown else "no ids"
        sys.stderr.write(f"scorer.py: {found}; expected ids of items.csv, the latest last\n")
        sys.exit(2)
    for item, title, score in model.recommend(history):
        plain = "".join(letter if letter.isprintable() else "?" for letter in f"{item}  {title}")
        sys.stdout.write(f"{score:9.4f}  {plain}\n")
