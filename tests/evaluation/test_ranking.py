"""The ranker against a plain loop over users, and the candidates it asks about."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.questions import NO_ANSWER, right, single
from torch import Tensor

from ownview.base.errors import DataError, TrainingError
from ownview.base.randomness import derive
from ownview.baselines.parts.central import Asked
from ownview.baselines.popularity import Popularity
from ownview.data import Interactions
from ownview.data.questions import Question
from ownview.data.ragged import Ragged
from ownview.data.splitting.splits import Split
from ownview.data.timeline import Timeline
from ownview.evaluation.metrics import means
from ownview.evaluation.named_protocols import HONEST, PAPER
from ownview.evaluation.protocol import Protocol
from ownview.evaluation.ranking import NONE, Ranker, _best, rankers, sample_candidates

CPU = torch.device("cpu")
FEW = Protocol(name="few", candidates=5)
FEW_KNOWN = replace(FEW, candidates_avoid="known")


class Table:
    """Scores that are given: [users, items]."""

    def __init__(self, table: Tensor) -> None:
        self.table = table

    def scores(self, users: Tensor, items: Tensor | None) -> Tensor:
        return self.table[users] if items is None else self.table[users].gather(1, items)


class Shared:
    """Popularity: one row of memory stands for all users."""

    def __init__(self, split: Split) -> None:
        self.learned, self.known = Popularity().fit(split, split.training_items(), 0), split.timeline

    def scores(self, users: Tensor, items: Tensor | None) -> Tensor:
        assert items is None
        return Popularity().scores(self.learned, Asked(users, self.known))


def world(users: int, items: int, seed: int, *, most: int = 8, repeats: bool = False) -> Interactions:
    """Users with 3 to `most` rows each; every item of the universe has a row of some user."""
    random = np.random.default_rng(seed)
    counts = random.integers(3, most + 1, size=users)
    item = [random.choice(items, size=count, replace=repeats) for count in counts]
    user = np.concatenate([np.repeat(np.arange(users), counts), np.full(items, users)])
    everything = np.concatenate([*item, np.arange(items)])
    return Interactions.from_rows("world", user, everything, timestamp=random.permutation(len(user)).astype(np.int64))


def split_of(protocol: Protocol, data: Interactions) -> Split:
    """The split without the last user, who has everything and leaves no candidates."""
    split = protocol.prepare(data)
    validation, test = (without(question, split.num_users - 1) for question in (split.validation, split.test))
    return replace(split, validation=validation, test=test)


def without(question: Question, *users: int) -> Question:
    """The same question to everybody but some users."""
    answers = single(question)
    answers[list(users)] = NO_ANSWER
    return replace(question, relevant=right(answers))


def asked(protocol: Protocol, split: Split, seed: int = 0, memory: int = 10**6) -> tuple[Ranker, Ranker]:
    return rankers(protocol, split, seed, CPU, memory)


def hidden_sets(split: Split, stage: int) -> list[set[int]]:
    """By user: training items, and at test the validation item."""
    train = [set(split.train.of(user).tolist()) for user in range(split.num_users)]
    return [one | set(split.validation.answers(user)) if stage else one for user, one in enumerate(train)]


def loop(ranker: Ranker, table: Tensor, hidden: list[set[int]]) -> list[tuple[int, int, int, int]]:
    """(user, better, tied, candidates) by comparing one pair of scores at a time."""
    rows = []
    for place, (user, held) in enumerate(zip(ranker.users.tolist(), ranker.relevant.values.tolist(), strict=True)):
        if ranker.sampled is None:
            others = [item for item in range(table.shape[1]) if item not in hidden[user] and item != held]
        else:
            others = ranker.sampled[place].tolist()
        mine = float(table[user, held])
        better = sum(float(table[user, item]) > mine for item in others)
        tied = sum(float(table[user, item]) == mine for item in others)
        rows.append((user, better, tied, len(others) + 1))
    return rows


def rows_of(ranker: Ranker, table: Tensor) -> list[tuple[int, int, int, int]]:
    found = ranker.rank(Table(table))
    return list(zip(*(a.tolist() for a in (found.users, found.better, found.tied, found.candidates)), strict=True))


@pytest.mark.parametrize(
    "protocol",
    [HONEST, replace(HONEST, name="repeats", repeats="keep"), FEW, FEW_KNOWN, replace(PAPER, name="5", candidates=5)],
    ids=["honest", "repeats kept", "sampled", "sampled unknown", "paper of 5"],
)
@settings(max_examples=30)
@given(
    users=st.integers(1, 12), items=st.integers(20, 30), seed=st.integers(0, 10**6), levels=st.sampled_from([3, 999])
)
def test_ranks_are_those_of_a_plain_loop(protocol: Protocol, users: int, items: int, seed: int, levels: int) -> None:
    split = split_of(protocol, world(users, items, seed, repeats=protocol.repeats == "keep"))
    table = torch.from_numpy(np.random.default_rng(seed).integers(levels, size=(users + 1, items)) / 8)
    for stage, ranker in enumerate(asked(protocol, split, seed)):
        assert rows_of(ranker, table) == loop(ranker, table, hidden_sets(split, stage))


@pytest.mark.parametrize("protocol", [HONEST, FEW])
def test_the_block_size_changes_nothing(protocol: Protocol) -> None:
    split = split_of(protocol, world(41, 30, 0))
    table = torch.from_numpy(np.random.default_rng(0).integers(6, size=(42, 30)) / 2)
    ranker = asked(protocol, split)[1]
    whole, lists = rows_of(ranker, table), ranker.top(Table(table), 7)
    for block in (1, 2, 7, 41, 4096):
        assert rows_of(replace(ranker, block=block), table) == whole
        assert (replace(ranker, block=block).top(Table(table), 7) == lists).all()


def test_blocks_shrink_with_the_memory_and_never_vanish() -> None:
    split = split_of(HONEST, world(41, 30, 0))
    assert [asked(HONEST, split, memory=memory)[0].block for memory in (1, 30 * 64 * 5, 10**12)] == [1, 5, 4096]


def test_ranking_leaves_the_models_scores_as_they_were() -> None:
    """A model may hand out one row for everybody: hiding one user's items must not hide them for another."""
    split = split_of(HONEST, world(60, 30, 1))
    counts = [float(split.train.values.tolist().count(item)) for item in range(30)]
    shared, copied = Shared(split), Table(torch.tensor([counts] * split.num_users))
    ranker = asked(HONEST, split)[1]
    standing = ranker.rank(shared)
    expected = loop(ranker, copied.table, hidden_sets(split, 1))
    assert list(zip(standing.better.tolist(), standing.tied.tolist(), strict=True)) == [row[1:3] for row in expected]
    assert (ranker.top(shared, 9) == ranker.top(copied, 9)).all()
    assert shared.scores(torch.tensor([0]), None)[0].tolist() == counts


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("protocol", [HONEST, FEW])
def test_scores_that_are_not_finite_are_an_error(protocol: Protocol, bad: float) -> None:
    split = split_of(protocol, world(5, 20, 0))
    ranker = asked(protocol, split)[1]
    table = torch.zeros(6, 20)
    table[int(ranker.users[3]), int(ranker.relevant.values[3])] = bad
    with pytest.raises(TrainingError, match=r"scores of user .* are not finite"):
        ranker.rank(Table(table))
    with pytest.raises(TrainingError, match=r"scores of user .* are not finite"):
        ranker.top(Table(table), 3)


