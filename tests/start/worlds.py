"""A shop of two tastes, as a file."""

from __future__ import annotations

import csv
import gzip
from collections.abc import Callable
from pathlib import Path

import numpy as np


def write_shop(path: Path, title: Callable[[int], str]) -> None:
    """40 people with 7 items each, a day apart; even ones take of the first 12 items, odd ones of the other 12."""
    draw = np.random.default_rng(3)
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["user", "item", "title", "timestamp"])
        for user in range(40):
            mine = draw.permutation(12)[:7] + 12 * (user % 2)
            for place, item in enumerate(mine.tolist()):
                rows.writerow([f"u{user}", item, title(item), 1_700_000_000 + 90_000 * place + user])


def bytes_of(path: Path) -> bytes:
    """What a file holds, packed or not; nothing of a folder."""
    content = path.read_bytes() if path.is_file() else b""
    return gzip.decompress(content) if path.suffix == ".gz" else content
