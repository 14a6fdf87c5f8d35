"""What a batch is made of: as many contributions as were agreed, and never so full that it cannot be opened."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("cryptography.hazmat.primitives.hpke")

from ownview.base.errors import DataError, MessageError
from ownview.one_message import store as stores
from ownview.one_message.envelope import Operation, Receipt
from ownview.one_message.numbers import signed, summand
from tests.one_message.store_pairs import StorePair

ITEMS, FEWEST = 6, 10
COARSE: dict[str, Any] = {"table": [2**24 - 1]}
"""Steps so large that sums of 128 messages fit into 32 bits."""


def _negative(numbers: Any) -> Any:
    return (-signed(numbers)).astype(np.uint32)


def _names(pair: StorePair) -> list[bytes]:
    return [row[0] for row in pair.stores["b"]._rows("SELECT name FROM messages ORDER BY name")]


def test_what_is_taken_out_before_it_is_opened_does_not_count_for_the_batch(tmp_path: Path) -> None:
    pair = StorePair(tmp_path, ITEMS, fewest=FEWEST)
    numbers, receipts = summand(pair.terms, [1, 2]), [Receipt.new() for _ in range(FEWEST)]
    for receipt in receipts:
        pair.send(numbers, receipt)
    for receipt in receipts[:3]:
        pair.send(_negative(numbers), receipt, Operation.TAKE_OUT)
    assert pair.open() == 0  # the sum would be of seven people
    with pytest.raises(MessageError, match="adds 7 contributions; expected 10"):
        pair.stores["a"].batch(_names(pair))
    for _ in range(3):
        pair.send(numbers, Receipt.new())
    assert pair.open() == FEWEST + 6
    assert np.array_equal(pair.stores["b"].total(), FEWEST * signed(numbers))
    assert pair.stores["b"].status() == (FEWEST, 0, 1)


def test_changes_of_one_tab_cannot_fill_a_batch(tmp_path: Path) -> None:
    pair = StorePair(tmp_path, ITEMS, COARSE, fewest=FEWEST)
    assert pair.terms.most == 128
    zeros, tab = np.zeros(pair.terms.size, dtype=np.uint32), Receipt.new()
    pair.send(zeros, tab)
    for _ in range(pair.terms.most):
        pair.send(zeros, tab, Operation.CHANGE)
    numbers = summand(pair.terms, [1, 2])
    pair.confirm()
    for _ in range(FEWEST):
        pair.send(numbers, Receipt.new())
    assert pair.open() == 1 + FEWEST + pair.terms.most // 4
    assert np.array_equal(pair.stores["b"].total(), FEWEST * signed(numbers))


def test_contributions_that_are_taken_out_at_once_cannot_fill_a_batch(tmp_path: Path) -> None:
    pair = StorePair(tmp_path, ITEMS, COARSE, fewest=FEWEST)
    zeros, numbers = np.zeros(pair.terms.size, dtype=np.uint32), summand(pair.terms, [1, 2])
    for _ in range(pair.terms.most // 2):
        tab = Receipt.new()
        pair.send(zeros, tab)
        pair.send(zeros, tab, Operation.TAKE_OUT)
    pair.confirm()
    for _ in range(FEWEST):
        pair.send(numbers, Receipt.new())
    pair.open()
    assert np.array_equal(pair.stores["b"].total(), FEWEST * signed(numbers))


def test_every_group_has_room_for_its_own_contributions(tmp_path: Path) -> None:
    """Sums are of a group each: what fits into 32 bits bounds a group's messages, and not those of all together."""
    groups, fewest, people = 6, 22, 190
    pair = StorePair(tmp_path, ITEMS, COARSE, fewest=fewest, groups=groups)
    assert groups * fewest > pair.terms.most
    numbers = summand(pair.terms, [1, 2])
    for receipt in pair.receipts(people):
        pair.send(numbers, receipt)
    assert pair.open() == people
    assert np.array_equal(pair.stores["b"].total(), people * signed(numbers))