def test_users_without_a_held_out_item_are_not_ranked() -> None:
    split = split_of(HONEST, world(8, 25, 0))
    first, second = asked(HONEST, replace(split, validation=without(split.validation, 1, 4)))
    assert first.users.tolist() == [0, 2, 3, 5, 6, 7]
    assert second.users.tolist() == list(range(8))
    with pytest.raises(DataError, match="world: no user can be asked for validation under protocol honest"):
        asked(HONEST, replace(split, validation=without(split.validation, *range(9))))


@settings(max_examples=30)
@given(st.integers(0, 10**6), st.sampled_from(["training", "known"]), st.integers(1, 12), st.booleans())
def test_candidates_are_distinct_and_avoid_what_the_protocol_says(
    seed: int, avoid: str, count: int, same: bool
) -> None:
    protocol = Protocol(name="any", candidates=count, candidates_avoid=avoid, same_candidates=same)
    split = split_of(protocol, world(9, 25, seed))
    known = [set(split.known_items().of(user).tolist()) for user in range(9)]
    for stage, ranker in enumerate(asked(protocol, split, seed)):
        assert ranker.sampled is not None
        assert ranker.sampled.shape == (9, count)
        for user, held, row in zip(range(9), ranker.relevant.values.tolist(), ranker.sampled.tolist(), strict=True):
            forbidden = known[user] if avoid == "known" else hidden_sets(split, stage)[user] | {held}
            assert len(set(row)) == count
            assert set(row) <= set(range(25)) - forbidden


