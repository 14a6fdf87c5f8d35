"""Groups that are opened one by one: exact without hostile tabs; one with large numbers costs its group alone."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("cryptography.hazmat.primitives.hpke")
pytest.importorskip("starlette")

from ownview.base.errors import DataError, MessageError
from ownview.one_message.envelope import Operation, Receipt
from ownview.one_message.groups import alike
from ownview.one_message.numbers import signed, summand
from ownview.one_message.store import ShareStore
from ownview.one_message.terms import agreed
from tests.one_message.store_pairs import StorePair

ITEMS, PEOPLE, GROUPS, FEWEST = 40, 120, 6, 10


@pytest.fixture
def two(tmp_path: Path) -> StorePair:
    return StorePair(tmp_path, ITEMS, fewest=FEWEST, groups=GROUPS)


def _histories(count: int) -> list[list[int]]:
    chance = np.random.default_rng(7)
    return [chance.integers(0, ITEMS, 20).tolist() for _ in range(count)]


def test_without_hostile_tabs_the_sum_is_exact(two: StorePair) -> None:
    numbers = [summand(two.terms, one) for one in _histories(PEOPLE)]
    receipts = two.receipts(PEOPLE)
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


def test_large_numbers_of_one_tab_cost_its_group_alone(two: StorePair) -> None:
    numbers = [summand(two.terms, one) for one in _histories(PEOPLE)]
    receipts = two.receipts(PEOPLE)
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
        two.send(np.zeros(two.terms.size, dtype=np.uint32), left, Operation.CHANGE)
    before, waiting = store.total(), store.status().waiting
    two.send(numbers[receipts.index(left)], left, Operation.TAKE_OUT)  # whatever it says: nothing is to be subtracted
    with pytest.raises(MessageError, match="taken out already"):
        two.send(np.zeros(two.terms.size, dtype=np.uint32), left, Operation.TAKE_OUT)
    assert np.array_equal(store.total(), before)
    assert store.status() == (len(rest), waiting, 1)


def test_what_is_taken_back_is_gone_also_where_its_group_is_left_out(two: StorePair) -> None:
    """A hostile tab in the group of a person who takes back: the group goes, with what it counted before."""
    numbers = [summand(two.terms, one) for one in _histories(2 * PEOPLE)]
    receipts = [*two.receipts(PEOPLE), *two.receipts(PEOPLE)]
    for one, receipt in zip(numbers[:PEOPLE], receipts, strict=False):
        two.send(one, receipt)
    assert two.open() == PEOPLE
    store = two.stores["b"]
    for one, receipt in zip(numbers[PEOPLE:], receipts[PEOPLE:], strict=True):
        two.send(one, receipt)
    large = np.full(two.terms.size, 2**20, dtype=np.uint32)
    hostile = Receipt.new()
    two.send(large, hostile)
    spoilt = store._group(hostile.contribution)
    there = [k for k, receipt in enumerate(receipts) if store._group(receipt.contribution) == spoilt]
    leaver, changer = there[0], next(k for k in there if k >= PEOPLE)
    two.send((-signed(numbers[leaver])).astype(np.uint32), receipts[leaver], Operation.TAKE_OUT)
    while store.confirm(two.stores["a"].known):
        pass
    two.send(numbers[0], receipts[changer], Operation.CHANGE)  # still waits when the group is left out: it ends with it
    two.send((-signed(numbers[there[1]])).astype(np.uint32), receipts[there[1]], Operation.TAKE_OUT)
    assert store.open(lambda names: two.stores["a"].batch(names).read_bytes()) == PEOPLE + 2
    rest = [one for k, one in enumerate(numbers) if k not in there]
    assert np.array_equal(store.total(), sum(signed(one) for one in rest))
    assert store.status() == (len(rest), 0, 2)
    assert not list((store.folder / "waiting").iterdir())
    others = two.receipts(PEOPLE)
    for one, receipt in zip(numbers, others, strict=False):
        two.send(one, receipt)
    assert two.open() == PEOPLE  # nothing of before is in it
    assert np.array_equal(store.total(), sum(signed(one) for one in [*rest, *numbers[:PEOPLE]]))
    assert store.status().contributions == len(rest) + PEOPLE


def test_what_is_added_and_taken_out_in_a_group_that_is_left_out_counts_for_nothing(two: StorePair) -> None:
    numbers = [summand(two.terms, one) for one in _histories(PEOPLE)]
    receipts = two.receipts(PEOPLE)
    for one, receipt in zip(numbers, receipts, strict=True):
        two.send(one, receipt)
    hostile = Receipt.new()
    two.send(np.full(two.terms.size, 2**20, dtype=np.uint32), hostile)
    store = two.stores["b"]
    spoilt = store._group(hostile.contribution)
    leaver = next(k for k, receipt in enumerate(receipts) if store._group(receipt.contribution) == spoilt)
    two.send((-signed(numbers[leaver])).astype(np.uint32), receipts[leaver], Operation.TAKE_OUT)
    assert two.open() == PEOPLE + 2
    rest = [one for one in receipts if store._group(one.contribution) != spoilt]
    assert store.status().contributions == len(rest)


def test_groups_are_many_alike_and_not_chosen_by_tabs(two: StorePair, tmp_path: Path) -> None:
    names = [Receipt.new().contribution for _ in range(600)]
    here = [two.stores["b"]._group(one) for one in names]
    assert np.bincount(here, minlength=GROUPS).min() > 50
    other = ShareStore(tmp_path / "other", two.terms, "b", bytes(32))
    assert here != [other._group(one) for one in names]
    assert alike(np.array([[5], [6], [5], [6], [5], [90]]), np.ones(6, dtype=np.int64)).tolist() == [True] * 5 + [False]
    with pytest.raises(DataError, match="groups"):
        agreed("counts", ["1"], {"a": "http://a", "b": "http://b"}, dict.fromkeys(("a", "b"), bytes(32)), groups=3)
