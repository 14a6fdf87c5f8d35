"""Stacks of clients on the cores of a CPU: the same values to rounding, and errors that arrive."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pytest
import torch

from ownview.engine.threads import in_threads
from ownview.registry import METHODS
from ownview.testing.worlds import federation, small_world


@pytest.fixture
def three_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    yield
    torch.set_num_threads(before)


@pytest.mark.usefixtures("three_threads")
def test_every_piece_has_one_thread_and_results_come_in_order() -> None:
    def piece(number: int) -> tuple[int, int]:
        return number, torch.get_num_threads()

    assert in_threads([partial(piece, k) for k in range(7)]) == [(k, 1) for k in range(7)]
    assert torch.get_num_threads() == 3


@pytest.mark.usefixtures("three_threads")
def test_a_single_piece_has_all_threads() -> None:
    assert in_threads([torch.get_num_threads]) == [3]
    assert in_threads([]) == []


@pytest.mark.usefixtures("three_threads")
def test_what_goes_wrong_in_one_piece_is_raised_here() -> None:
    def fails() -> int:
        raise ValueError("this one")

    with pytest.raises(ValueError, match="this one"):
        in_threads([lambda: 1, fails, lambda: 3])


@pytest.mark.parametrize("name", ["fedmf", "fedem", "pfedclr"])
def test_values_are_the_same_to_rounding_on_several_threads(name: str, request: pytest.FixtureRequest) -> None:
    """What a stack learns is the same to the bit; the server's sums may be rounded otherwise."""
    one, other = (federation(METHODS[name](), small_world(), block_clients=5) for _ in range(2))
    for number in (1, 2):
        one.round(number)
    request.getfixturevalue("three_threads")
    for number in (1, 2):
        other.round(number)
    torch.testing.assert_close(one.pack(), other.pack(), rtol=1e-6, atol=1e-6)