def test_avoiding_training_alone_lets_validation_rank_against_the_test_item() -> None:
    split = split_of(FEW, world(200, 25, 0))
    drawn = {avoid: asked(p, split)[0].sampled for avoid, p in (("training", FEW), ("known", FEW_KNOWN))}
    met = {
        avoid: sum(split.test.answers(user)[0] in row for user, row in enumerate(sampled.tolist()))
        for avoid, sampled in drawn.items()
        if sampled is not None
    }
    assert met["known"] == 0
    assert 200 * 5 / 24 / 2 < met["training"] < 200 * 5 / 15 * 2  # 5 of 16 to 22 free items, with a wide margin


def test_paper_ranks_against_99_unknown_items_and_honest_against_all() -> None:
    split = split_of(PAPER, world(30, 150, 0))
    for ranker in asked(PAPER, split):
        assert ranker.sampled is not None
        assert ranker.sampled.shape == (30, 99)
        for user, row in enumerate(ranker.sampled.tolist()):
            assert not set(row) & set(split.known_items().of(user).tolist())
    assert [ranker.sampled for ranker in asked(HONEST, split)] == [None, None]


def test_candidates_are_fixed_for_a_seed_and_differ_for_another_and_between_stages() -> None:
    split = split_of(PAPER, world(30, 150, 0))
    first, again, other = (asked(PAPER, split, seed) for seed in (0, 0, 1))
    samples = [ranker.sampled for pair in (first, again, other) for ranker in pair]
    assert all(torch.equal(samples[k], samples[k + 2]) for k in (0, 1))  # type: ignore[arg-type]
    sets = [[frozenset(row) for row in sample.tolist()] for sample in (samples[0], samples[1], samples[4])]  # type: ignore[union-attr]
    assert all(len({one, two, three}) == 3 for one, two, three in zip(*sets, strict=True))


def test_same_candidates_serve_validation_and_test() -> None:
    protocol = replace(PAPER, name="same", same_candidates=True)
    first, second = asked(protocol, split_of(protocol, world(30, 150, 0)))
    assert first.sampled is not None
    assert second.sampled is not None
    assert torch.equal(first.sampled, second.sampled)
    assert not torch.equal(first.relevant.values, second.relevant.values)


def test_same_candidates_that_may_meet_the_test_item_differ_in_it_alone() -> None:
    protocol = replace(FEW, name="same", same_candidates=True)
    split = split_of(protocol, world(100, 25, 0))
    first, second = (set_rows(ranker) for ranker in asked(protocol, split))
    for user in range(100):
        assert first[user] - second[user] <= set(split.test.answers(user))
    assert sum(one == other for one, other in zip(first, second, strict=True)) > 50


def set_rows(ranker: Ranker) -> list[set[int]]:
    assert ranker.sampled is not None
    return [set(row) for row in ranker.sampled.tolist()]


def test_a_users_candidates_do_not_depend_on_who_else_is_ranked() -> None:
    split = split_of(FEW_KNOWN, world(1500, 25, 0))  # more users than are drawn for at once
    users = np.arange(1500)
    every = sample_candidates(derive(0, "c"), users, single(split.test)[users], split.known_items(), split, 5)
    some = users[3::7]
    part = sample_candidates(derive(0, "c"), some, single(split.test)[some], split.known_items(), split, 5)
    assert torch.equal(part, every[some])


