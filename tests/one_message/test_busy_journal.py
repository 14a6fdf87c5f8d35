"""A journal that another process holds: what failed is as if it had not been tried, and goes on afterwards."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("cryptography.hazmat.primitives.hpke")

from ownview.one_message.envelope import Operation, Receipt
from ownview.one_message.numbers import signed, summand
from ownview.one_message.opened_sums import JOURNAL
from ownview.one_message.terms import SHARES, Share
from tests.one_message.store_pairs import StorePair

ITEMS, FEWEST = 6, 2


@contextmanager
def _held(folder: Path, *lines: str) -> Iterator[sqlite3.Connection]:
    """The journal of a folder, held by these lines until the end."""
    other = sqlite3.connect(folder / JOURNAL, isolation_level=None)
    try:
        for line in lines:
            other.execute(line).fetchall()
        yield other
    finally:
        other.close()


def test_a_total_is_not_counted_twice_where_confirming_and_opening_failed(tmp_path: Path) -> None:
    """What a failed confirmation leaves is the old total under the next one's name."""
    pair = StorePair(tmp_path, ITEMS, fewest=FEWEST)
    numbers, a, b = summand(pair.terms, [1, 2]), pair.stores["a"], pair.stores["b"]
    b.journal.execute("PRAGMA busy_timeout = 0")
    for _ in range(FEWEST):
        pair.send(numbers, Receipt.new())
    assert pair.open() == FEWEST
    for _ in range(FEWEST):
        pair.send(numbers, Receipt.new())
    pair.confirm()
    pair.send(numbers, Receipt.new())
    with _held(b.folder, "BEGIN IMMEDIATE"), pytest.raises(sqlite3.OperationalError, match="locked"):
        b.confirm(a.known)

    with _held(b.folder) as other:

        def answered(names: Sequence[bytes]) -> bytes:
            other.execute("BEGIN IMMEDIATE")
            return a.batch(names).read_bytes()

        with pytest.raises(sqlite3.OperationalError, match="locked"):
            b.open(answered)
    assert pair.open() == FEWEST
    assert np.array_equal(b.total(), 2 * FEWEST * signed(numbers))


@pytest.mark.parametrize("share", SHARES)
def test_a_server_takes_messages_again_once_a_reader_has_let_go(tmp_path: Path, share: Share) -> None:
    """With a reader inside, a transaction begins, and cannot end."""
    pair = StorePair(tmp_path, ITEMS, fewest=FEWEST)
    numbers, store = summand(pair.terms, [1, 2]), pair.stores[share]
    store.journal.execute("PRAGMA busy_timeout = 0")
    refused = pair.messages(numbers, Receipt.new(), Operation.ADD)[share]
    with _held(store.folder, "BEGIN", "SELECT * FROM facts"):
        for _ in range(2):
            with pytest.raises(sqlite3.OperationalError, match="locked"):
                store.put(refused)
    assert store.put(refused)
    assert not store.put(refused)
