"""Random numbers that depend on what they are for and on nothing else."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from ownview.base.randomness import below, bits, derive, generator, sort_keys, unit

keys = st.integers(0, 2**63 - 1)


def drawn(key: int, clients: int, counters: int) -> Tensor:
    """[clients, counters] bits."""
    return bits(key, torch.arange(clients)[:, None], torch.arange(counters))


def correlation(left: Tensor, right: Tensor) -> float:
    return float(torch.corrcoef(torch.stack([left.flatten(), right.flatten()]))[0, 1])


def splitmix_finaliser(state: int) -> int:
    """The published 64-bit finaliser, in Python's unbounded integers."""
    state = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) % 2**64
    state = ((state ^ (state >> 27)) * 0x94D049BB133111EB) % 2**64
    return state ^ (state >> 31)


@settings(max_examples=50)
@given(keys, st.integers(-(2**40), 2**40), st.integers(0, 2**40))
def test_bits_are_the_published_hash_in_unsigned_arithmetic(key: int, client: int, counter: int) -> None:
    golden = 0x9E3779B97F4A7C15
    stream = splitmix_finaliser((client * golden + key) % 2**64)
    expected = splitmix_finaliser((stream + (counter + 1) * golden) % 2**64) % 2**63
    assert int(bits(key, torch.tensor(client), torch.tensor(counter))) == expected


@settings(max_examples=50)
@given(keys, st.lists(st.integers(0, 10**9), min_size=1, max_size=20), st.data())
def test_bits_do_not_depend_on_shape_order_or_company(key: int, clients: list[int], choice: st.DataObject) -> None:
    counters = torch.arange(7)
    together = bits(key, torch.tensor(clients)[:, None], counters)
    order = choice.draw(st.permutations(range(len(clients))))
    shuffled = bits(key, torch.tensor(clients)[order][:, None], counters)
    assert torch.equal(shuffled, together[order])
    for client, row in zip(clients, together, strict=True):
        alone = [int(bits(key, torch.tensor([client]), torch.tensor([counter]))) for counter in range(7)]
        assert row.tolist() == alone


def test_bits_are_non_negative_and_use_all_63() -> None:
    values = drawn(derive(0, "test"), 300, 300)
    assert values.dtype == torch.int64
    assert int(values.min()) >= 0
    for place in range(63):  # 90,000 fair coins: the mean is within 5 standard deviations of one half
        share = float((values >> place & 1).double().mean())
        assert abs(share - 0.5) < 5 * 0.5 / 300


def test_bits_do_not_repeat() -> None:
    assert len(torch.unique(drawn(derive(0, "test"), 300, 300))) == 300 * 300


def test_narrow_integers_give_the_same_bits() -> None:
    narrow = bits(5, torch.arange(9, dtype=torch.int32), torch.arange(9, dtype=torch.int32))
    assert torch.equal(narrow, bits(5, torch.arange(9), torch.arange(9)))


@settings(max_examples=50)
@given(keys, st.integers(1, 2**31 - 1))
def test_below_is_in_range(key: int, bound: int) -> None:
    values = below(drawn(key, 10, 10), bound)
    assert int(values.min()) >= 0
    assert int(values.max()) < bound


def test_below_reaches_both_ends_of_the_largest_bound() -> None:
    extremes = torch.tensor([0, 2**63 - 1])
    assert below(extremes, 2**31 - 1).tolist() == [0, 2**31 - 2]
    assert below(extremes, torch.tensor([1, 7])).tolist() == [0, 6]


@pytest.mark.parametrize("bound", [2, 7, 100])
def test_below_is_uniform(bound: int) -> None:
    counts = torch.bincount(below(drawn(derive(1, "uniform"), 200, 500), bound).flatten(), minlength=bound)
    expected = 200 * 500 / bound
    statistic = float(((counts - expected) ** 2 / expected).sum())
    freedom = bound - 1  # chi-square has mean f and variance 2 f
    assert statistic < freedom + 5 * math.sqrt(2 * freedom)


def test_unit_lies_in_zero_to_one_even_at_the_extremes() -> None:
    low, high = unit(torch.tensor([0, 2**63 - 1])).tolist()
    assert low == 0.0
    assert 1 - 1e-15 < high < 1


def test_unit_has_the_mean_and_variance_of_the_uniform_distribution() -> None:
    values = unit(drawn(derive(2, "unit"), 300, 300))
    assert values.dtype == torch.float64
    assert abs(float(values.mean()) - 0.5) < 5 * math.sqrt(1 / 12) / 300
    assert abs(float(values.var()) - 1 / 12) < 5 * math.sqrt(1 / 180) / 300


def test_keys_of_other_seeds_purposes_and_numbers_differ() -> None:
    asked = [(seed, purpose, number) for seed in range(5) for purpose in ("split", "candidates") for number in range(9)]
    made = [derive(*one) for one in asked]
    assert len(set(made)) == len(asked)
    assert derive(0, "split") not in made
    assert all(0 <= key < 2**63 for key in made)
    assert made == [derive(*one) for one in asked]


def test_a_key_never_changes_between_versions() -> None:
    assert derive(0, "split") == 7808932479262376786
    assert derive(7, "negatives", 3, 4) == 1070376464324639781


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (derive(0, "negatives", 1), derive(0, "negatives", 2)),
        (derive(0, "negatives"), derive(0, "participants")),
        (derive(0, "negatives"), derive(1, "negatives")),
        (10, 11),
    ],
)
def test_draws_for_different_purposes_are_unrelated(left: int, right: int) -> None:
    one, other = unit(drawn(left, 200, 200)), unit(drawn(right, 200, 200))
    for moved in (0, 1):  # neither in place nor one counter on; 5 standard deviations of 40,000 pairs
        assert abs(correlation(one, other.roll(moved, dims=1))) < 5 / 200


def test_neighbouring_clients_and_counters_are_unrelated() -> None:
    values = unit(drawn(derive(3, "grid"), 200, 200))
    assert abs(correlation(values[1:], values[:-1])) < 5 / 199
    assert abs(correlation(values[:, 1:], values[:, :-1])) < 5 / 199
    assert abs(correlation(values[1:, :-1], values[:-1, 1:])) < 5 / 199


def test_generators_repeat_for_a_purpose_and_differ_for_another() -> None:
    def numbers(seed: int, purpose: str, *more: int) -> list[float]:
        return torch.randn(5, generator=generator(seed, purpose, *more)).tolist()

    assert numbers(0, "start", 1) == numbers(0, "start", 1)
    assert len({tuple(numbers(*one)) for one in ((0, "start"), (1, "start"), (0, "other"), (0, "start", 1))}) == 4


@settings(max_examples=50)
@given(st.lists(st.lists(st.integers(-(2**62), 2**62), min_size=4, max_size=4), min_size=1, max_size=8))
def test_sort_keys_sorts_each_row(rows: list[list[int]]) -> None:
    given_keys = torch.tensor(rows)
    assert sort_keys(given_keys).tolist() == [sorted(row) for row in rows]
    assert given_keys.tolist() == rows
    assert sort_keys(given_keys.T).tolist() == [sorted(column) for column in zip(*rows, strict=True)]