def test_candidates_are_uniform_over_what_is_allowed() -> None:
    split = split_of(FEW, world(1, 20, 0))
    allowed = sorted(set(range(20)) - hidden_sets(split, 1)[0] - set(split.test.answers(0)))
    held, avoid = single(split.test)[:1], split.known_items()
    drawn = torch.cat(
        [sample_candidates(derive(s, "c"), np.array([0]), held, avoid, split, 5).flatten() for s in range(3000)]
    )
    counts = torch.bincount(drawn, minlength=20)[allowed]
    expected, freedom = 3000 * 5 / len(allowed), len(allowed) - 1
    assert int(counts.sum()) == 3000 * 5
    assert float(((counts - expected) ** 2 / expected).sum()) < freedom + 5 * math.sqrt(2 * freedom)


def test_too_few_items_for_99_candidates_is_an_error_that_names_user_and_counts() -> None:
    users = np.array(["ann"] * 3 + ["bob"] * 60, dtype=object)
    items = np.concatenate([[0, 1, 2], np.arange(60)])
    split = PAPER.prepare(Interactions.from_rows("small", users, items, timestamp=np.arange(63)))
    with pytest.raises(DataError, match="small: user bob leaves 0 of 60 items as candidates; expected at least 99"):
        asked(PAPER, split)


def test_exactly_enough_items_is_enough_and_one_less_is_not() -> None:
    users, items = np.repeat([0, 1], [3, 7]), np.concatenate([[0, 1, 2], np.arange(3, 10)])
    split = PAPER.prepare(Interactions.from_rows("edge", users, items, timestamp=np.arange(10)))
    found = [set_rows(ranker) for ranker in asked(replace(PAPER, name="3", candidates=3), split)]
    assert found[0][1] == found[1][1] == {0, 1, 2}
    with pytest.raises(DataError, match="edge: user 1 leaves 3 of 10 items as candidates; expected at least 4"):
        asked(replace(PAPER, name="4", candidates=4), split)


@settings(max_examples=30)
@given(st.integers(0, 10**6), st.integers(1, 30), st.sampled_from([2, 999]))
def test_top_lists_are_the_best_items_that_are_not_hidden(seed: int, k: int, levels: int) -> None:
    split = split_of(HONEST, world(7, 20, seed, most=18))
    table = torch.from_numpy(np.random.default_rng(seed).integers(levels, size=(8, 20)) / 4)
    lists = asked(HONEST, split)[1].top(Table(table), k)
    assert lists.shape == (7, k)
    for user, hidden in zip(range(7), hidden_sets(split, 1), strict=False):
        free = [item for item in range(20) if item not in hidden]
        best = sorted(free, key=lambda item: (-float(table[user, item]), item))[:k]
        assert lists[user].tolist() == best + [NONE] * (k - len(best))


@pytest.mark.parametrize("protocol", [HONEST, replace(FEW, candidates=40)], ids=["all items", "sampled"])
def test_random_scores_are_at_chance(protocol: Protocol) -> None:
    split = split_of(protocol, world(3000, 60, 0))
    found = asked(protocol, split)[1].rank(Table(torch.from_numpy(np.random.default_rng(1).normal(size=(3001, 60)))))
    values = means(found, (10,))
    chance = 10 / found.candidates
    spread = math.sqrt(float((chance * (1 - chance)).sum())) / len(chance)
    assert abs(values["HR@10"] - float(chance.mean())) < 4 * spread
    assert abs(values["AUC"] - 0.5) < 4 * math.sqrt(1 / 12 / len(chance)) * 1.05


