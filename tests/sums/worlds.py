"""Small stores of people with random histories."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np

from ownview.data import Interactions
from ownview.runs.experiment import Experiment
from ownview.runs.full_fit import fit_of
from ownview.sums.agreement import StoreAgreement
from ownview.sums.blocks import Blocks
from ownview.sums.histories import History
from ownview.sums.store import Snapshot, Store

DAY = 86_400
METHODS: dict[str, dict[str, object]] = {
    "fedease": {"nearness": 3.0},
    "fednext": {"scales": (1.0, 4.0), "length": 6},
    "popularity": {},
    "markov": {},
    "sitting-starts": {},
    "later-sittings": {},
}
"""Whose model is a sum, with settings for small worlds."""


def agreement(method: str) -> StoreAgreement:
    """On data with times."""
    experiment = Experiment(method, data="world", settings=METHODS[method])  # type: ignore[arg-type]
    return StoreAgreement(fit_of(experiment, None), "times", 400 * DAY)


def rows(random: np.random.Generator, names: list[str], items: int, count: int) -> Interactions:
    """Random rows, some of them repeated."""
    user = np.array(names, dtype=object)[random.integers(0, len(names), count)]
    item = np.array([f"i{k}" for k in random.integers(0, items, count)], dtype=object)
    when = random.integers(0, 50, count) * (DAY // 2)
    return Interactions.from_rows("world", user, item, timestamp=when, titles={f"i{k}": f"T{k}" for k in range(items)})


def by_item(now: Snapshot) -> dict[str, object]:
    """Sums by item id, and histories by item id: what two stores must have in common."""
    ids = np.array([now.items[where][0] for where in now.places.tolist()], dtype=object)
    order, m = np.argsort(ids, kind="stable"), len(ids)
    found: dict[str, object] = {"items": sorted(ids.tolist())}
    for name, value in now.sums.items():
        sides = [(np.arange(size // m)[:, None] * m + order).reshape(-1) if size % m == 0 else np.arange(size)
                 for size in value.shape] if m else [np.arange(size) for size in value.shape]  # fmt: skip
        found[name] = value[np.ix_(*sides)].tobytes()
    return found


def empty(folder: Path, method: str, url: str | None = None) -> Path:
    """A store that nobody has added to."""
    Store.create(folder, agreement(method), {}, {}, {}, url)
    return folder


def quick(store: Store) -> Store:
    """The same store, which neither waits for the disk nor keeps a way back there; kills are another test's."""
    store.journal.run("PRAGMA synchronous=OFF")
    store.journal.run("PRAGMA journal_mode=MEMORY")
    return store


def added_up(store: Store, now: Snapshot, sent: Iterable[Blocks] = ()) -> dict[str, object]:
    """Contributions of final histories, and others, added up in memory from nothing, in another order."""
    ids = {where: item for where, (item, _) in now.items.items()}
    sums = {name: np.zeros(value.shape, dtype=np.int64) for name, value in store.arrays.values.items()}
    by_name = (store.summing.contributions({name: now.people[name]}, ids)[name] for name in sorted(now.people)[::-1])
    for blocks in (*sent, *by_name):
        for kind, block in blocks.items():
            sums[kind][np.ix_(block.rows, block.columns)] += block.steps
    chosen = {
        name: sums[name][np.ix_(*(axis.of(now.places, store.arrays.items) for axis in axes))]
        for name, axes in store.arrays.axes.items()
    }
    return by_item(replace(now, sums=chosen))


def made_of(folder: Path, method: str, people: dict[str, History], items: dict[int, str]) -> dict[str, object]:
    """A store of final histories alone, whose items have other places, read back."""
    used = {where for one in people.values() for where in one.places.tolist()}
    place = {where: k for k, where in enumerate(sorted(used, reverse=True))}
    moved = {
        name: one._replace(places=np.array([place[where] for where in one.places.tolist()], dtype=np.int64))
        for name, one in people.items()
    }
    named: dict[int, tuple[str, dict[str, str]]] = {place[where]: (items[where], {}) for where in used}
    Store.create(folder, agreement(method), {}, moved, named)
    with Store.reading(folder) as store:
        return by_item(store.snapshot())