def test_what_b_had_no_room_for_is_taken_out_by_another_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Server a has the first message already: it must not be the end of taking back."""
    pair, receipt = StorePair(tmp_path, ITEMS, fewest=2), Receipt.new()
    numbers = summand(pair.terms, [1, 2])
    pair.send(numbers, receipt)
    monkeypatch.setattr(stores, "MOST_WAITING_BYTES", 0)
    with pytest.raises(stores.NoRoomError, match="no room"):
        pair.send(_negative(numbers), receipt, Operation.TAKE_OUT)
    monkeypatch.undo()
    pair.send(_negative(numbers), receipt, Operation.TAKE_OUT)
    for _ in range(2):
        pair.send(numbers, Receipt.new())
    assert pair.open() == 4
    assert np.array_equal(pair.stores["b"].total(), 2 * signed(numbers))
    for share in ("a", "b"):
        with pytest.raises(MessageError, match="taken out already"):
            pair.send(numbers, receipt, Operation.CHANGE, to=[share])


def test_server_a_takes_nothing_out_twice_whatever_b_asks_for(tmp_path: Path) -> None:
    """A server b that refuses what takes out has it sent again, and could have each try opened: a budget is for one."""
    pair, receipt = StorePair(tmp_path, ITEMS, fewest=2), Receipt.new()
    numbers, a = summand(pair.terms, [1, 2]), pair.stores["a"]
    tries = [pair.messages(_negative(numbers), receipt, Operation.TAKE_OUT)["a"] for _ in range(3)]
    pair.send(numbers, receipt)
    adds = [Receipt.new() for _ in range(6)]
    for one in adds:
        pair.send(numbers, one)
    for again in tries:
        pair.put("a", again)

    def batch(*names: bytes) -> None:
        a.batch(sorted(names))

    with pytest.raises(MessageError, match="takes a contribution out twice"):
        batch(adds[0].contribution, adds[1].contribution, tries[0].name, tries[1].name)
    batch(receipt.contribution, adds[0].contribution, adds[1].contribution)
    batch(adds[2].contribution, adds[3].contribution, tries[0].name)
    with pytest.raises(MessageError, match="takes a contribution out twice"):
        batch(adds[4].contribution, adds[5].contribution, tries[1].name)


def test_messages_of_which_a_has_no_half_do_not_stay_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pair, receipt = StorePair(tmp_path, ITEMS, fewest=2), Receipt.new()
    numbers, b = summand(pair.terms, [1, 2]), pair.stores["b"]
    pair.send(numbers, receipt)
    pair.confirm()
    pair.send(_negative(numbers), receipt, Operation.TAKE_OUT, to=["b"])
    for _ in range(3):
        pair.send(numbers, Receipt.new(), to=["b"])
    pair.confirm()
    assert b.status().waiting == 5  # an answer of a that came a moment too late is no reason
    monkeypatch.setattr(stores, "UNCONFIRMED_SECONDS", 0.0)
    pair.confirm()
    assert b.status().waiting == 1
    assert not list((b.folder / "waiting").iterdir())
    pair.send(numbers, Receipt.new())
    pair.send(_negative(numbers), receipt, Operation.TAKE_OUT)  # the first try to take it out never was
    pair.send(numbers, Receipt.new())
    assert pair.open() == 4
    assert np.array_equal(b.total(), 2 * signed(numbers))


def test_an_answer_of_a_that_was_lost_is_asked_for_again(tmp_path: Path) -> None:
    """Server a has opened the batch by then; what came meanwhile belongs to the next one."""
    pair = StorePair(tmp_path, ITEMS, fewest=2)
    numbers, a, b = summand(pair.terms, [1, 2]), pair.stores["a"], pair.stores["b"]

    def lost(names: Sequence[bytes]) -> bytes:
        a.batch(names)
        raise ConnectionError

    for _ in range(2):
        pair.send(numbers, Receipt.new())
    pair.confirm()
    with pytest.raises(ConnectionError):
        b.open(lost)
    for _ in range(2):
        pair.send(numbers, Receipt.new())
    assert pair.open() == 2
    assert pair.open() == 2
    assert np.array_equal(b.total(), 4 * signed(numbers))


def test_an_agreement_that_could_never_be_opened_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="fewest: 65; expected half of 128 at most"):
        StorePair(tmp_path, ITEMS, COARSE, fewest=65)


@pytest.mark.parametrize("told", [Operation.CHANGE, Operation.TAKE_OUT])
def test_a_message_that_says_one_thing_to_a_and_another_to_b_keeps_nobody_elses_from_being_opened(
    tmp_path: Path, told: Operation
) -> None:
    """To b it adds, so that b asks for the batch; a counts one contribution less, and would refuse that for ever."""
    pair = StorePair(tmp_path, ITEMS, fewest=2)
    numbers, own, made_up = summand(pair.terms, [1, 2]), Receipt.new(), Receipt.new()
    pair.send(numbers, own)
    pair.put("b", pair.messages(numbers, made_up, Operation.ADD)["b"])
    said = pair.messages(numbers, own, told)["a"]
    pair.put("a", replace(said, name=made_up.contribution))
    assert pair.open() == 0
    pair.send(numbers, Receipt.new())
    assert pair.open() == 2
    assert np.array_equal(pair.stores["b"].total(), 2 * signed(numbers))


def test_a_message_that_changes_another_contribution_at_each_server_is_not_added_up(tmp_path: Path) -> None:
    """In another group at each, it would leave a key's stream in both."""
    pair = StorePair(tmp_path, ITEMS, fewest=2)
    numbers, receipts = summand(pair.terms, [1, 2]), [Receipt.new(), Receipt.new()]
    for receipt in receipts:
        pair.send(numbers, receipt)
    to_a, to_b = (pair.messages(numbers, receipt, Operation.CHANGE) for receipt in receipts)
    pair.put("a", replace(to_a["a"], name=to_b["b"].name))
    pair.put("b", to_b["b"])
    assert pair.open() == 2
    assert pair.stores["b"].status().waiting == 1