def test_constant_scores_are_exactly_at_chance_under_expected_ties_and_worst_under_last() -> None:
    split = split_of(HONEST, world(50, 60, 0))
    table = Table(torch.zeros(51, 60))
    found = asked(HONEST, split)[1].rank(table)
    harmonic = [sum(1 / rank for rank in range(1, count + 1)) / count for count in found.candidates.tolist()]
    expected = means(found, (10,))
    assert found.tied_share == 1
    assert expected["HR@10"] == pytest.approx(float((10 / found.candidates).mean()))
    assert expected["MRR"] == pytest.approx(float(np.mean(harmonic)))
    assert expected["AUC"] == 0.5
    worst = means(asked(replace(HONEST, name="last", ties="last"), split)[1].rank(table), (10,))
    assert worst == pytest.approx(
        {"HR@10": 0, "NDCG@10": 0, "MRR": float((1 / found.candidates).mean()), "AUC": 0}, abs=1e-12
    )


@given(st.integers(0, 2**31), st.integers(1, 12), st.integers(1, 60), st.integers(1, 70))
def test_the_best_are_those_of_a_full_sort_and_ties_go_to_the_lower_position(
    seed: int, users: int, items: int, k: int
) -> None:
    generator = torch.Generator().manual_seed(seed)
    scores = torch.randint(0, 5, (users, items), generator=generator).float()  # many ties
    hidden = [sorted(torch.randperm(items, generator=generator)[: items // 2].tolist()) for _ in range(users)]
    lists = Ragged.from_pairs(np.repeat(np.arange(users), items // 2), np.array(hidden, dtype=np.int64).ravel(), users)
    nothing = Ragged(torch.zeros(users + 1, dtype=torch.long), torch.zeros(0, dtype=torch.long))
    question = Question(nothing, Timeline(nothing), lists, open=True)
    clients = torch.arange(users)
    ranker = Ranker(question, clients, nothing, None, lists, "expected", items, np.arange(users), CPU, 5)
    found, values = ranker.best(Table(scores), k)
    for user in range(users):
        free = [item for item in range(items) if item not in hidden[user]]
        wanted = sorted(free, key=lambda item: (-float(scores[user, item]), item))[:k]
        assert found[user].tolist() == wanted + [NONE] * (k - len(wanted))
        assert values[user, : len(wanted)].tolist() == [float(scores[user, item]) for item in wanted]
        assert np.isneginf(values[user, len(wanted) :]).all()


@pytest.mark.parametrize("steps", [2, 40, 10**6])
@pytest.mark.parametrize("items", [641, 672, 1_500])
def test_the_best_of_many_items_are_those_of_a_stable_sort(items: int, steps: int) -> None:
    draw = torch.Generator().manual_seed(items + steps)
    scores = torch.randint(steps, (50, items), generator=draw).float()
    scores[7, 5:] = -torch.inf
    scores[8] = 0.0
    values, places = _best(scores, 10)
    wanted = scores.sort(dim=1, descending=True, stable=True)
    assert torch.equal(values, wanted.values[:, :10])
    assert torch.equal(places, wanted.indices[:, :10])


def test_candidates_are_counted_where_hidden_items_repeat_and_one_is_the_answer() -> None:
    data = world(6, 40, 3)
    split = HONEST.prepare(data, None)
    ranker = rankers(HONEST, split, 0, CPU, 10**6)[1]
    lists = [[*ranker.hidden.of(user).tolist()] * 2 + ranker.question.answers(user) for user in range(split.num_users)]
    owners = [user for user, every in enumerate(lists) for _ in every]
    hidden = Ragged.from_pairs(np.array(owners), np.array([one for every in lists for one in every]), split.num_users)
    table = Table(torch.rand(split.num_users, split.num_items, generator=torch.Generator().manual_seed(0)))
    plain, repeated = ranker.rank(table), replace(ranker, hidden=hidden).rank(table)
    assert np.array_equal(plain.candidates, repeated.candidates)


def test_some_users_are_asked_what_they_are_asked_among_all() -> None:
    ranker = rankers(HONEST, HONEST.prepare(world(30, 20, 1), None), 0, CPU, 10**6)[1]
    few = ranker.some(7, 0)
    assert len(few.users) == 7
    assert ranker.some(None, 0) is ranker
    assert ranker.some(1_000, 0) is ranker
    places = torch.isin(ranker.users, few.users).nonzero()[:, 0]
    assert torch.equal(few.relevant.values, ranker.of(places).relevant.values)
