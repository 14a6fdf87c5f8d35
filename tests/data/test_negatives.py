"""Training negatives: where they come from, and that nothing but user, key and place decides them."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from ownview.base.errors import DataError
from ownview.base.randomness import derive
from ownview.data import negatives as module
from ownview.data.negatives import NegativeSampler
from ownview.data.ragged import Ragged


def ragged(lists: list[set[int]]) -> Ragged:
    user = np.repeat(np.arange(len(lists)), [len(one) for one in lists])
    value = np.array([item for one in lists for item in sorted(one)], dtype=np.int64)
    return Ragged.from_distinct_pairs(user, value, len(lists))


@st.composite
def worlds(draw: st.DrawFn) -> tuple[list[set[int]], int, int]:
    """Excluded items of some users, the number of items, and negatives a positive that every user leaves room for."""
    num_items = draw(st.integers(1, 25))
    one_user = st.sets(st.integers(0, num_items - 1), max_size=num_items - 1)
    excluded = draw(st.lists(one_user, min_size=1, max_size=6))
    room = num_items - max(map(len, excluded))
    return excluded, num_items, draw(st.integers(1, min(room, 6)))


@settings(max_examples=50)
@given(worlds(), st.integers(0, 2**62), st.integers(1, 9))
def test_negatives_are_in_range_never_excluded_and_distinct_for_a_positive(
    world: tuple[list[set[int]], int, int], key: int, positives: int
) -> None:
    excluded, num_items, count = world
    drawn = NegativeSampler(ragged(excluded), num_items, count).draw(key, torch.arange(len(excluded)), positives)
    assert drawn.shape == (len(excluded), positives, count)
    for user, own in enumerate(excluded):
        for negatives in drawn[user].tolist():
            assert len(set(negatives)) == count
            assert set(negatives) <= set(range(num_items)) - own


@settings(max_examples=50)
@given(worlds(), st.integers(0, 2**62), st.data())
def test_negatives_do_not_depend_on_the_block_or_on_padding(
    world: tuple[list[set[int]], int, int], key: int, choice: st.DataObject
) -> None:
    excluded, num_items, count = world
    sampler = NegativeSampler(ragged(excluded), num_items, count)
    every = sampler.draw(key, torch.arange(len(excluded)), 8)
    block = torch.tensor(choice.draw(st.permutations(range(len(excluded)))))
    block = block[: choice.draw(st.integers(1, len(excluded)))]
    positives = choice.draw(st.integers(1, 8))
    assert torch.equal(sampler.draw(key, block, positives), every[block, :positives])


@settings(max_examples=50)
@given(worlds(), st.integers(0, 2**62), st.data())
def test_a_client_alone_draws_by_its_identity_what_it_draws_among_all(
    world: tuple[list[set[int]], int, int], key: int, choice: st.DataObject
) -> None:
    excluded, num_items, count = world
    every = NegativeSampler(ragged(excluded), num_items, count).draw(key, torch.arange(len(excluded)), 4)
    some = choice.draw(st.lists(st.sampled_from(range(len(excluded))), min_size=1, max_size=3, unique=True))
    alone = NegativeSampler(ragged([excluded[one] for one in some]), num_items, count)
    assert torch.equal(alone.draw(key, torch.arange(len(some)), 4, torch.tensor(some)), every[some])


def test_client_17_of_943_is_the_same_client_on_a_device_of_its_own() -> None:
    lists = [{user % 100, 300 + user % 7} for user in range(943)]
    every = NegativeSampler(ragged(lists), 1000, 4).draw(derive(0, "negatives", 1), torch.arange(943), 20)
    device = NegativeSampler(ragged(lists[17:18]), 1000, 4)
    first = torch.tensor([0])
    drawn = device.draw(derive(0, "negatives", 1), first, 20, identities=torch.tensor([17]))
    assert torch.equal(drawn[0], every[17])
    without = device.draw(derive(0, "negatives", 1), first, 20)
    assert torch.equal(without, device.draw(derive(0, "negatives", 1), first, 20, identities=first))
    assert not torch.equal(without, drawn)


@settings(max_examples=50)
@given(worlds(), st.integers(0, 2**62))
def test_as_many_negatives_as_items_left_are_exactly_those_items(
    world: tuple[list[set[int]], int, int], key: int
) -> None:
    excluded, num_items, _ = world
    for own in excluded:
        left = sorted(set(range(num_items)) - own)
        drawn = NegativeSampler(ragged([own]), num_items, len(left)).draw(key, torch.tensor([0]), 2)
        assert drawn.sort(dim=-1).values[0].tolist() == [left, left]


def test_equal_keys_repeat_and_other_keys_do_not() -> None:
    sampler = NegativeSampler(ragged([{3, 5}, {0}]), 1000, 4)
    users = torch.arange(2)
    first, again, other = (sampler.draw(derive(0, "negatives", r), users, 20) for r in (1, 1, 2))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    assert not torch.equal(first[0], first[1])


def test_negatives_are_uniform_over_what_is_left_in_each_place() -> None:
    excluded, num_items, positives = {0, 4, 5, 11}, 12, 30_000
    drawn = NegativeSampler(ragged([excluded]), num_items, 4).draw(derive(0, "uniform"), torch.tensor([0]), positives)
    left = sorted(set(range(num_items)) - excluded)
    expected, freedom = positives / len(left), len(left) - 1
    for place in range(4):
        counts = torch.bincount(drawn[0, :, place], minlength=num_items)[left]
        assert int(counts.sum()) == positives
        statistic = float(((counts - expected) ** 2 / expected).sum())
        assert statistic < freedom + 5 * math.sqrt(2 * freedom)  # mean and 5 standard deviations of chi-square


def test_pairs_of_negatives_are_uniform_too() -> None:
    """Stepping over earlier draws must not favour any pair: all 5 * 4 ordered pairs are equally likely."""
    drawn = NegativeSampler(ragged([{1}]), 6, 2).draw(derive(0, "pairs"), torch.tensor([0]), 40_000)[0]
    counts = torch.bincount(drawn[:, 0] * 6 + drawn[:, 1], minlength=36)
    possible = counts[counts > 0]
    assert len(possible) == 20
    statistic = float(((possible - 2000) ** 2 / 2000).sum())
    assert statistic < 19 + 5 * math.sqrt(2 * 19)


def test_negatives_of_neighbouring_positives_and_users_are_unrelated() -> None:
    drawn = NegativeSampler(ragged([{1}] * 50), 1001, 4).draw(derive(0, "n"), torch.arange(50), 200).double()
    for left, right in ((drawn[:, 1:], drawn[:, :-1]), (drawn[1:], drawn[:-1])):
        for one in range(4):
            for other in range(4):
                pair = torch.stack([left[..., one].flatten(), right[..., other].flatten()])
                assert abs(float(torch.corrcoef(pair)[0, 1])) < 5 / 99  # 9,800 pairs or more


def test_users_who_exclude_nothing_can_draw_everything() -> None:
    drawn = NegativeSampler(ragged([set(), set()]), 3, 3).draw(1, torch.arange(2), 1)
    assert drawn.sort(dim=-1).values.tolist() == [[[0, 1, 2]], [[0, 1, 2]]]


def test_too_few_items_left_is_an_error_that_names_user_and_counts() -> None:
    with pytest.raises(DataError, match=r"user at position 1 leaves only 2 of 5 items .* expected at least 3"):
        NegativeSampler(ragged([{0}, {0, 2, 4}]), 5, 3)
    for names in (np.array(["ann", "bob"], dtype=object), np.array([7, 1])):
        with pytest.raises(DataError, match=rf"user {names[1]} leaves only 2 of 5 items .* expected at least 3"):
            NegativeSampler(ragged([{0}, {0, 2, 4}]), 5, 3, names=names)
    assert NegativeSampler(ragged([{0}, {0, 2, 4}]), 5, 2).draw(0, torch.tensor([1]), 1).shape == (1, 1, 2)


@pytest.mark.parametrize("num_items", [40, 2**15, 2**15 + 1])
def test_listed_items_are_those_that_a_search_finds(monkeypatch: pytest.MonkeyPatch, num_items: int) -> None:
    lists = ragged([{0, 1, 7, 39}, set(), {num_items - 1, 3}])
    users = torch.tensor([2, 0, 1, 2])
    listed = NegativeSampler(lists, num_items, 4).draw(5, users, 6)
    monkeypatch.setattr(module, "_LISTED_BYTES", 0)
    assert torch.equal(listed, NegativeSampler(lists, num_items, 4).draw(5, users, 6))


@pytest.mark.parametrize("room", [0, 10**6])
def test_a_block_looks_at_nobody_elses_list(monkeypatch: pytest.MonkeyPatch, room: int) -> None:
    """Else the cost of a client grows with the number of all."""
    monkeypatch.setattr(module, "_LISTED_BYTES", room)
    lists = Ragged(torch.tensor([0, 2, 2, 5]), torch.tensor([1, 4, 0, 3, 5]))
    users, sampler = torch.tensor([2, 0]), NegativeSampler(lists, 9, 2)
    sampler.draw(derive(0, "negatives"), users, 1)  # what is listed once for all
    assert lists.lengths_of(users).tolist() == lists.lengths[users].tolist() == [3, 2]
    monkeypatch.setattr(Ragged, "lengths", property(lambda _: pytest.fail("all lists are measured for a block")))
    values, real = lists.padded(users)
    assert [row[mask].tolist() for row, mask in zip(values, real, strict=True)] == [[0, 3, 5], [1, 4]]
    assert sampler.draw(derive(0, "negatives"), users, 3).shape == (2, 3, 2)
