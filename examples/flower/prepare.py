"""Homes of two places with 30 readers of goodbooks each, and the agreement of a federation of them.

python examples/flower/prepare.py FOLDER [METHOD]
"""

from __future__ import annotations

import sys
from pathlib import Path

import ownview as ov
from ownview.deploy.agreement import Agreement
from ownview.runs.experiment import Experiment

PLACES, READERS = 2, 30


def prepare(folder: Path, method: str = "pfedrec", places: int = PLACES, readers: int = READERS) -> Agreement:
    """Write FOLDER/placeK/ratings.csv and FOLDER/agreement."""
    data = ov.load("goodbooks")
    for k in range(places):
        home = folder / f"place{k}"
        home.mkdir(parents=True)
        (home / "ratings.csv").write_text(ratings(data, range(k * readers, (k + 1) * readers)), encoding="utf-8")
    agreement = Agreement.of(Experiment(method), data.items, data.titles, places * readers, hold_out=False)
    (folder / "agreement").write_bytes(agreement.pack())
    return agreement


def ratings(data: ov.Interactions, readers: range) -> str:
    """The rows of some readers as CSV."""
    assert data.timestamp is not None
    lines = ["user,item,timestamp"]
    for reader in readers:
        rows = range(data.offsets[reader], data.offsets[reader + 1])
        lines += [f"{data.users[reader]},{data.items[data.item[row]]},{data.timestamp[row]}" for row in rows]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    prepare(Path(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else "pfedrec")
    print(f"{sys.argv[1]}: {PLACES} places with {READERS} readers each")
