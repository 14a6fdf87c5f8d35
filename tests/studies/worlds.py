"""Small worlds with times, as files."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np

USERS, ITEMS = 24, 60


def write_random_world(path: Path, *, users: int, items: int) -> None:
    """Every user has 8 items that are drawn evenly, one a day."""
    draw = np.random.default_rng(0)
    rows = [
        f"{user},{item},{86_400 * day}"
        for user in range(users)
        for day, item in enumerate(draw.choice(items, size=8, replace=False))
    ]
    path.write_text("\n".join(["user,item,timestamp", *rows]) + "\n", encoding="utf-8")


def write_world(path: Path, *, other_test_items: bool = False) -> Path:
    """Three tastes; the held-out test items stand in the last rows and can be dealt out in another way."""
    chance = random.Random(5)
    earlier, latest = [], []
    for user in range(USERS):
        liked = chance.sample([i for i in range(ITEMS) if i % 3 == user % 3] * 2, 16)
        items = list(dict.fromkeys(liked))[:9]
        earlier += [f"u{user},i{item},4,{time}\n" for time, item in enumerate(items[:-1])]
        free = [i for i in range(ITEMS) if i not in items[:-1]]
        test = free[-1 - user % 5] if other_test_items else items[-1]
        latest.append(f"u{user},i{test},4,1000\n")
    first = [f"v{item // 10},i{item},4,{item}\n" for item in range(ITEMS)]  # items keep their places in either world
    path.write_text("user,item,rating,timestamp\n" + "".join(first + earlier + latest), encoding="utf-8")
    return path
