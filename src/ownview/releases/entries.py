"""A line of the ledger: a release under a budget, or a total that was set; read against limits."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ownview.base.json_shapes import Maybe, misfit
from ownview.base.json_text import parse_json
from ownview.privacy.accountant import Sampling

_MECHANISM = {
    "mode": str, "epsilon": float, "delta": float, "noise": [[float]], "rate": float, "cohort": int, "population": int,
}  # fmt: skip
_LINE = {
    "id": str, "when": str, "data": str, "model": str, "folder": str, "people": str, "number": int,
    "total": float, "mechanism": Maybe(_MECHANISM), "items": Maybe(str),
}  # fmt: skip
_WORDS = ("id", "when", "data", "model", "folder", "people", "number", "total")
_ROUNDS = 1_000_000
"""Of one release at most."""


@dataclass(frozen=True)
class Mechanism:
    """What a release adds noise to and how much: all that its epsilon follows from.

    Args:
        mode: who adds the noise.
        epsilon: that is claimed for the release alone.
        delta: likewise.
        noise: z of its rounds that count for one user.
        sampling: what is hidden by who takes part.
    """

    mode: str
    epsilon: float
    delta: float
    noise: tuple[float, ...]
    sampling: Sampling

    def plain(self) -> dict[str, Any]:
        """JSON values, rounds of one z together."""
        return {
            "mode": self.mode,
            "epsilon": self.epsilon,
            "delta": self.delta,
            "noise": [[z, times] for z, times in Counter(self.noise).items()],
            "rate": self.sampling.rate,
            "cohort": self.sampling.cohort,
            "population": self.sampling.population,
        }


@dataclass(frozen=True)
class Entry:
    """A line.

    Args:
        id: of a release, the same for everything that is published of one model; empty for a total.
        when: UTC, as in 2026-01-31T12:00:00Z.
        data: what the data is called.
        model: what the model is called; empty for a total.
        folder: of the model.
        people: SHA-256 of the file with the hashes of those who took part.
        number: how many they are.
        total: epsilon that all releases of each of these people together may reach, from this line on.
        mechanism: None for a total.
        items: SHA-256 of the file with the hashes of the data's items; empty in lines of before, which are of any shop.
    """

    id: str
    when: str
    data: str
    model: str
    folder: str
    people: str
    number: int
    total: float
    mechanism: Mechanism | None
    items: str = ""

    @property
    def title(self) -> str:
        """For a person: which release it was."""
        return f"{self.model} on {self.data} ({self.when[:10]}, {self.folder})"

    def plain(self) -> dict[str, Any]:
        """JSON values."""
        mechanism = {} if self.mechanism is None else {"mechanism": self.mechanism.plain()}
        items = {"items": self.items} if self.items else {}
        return {word: getattr(self, word) for word in _WORDS} | items | mechanism

    def line(self) -> str:
        """Line of the file."""
        return json.dumps(self.plain(), allow_nan=False)


def entry_of(line: str) -> Entry:
    """Read a line.

    Raises:
        ValueError: it is damaged; says what is wrong.
    """
    values = parse_json(line)
    if wrong := misfit(values, _LINE):
        raise ValueError(wrong)
    if not values["total"] > 0:
        raise ValueError(f"total {values['total']}; expected a number above 0")
    items = values.get("items", "")
    for name, digest in (("people", values["people"]), *([("items", items)] if items else [])):
        if len(digest) != 64 or not set(digest) <= set("0123456789abcdef"):
            raise ValueError(f"{name} is no SHA-256")
    fields = values.get("mechanism")
    if (fields is None) != (not values["id"]):
        raise ValueError("a release has an id and a mechanism, a total has neither")
    mechanism = None if fields is None else _mechanism(fields)
    return Entry(**{word: values[word] for word in _WORDS}, mechanism=mechanism, items=items)


def _mechanism(fields: Mapping[str, Any]) -> Mechanism:
    pairs = [tuple(pair) for pair in fields["noise"]]
    if not pairs or any(len(pair) != 2 or pair[0] <= 0 or pair[1] < 1 or pair[1] != int(pair[1]) for pair in pairs):
        raise ValueError("noise: expected pairs of a number above 0 and a number of rounds")
    if sum(times for _, times in pairs) > _ROUNDS:
        raise ValueError(f"noise of more than {_ROUNDS} rounds")
    epsilon, delta, rate = (float(fields[name]) for name in ("epsilon", "delta", "rate"))
    if not (epsilon > 0 and 0 < delta < 1 and 0 < rate <= 1 and 0 <= fields["cohort"] <= fields["population"]):
        raise ValueError("epsilon, delta or sampling out of range")
    if not all(math.isfinite(one) for one in (epsilon, delta, rate)):
        raise ValueError("epsilon, delta or sampling is no finite number")
    noise = tuple(float(z) for z, times in pairs for _ in range(int(times)))
    return Mechanism(fields["mode"], epsilon, delta, noise, Sampling(rate, fields["cohort"], fields["population"]))
