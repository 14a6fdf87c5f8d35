"""A small world whose items have names that would break a careless page, and finished runs on it."""

from __future__ import annotations

import random
from functools import cache
from pathlib import Path
from typing import Any

from ownview.runs.experiment import Experiment
from ownview.runs.run import Run, run

USERS, ITEMS = 24, 70
HOSTILE = (
    "</script><script>document.title='broken'</script>",
    "He said \"no\" & 'yes' <b>loudly</b>",
    "\x1b[31mred\x1b[0m | `code` *star*",
    "a,b;c#d%e?f \u2028 g",
    "Écoute <!-- Straße — 𝄞 Maker",
)
"""Ids, and hence titles."""

KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "whole": ("fedease", {}),
    "rows": ("markov", {}),
    "product": ("fednext", {"rank": 6, "iterations": 2, "length": 5}),
    "ridge": ("fedials", {"embedding_size": 5}),
    "logistic": ("fedmf", {"embedding_size": 4, "local_epochs": 2}),
}
"""One run for every way in which a form can be written."""


def write_world(path: Path) -> Path:
    """Everybody likes the items of a group, some others, and one with a hostile name."""
    chance = random.Random(7)
    names = [*HOSTILE, *(f"Title {item}" for item in range(len(HOSTILE), ITEMS))]
    rows = ["user\titem\ttimestamp"]
    for user in range(USERS):
        taste = [item for item in range(ITEMS) if item % 6 == user % 6]
        chosen = {*chance.sample(taste, 8), *chance.sample(range(ITEMS), 6), user % len(HOSTILE)}
        rows += [f"u{user}\t{names[item]}\t{chance.randint(1, 80_000)}" for item in sorted(chosen)]
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return path


@cache
def finished(folder: Path, method: str, **settings: Any) -> Run:
    """A run of two rounds, made once."""
    name = "-".join([method, *(f"{key}{value}" for key, value in settings.items())])
    world = folder / "world.tsv"
    if not world.is_file():
        write_world(world)
    experiment = Experiment(method=method, data=str(world), rounds=2, settings=settings)
    return run(experiment, out=folder / name)


def histories(count: int) -> list[list[int]]:
    """Random ones of 1 to 12 items, oldest first."""
    chance = random.Random(11)
    return [chance.sample(range(ITEMS), chance.randint(1, 12)) for _ in range(count)]
