"""Noise under a budget: each server adds the whole of it, so that one honest server is enough."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("cryptography.hazmat.primitives.hpke")
pytest.importorskip("dp_accounting")
pytest.importorskip("starlette")

from ownview.base.errors import MessageError, SettingError
from ownview.one_message.budget import ShareBudget
from ownview.one_message.envelope import Message, Operation, Receipt, stream
from ownview.one_message.numbers import signed, summand
from ownview.one_message.solving import solve
from ownview.one_message.terms import Share
from ownview.privacy.accountant import Sampling, epsilon_of
from tests.one_message.store_pairs import StorePair

ITEMS, PEOPLE = 60, 8
NOISE = 2.0**16
_ROOM = 0.2
"""The variance of 1,830 numbers is within a fifth of the true one but for six standard deviations."""


class Two(StorePair):
    """Both servers, with the streams of all that server a has."""

    def __init__(self, folder: Path, budget: ShareBudget | None) -> None:
        super().__init__(folder, ITEMS, fewest=PEOPLE, budget=budget)
        self.streams = np.zeros(self.terms.size, dtype=np.uint32)

    def put(self, share: Share, message: Message) -> None:
        super().put(share, message)
        if share == "a":
            self.streams = self.streams + stream(message.share, self.terms.size)

    def opened_by_a(self) -> np.ndarray:
        """Both confirm and open; server a's answer without the streams that it should be of."""
        self.confirm()
        a, b = self.stores["a"], self.stores["b"]
        answers = []

        def ask(names: list[bytes]) -> bytes:
            answers.append(a.batch(names).read_bytes())
            assert a.batch(names).read_bytes() == answers[0]  # a killed b gets the same, and no second draw
            return answers[0]

        assert b.open(ask)  # type: ignore[arg-type]
        rest = signed(np.frombuffer(answers[0], dtype="<u4") - self.streams)
        self.streams = np.zeros_like(self.streams)
        return rest


def test_each_server_adds_the_noise_of_the_whole_budget(tmp_path: Path) -> None:
    chance, budget = np.random.default_rng(2), ShareBudget.planned(1.0, 1e-5)
    assert epsilon_of([budget.noise] * 2, budget.delta, Sampling()) <= 1.0
    two = Two(tmp_path, budget)
    numbers = [summand(two.terms, chance.integers(0, ITEMS, 30).tolist()) for _ in range(PEOPLE)]
    receipts = [Receipt.new() for _ in numbers]
    for one, receipt in zip(numbers, receipts, strict=True):
        assert np.sqrt((signed(one).astype(float) ** 2).sum()) <= budget.clip
        two.send(one, receipt, Operation.ADD)
    of_a = two.opened_by_a().astype(float)
    assert abs(of_a.std() ** 2 / NOISE**2 - 1) < _ROOM
    true = sum(signed(one) for one in numbers)
    both = (two.stores["b"].total() - true).astype(float)
    assert abs(both.std() ** 2 / (2 * NOISE**2) - 1) < _ROOM
    assert abs((both - of_a).std() ** 2 / NOISE**2 - 1) < _ROOM
    assert abs(np.corrcoef(of_a, both - of_a)[0, 1]) < 0.15
    with pytest.raises(MessageError, match="taken out, not changed"):
        two.send(numbers[0], receipts[0], Operation.CHANGE)
    for one, receipt in zip(numbers, receipts, strict=True):
        two.send((-signed(one)).astype(np.uint32), receipt, Operation.TAKE_OUT)
        two.send(np.zeros(two.terms.size, dtype=np.uint32), Receipt.new(), Operation.ADD)
    two.streams = np.zeros_like(two.streams)
    two.opened_by_a()
    left = two.stores["b"].total().astype(float)
    assert abs(left.std() ** 2 / (4 * NOISE**2) - 1) < _ROOM
    solved = solve(two.terms, two.stores["b"].total(), 2, PEOPLE, {}, 5)
    assert len(solved.ids) == ITEMS
    for store in two.stores.values():
        store.close()


def test_without_a_budget_nothing_is_added(tmp_path: Path) -> None:
    two = Two(tmp_path, None)
    numbers = summand(two.terms, [1, 2, 3])
    for _ in range(PEOPLE):
        two.send(numbers, Receipt.new(), Operation.ADD)
    assert not two.opened_by_a().any()
    assert np.array_equal(two.stores["b"].total(), PEOPLE * signed(numbers))


def test_less_noise_than_its_epsilon_needs_is_refused() -> None:
    budget = ShareBudget.planned(1.0, 1e-5)
    budget.require_covered(10**6)
    with pytest.raises(SettingError, match=r"not 0\.5"):
        replace(budget, epsilon=0.5).require_covered(10**6)
    with pytest.raises(SettingError, match="is epsilon"):
        replace(budget, clip=2 * budget.clip).require_covered(10**6)
