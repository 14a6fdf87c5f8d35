"""Support and query: two halves that make a whole."""

from __future__ import annotations

from collections import Counter

import pytest

from ownview import FedMF, Phase
from ownview.engine.samples import Samples, half_of
from ownview.testing.worlds import federation, small_world

GROUP = 4


def _drawn() -> Samples:
    one = federation(FedMF(negatives=GROUP - 1), small_world())
    drawn: Samples = one.work.samples(1, one.split.train.lengths.argsort(descending=True, stable=True))
    return drawn


def _pairs(samples: Samples, client: int) -> list[tuple[int, float]]:
    mine = samples.alone(client)
    return list(zip(mine.items[mine.rows].tolist(), mine.labels.tolist(), strict=True))


def _groups(samples: Samples, client: int) -> list[tuple[tuple[int, float], ...]]:
    pairs = _pairs(samples, client)
    return [tuple(pairs[k : k + GROUP]) for k in range(0, len(pairs), GROUP)]


def test_halves_make_the_whole_and_keep_a_positive_with_its_negatives() -> None:
    samples = _drawn()
    support, query = (half_of(samples, part, GROUP, key=5) for part in ("support", "query"))
    for client in range(len(samples.clients)):
        whole, first, second = (_groups(one, client) for one in (samples, support, query))
        assert Counter(first) + Counter(second) == Counter(whole)
        assert len(first) - len(second) in (0, 1), "the support has the odd one"
        assert all(group[0][1] == 1 and not any(label for _, label in group[1:]) for group in first + second)


def test_padding_is_no_sample() -> None:
    query = half_of(_drawn(), "query", GROUP, key=5)
    padding = ~query.real_samples
    assert padding.any()
    assert not query.labels[padding].any()
    assert not query.rows[padding].any()
    assert query.sizes.tolist() == list(query.host_sizes) == sorted(query.host_sizes, reverse=True)


def test_a_single_positive_is_the_support() -> None:
    samples = _drawn()
    smallest = len(samples.clients) - 1
    assert samples.host_sizes[smallest] == GROUP, "the world has a client with one training positive"
    assert half_of(samples, "support", GROUP, key=5).host_sizes[smallest] == GROUP
    assert half_of(samples, "query", GROUP, key=5).host_sizes[smallest] == 0


def test_one_client_alone_gets_the_half_it_gets_in_a_stack() -> None:
    samples = _drawn()
    for part in ("support", "query"):
        stacked = half_of(samples, part, GROUP, key=5)
        for client in range(len(samples.clients)):
            alone = half_of(samples.alone(client), part, GROUP, key=5)
            here = stacked.alone(client)
            assert alone.sizes == here.sizes
            assert alone.rows[: int(alone.sizes)].tolist() == here.rows.tolist()
            assert alone.labels[: int(alone.sizes)].tolist() == here.labels.tolist()


def test_another_key_draws_other_halves() -> None:
    samples = _drawn()
    halves = [_pairs(half_of(samples, "support", GROUP, key=key), 0) for key in (5, 5, 6)]
    assert halves[0] == halves[1] != halves[2]


def test_an_unknown_part_is_refused() -> None:
    with pytest.raises(ValueError, match="not 'supports'"):
        Phase((), 1, part="supports")
