"""Small data under a paper's name, so that its tables can be run within seconds."""

from __future__ import annotations

import gzip
import random
from pathlib import Path


def store_world(folder: Path, name: str, *, users: int = 16, items: int = 140, seed: int = 1) -> None:
    """A dataset in the stored form: every user has 12 to 20 interactions."""
    chance = random.Random(seed)
    text = "user,item,rating,timestamp\n"
    for user in range(users):
        for item in chance.sample(range(items), 12 + user % 9):
            text += f"u{user},i{item},3,{chance.randint(0, 5000)}\n"
    (folder / name).mkdir(parents=True)
    (folder / name / "interactions.csv.gz").write_bytes(gzip.compress(text.encode()))
