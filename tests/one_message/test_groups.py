"""Groups that are opened one by one: exact without hostile tabs; one with large numbers costs its group alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("cryptography.hazmat.primitives.hpke")
pytest.importorskip("starlette")

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from ownview.base.errors import DataError, MessageError
from ownview.one_message.envelope import Operation, Receipt, opened, sealed
from ownview.one_message.groups import alike
from ownview.one_message.numbers import signed, summand
from ownview.one_message.store import ShareStore
from ownview.one_message.terms import Share, agreed

ITEMS, PEOPLE, GROUPS, FEWEST = 40, 120, 6, 10
GROUPING = bytes(range(32))


class Two:
    """Both servers in this process."""

    def __init__(self, folder: Path) -> None:
        self.keys = {share: X25519PrivateKey.generate() for share in ("a", "b")}
        public: Any = {share: key.public_key().public_bytes_raw() for share, key in self.keys.items()}
        urls: dict[Share, str] = {"a": "http://a", "b": "http://b"}
        items = [str(item) for item in range(ITEMS)]
        self.terms = agreed("fedease", items, urls, public, fewest=FEWEST, groups=GROUPS)
        self.stores: dict[Share, ShareStore] = {
            share: ShareStore(folder / share, self.terms, share, GROUPING) for share in ("a", "b")
        }

    def send(self, numbers: Any, receipt: Receipt, how: Operation = Operation.ADD) -> None:
        sent, _ = sealed(self.terms, numbers, receipt, how)
        for share, store in self.stores.items():
            store.put(opened(self.terms, share, self.keys[share], sent[share]))

    def open(self) -> int:
        a, b = self.stores["a"], self.stores["b"]
        while b.confirm(a.known):
            pass
        return b.open(lambda names: a.batch(names).read_bytes())


@pytest.fixture
def two(tmp_path: Path) -> Two:
    return Two(tmp_path)


def _histories(count: int) -> list[list[int]]:
    chance = np.random.default_rng(7)
    return [chance.integers(0, ITEMS, 20).tolist() for _ in range(count)]


def test_without_hostile_tabs_the_sum_is_exact(two: Two) -> None:
    numbers = [summand(two.terms, one) for one in _histories(PEOPLE)]
    receipts = [Receipt.new() for _ in numbers]
    for one, receipt in zip(numbers[:20], receipts, strict=False):
        two.send(one, receipt)
    assert two.open() == 0  # no group has ten yet
    with pytest.raises(MessageError, match="expected 10 at least"):
        two.stores["a"].batch([row[0] for row in two.stores["b"]._rows("SELECT name FROM messages ORDER BY name")])
    for one, receipt in zip(numbers[20:], receipts[20:], strict=True):
        two.send(one, receipt)
    two.send((-signed(numbers[0])).astype(np.uint32), receipts[0], Operation.TAKE_OUT)
    assert two.open() == PEOPLE + 1
    assert np.array_equal(two.stores["b"].total(), sum(signed(one) for one in numbers[1:]))
    assert two.stores["b"].status().contributions == PEOPLE - 1


def test_large_numbers_of_one_tab_cost_its_group_alone(two: Two) -> None:
    numbers = [summand(two.terms, one) for one in _histories(PEOPLE)]
    receipts = [Receipt.new() for _ in numbers]
    for one, receipt in zip(numbers, receipts, strict=True):
        two.send(one, receipt)
    hostile, large = Receipt.new(), np.zeros(two.terms.size, dtype=np.uint32)
    large[:ITEMS] = 2**24  # all pairs with the first item
    two.send(large, hostile)
    assert two.open() == PEOPLE + 1
    store = two.stores["b"]
    spoilt = store._group(hostile.contribution)
    rest = [one for one, receipt in zip(numbers, receipts, strict=True) if store._group(receipt.contribution) != spoilt]
    assert 0 < len(rest) < PEOPLE
    assert np.array_equal(store.total(), sum(signed(one) for one in rest))
    assert store.status().contributions == len(rest)
    left = next(one for one in receipts if store._group(one.contribution) == spoilt)
    with pytest.raises(MessageError, match="in a group that stood out"):
        two.send(np.zeros(two.terms.size, dtype=np.uint32), left, Operation.TAKE_OUT)


def test_groups_are_many_alike_and_not_chosen_by_tabs(two: Two, tmp_path: Path) -> None:
    names = [Receipt.new().contribution for _ in range(600)]
    here = [two.stores["b"]._group(one) for one in names]
    assert np.bincount(here, minlength=GROUPS).min() > 50
    other = ShareStore(tmp_path / "other", two.terms, "b", bytes(32))
    assert here != [other._group(one) for one in names]
    assert alike(np.array([[5], [6], [5], [6], [5], [90]]), np.ones(6, dtype=np.int64)).tolist() == [True] * 5 + [False]
    with pytest.raises(DataError, match="groups"):
        agreed("counts", ["1"], {"a": "http://a", "b": "http://b"}, dict.fromkeys(("a", "b"), bytes(32)), groups=3)
