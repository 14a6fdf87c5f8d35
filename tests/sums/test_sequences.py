"""Whatever was added, changed, taken out and merged: sums are, bit for bit, those of the final histories alone."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from ownview.base.errors import OutputError, UnknownNameError
from ownview.sums.additions import merge, rebuild, update
from ownview.sums.blocks import Blocks
from ownview.sums.store import Store
from tests.sums.worlds import METHODS, added_up, by_item, empty, made_of, quick, rows


@pytest.mark.parametrize("sequences", [90, pytest.param(1000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("method", METHODS)
def test_sums_are_those_of_the_final_histories_alone(
    method: str, sequences: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After every sequence in memory; after every twentieth also in a store of its own with items in other places.

    A sequence begins with what the one before has left; after every twentieth everybody is taken out.
    """
    monkeypatch.setattr(os, "fsync", lambda handle: None)
    monkeypatch.setattr(np.memmap, "flush", lambda self: None)
    number = -(-sequences // len(METHODS))
    done, sent = Counter[str](), dict[str, Blocks]()
    with (
        Store.writing(empty(tmp_path / "ours", method)) as ours,
        Store.writing(empty(tmp_path / "hers", method)) as hers,
    ):
        for store in (ours, hers):
            update(quick(store), rows(np.random.default_rng(0), ["a"], 9, 100), "all")  # files have room for all items
            store.forget("a")
        for seed in range(number):
            random = np.random.default_rng([seed, *method.encode()])
            for _ in range(int(random.integers(2, 6))):
                done[_step(ours, hers, sent, random)] += 1
            now = ours.snapshot()
            assert now.clients == len(now.people) + len(sent), f"seed {seed}"
            assert by_item(now) == added_up(ours, now, sent.values()), f"seed {seed}"
            if seed % 20 == 0:
                _end(ours, sent, tmp_path / f"made{seed}", method)
    assert min(done[what] for what in ("forget", "merge", "send", "take out")) > number // 8


def _end(store: Store, sent: dict[str, Blocks], folder: Path, method: str) -> None:
    """Senders take out what they sent: the histories alone are left; then people go, and nothing is."""
    for name, blocks in sent.items():
        store.take_out(name, blocks)
    sent.clear()
    now = store.snapshot()
    if now.people:
        ids = {where: item for where, (item, _) in now.items.items()}
        assert by_item(now) == made_of(folder, method, now.people, ids)
    for name in now.people:
        store.forget(name)
    assert not any(value.any() for value in store.arrays.values.values())
    assert not store.journal.items()


def _step(store: Store, other: Store, sent: dict[str, Blocks], random: np.random.Generator) -> str:
    """One change, of what is there for it; `sent` is what senders of contributions without a history have here."""
    what, names = str(random.choice(["update", "update", "forget", "merge", "send", "take out"])), store.names()
    if what == "forget" and names:
        store.forget(str(random.choice(names)))
    elif what == "merge":
        update(other, rows(random, ["a", "b", "x", "y"], 9, int(random.integers(1, 12))), "theirs")
        merge(store, other.snapshot(), other)
        for name in other.names():  # its contributions are in the other store now
            other.forget(name)
    elif what == "send" and names:
        ids = {where: item for where, (item, _) in store.journal.items().items()}
        one, name = store.history(str(random.choice(names))), random.bytes(16).hex()
        assert one is not None
        sent[name] = store.summing.contributions({name: one}, ids)[name]
        assert store.add(name, sent[name])
    elif what == "take out" and sent:
        name = str(random.choice(list(sent)))
        store.take_out(name, sent.pop(name))
    else:
        update(store, rows(random, ["a", "b", "c", "d", "e"], 7, int(random.integers(1, 15))), "ours")
        return "update"
    return what


def test_rows_that_are_known_count_once_and_forgetting_leaves_an_empty_store(tmp_path: Path) -> None:
    random = np.random.default_rng(1)
    data = rows(random, ["a", "b"], 5, 20)
    with Store.writing(empty(tmp_path / "store", "fedease")) as store:
        first = update(store, data, "file")
        before = by_item(store.snapshot())
        again = update(store, data, "file")
        assert (again.rows, again.known, again.people) == (0, len(data), 0)
        assert first.rows + first.known == len(data)
        assert by_item(store.snapshot()) == before
        rebuild(store)
        assert by_item(store.snapshot()) == before
        for name in ("a", "b"):
            store.forget(name)
        with pytest.raises(UnknownNameError, match="a forgotten one is unknown"):
            store.forget("a")
        now = store.snapshot()
        assert (now.people, now.items, now.clients) == ({}, {}, 0)
        assert not any(value.any() for value in store.arrays.values.values())
        assert [line.taken_out for line in store.journal.contributions()] == [True, True]


def test_contributions_without_a_history_count_once_and_are_taken_out_by_whoever_sent_them(tmp_path: Path) -> None:
    random = np.random.default_rng(2)
    with Store.writing(empty(tmp_path / "store", "fedease")) as store:
        update(store, rows(random, ["a", "b"], 5, 20), "file")
        before = by_item(store.snapshot())
        ids = {where: item for where, (item, _) in store.journal.items().items()}
        one = store.summing.contributions({"c": store.snapshot().people["a"]}, ids)["c"]
        other = store.summing.contributions({"c": store.snapshot().people["b"]}, ids)["c"]
        assert store.add("f" * 32, one, budget=0.5)
        assert not store.add("f" * 32, one)
        assert store.snapshot().clients == 3
        with pytest.raises(OutputError, match="is not what was added"):
            store.take_out("f" * 32, other)
        with Store.writing(empty(tmp_path / "other", "fedease")) as mine:
            with pytest.raises(OutputError, match="has no history there; take it out first"):
                merge(mine, store.snapshot(), store)
            with pytest.raises(OutputError, match="has no item; nothing was added"):
                mine.add("d" * 32, one)
        store.take_out("f" * 32, one)
        with pytest.raises(OutputError, match="is taken out already"):
            store.take_out("f" * 32, one)
        with pytest.raises(OutputError, match="is not in this store"):
            store.take_out("e" * 32, one)
        assert by_item(store.snapshot()) == before
        assert [line.budget for line in store.journal.contributions()] == [0.0, 0.0, 0.5]


def test_items_stay_as_long_as_a_contribution_without_a_history_is_about_them(tmp_path: Path) -> None:
    """An item that came later would get their place, and their cells."""
    with Store.writing(empty(tmp_path / "store", "popularity")) as store:
        update(store, rows(np.random.default_rng(2), ["a"], 5, 20), "file")
        ids = {where: item for where, (item, _) in store.journal.items().items()}
        sent = store.summing.contributions({"a": store.snapshot().people["a"]}, ids)["a"]
        store.add("f" * 32, sent)
        store.forget("a")
        assert {where: item for where, (item, _) in store.journal.items().items()} == ids
        update(store, rows(np.random.default_rng(3), ["b"], 9, 20), "more")
        now = store.snapshot()
        assert by_item(now) == added_up(store, now, [sent])
        store.forget("b")
        store.take_out("f" * 32, sent)
        assert not store.journal.items()
        assert not any(value.any() for value in store.arrays.values.values())
