"""What comes after the moment changes no model and no score; what newcomers do changes no model."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from ownview import FedEASE, FedMF, Popularity
from ownview.data import Interactions
from ownview.data.questions import Question
from ownview.data.ragged import Ragged
from ownview.data.splitting.causal_splits import global_time, next_sitting
from ownview.data.splitting.newcomers import held_out_users
from ownview.data.splitting.splits import Split
from ownview.data.timeline import Timeline
from ownview.engine.machine import Machine
from ownview.evaluation.named_protocols import HONEST
from ownview.federation.options import FederationOptions
from ownview.registry import Model
from ownview.runs.training.trainer import Trainer
from ownview.runs.training.trainers import trainer

Row = tuple[str, str, int]
MOMENT, LATER, PAUSE = 100, 130, 5
MODELS: list[Model] = [Popularity(), FedEASE(), FedMF(embedding_size=2, local_epochs=1, negatives=1)]
NAMES = [model.name for model in MODELS]
cut = partial(next_sitting, moment=MOMENT, pause=PAUSE, fewest=2, relevant="all", seed=0)
windows = partial(global_time, first=MOMENT, second=LATER, seed=0)

ITEMS = st.sampled_from([f"i{item}" for item in range(8)])
TIES = st.sampled_from(["hash", "file", "rows"])


def rows_of(users: str, low: int, high: int, *, most: int) -> st.SearchStrategy[list[Row]]:
    return st.lists(st.tuples(st.sampled_from(users), ITEMS, st.integers(low, high)), max_size=most)


@st.composite
def past(draw: st.DrawFn) -> list[Row]:
    """Rows before the moment, equal times and repeats among them; nobody has everything, so negatives can be drawn."""
    rows = [("a", "i0", 1), ("b", "i1", 95), ("b", "i2", 96), ("e", "e1", 3), ("e", "e2", 3)]
    return draw(st.permutations(rows + draw(rows_of("abcd", 0, MOMENT - 1, most=10))))


@st.composite
def mixed_in(draw: st.DrawFn, rows: list[Row], low: int, high: int) -> list[Row]:
    """The same rows in the same order, with others anywhere between them: of old and new users, old and new items."""
    extra = draw(st.lists(st.tuples(st.sampled_from("abcdxy"), st.one_of(ITEMS, st.just("new")),
                                    st.integers(low, high)), max_size=10))  # fmt: skip
    whole = list(rows)
    for one in extra:
        whole.insert(draw(st.integers(0, len(whole))), one)
    return whole


def build(rows: list[Row]) -> Interactions:
    user, item, time = zip(*rows, strict=True)
    return Interactions.from_rows("rows", np.array(user, object), np.array(item, object), timestamp=np.array(time))


def equal_lists(one: Ragged | None, other: Ragged | None) -> bool:
    if one is None or other is None:
        return one is other
    return torch.equal(one.offsets, other.offsets) and torch.equal(one.values, other.values)


def assert_same_line(one: Timeline, other: Timeline) -> None:
    assert equal_lists(one.items, other.items)
    assert equal_lists(one.times, other.times)
    assert one.now is not None
    assert other.now is not None
    assert torch.equal(one.now, other.now)


def assert_same_training(one: Split, other: Split) -> None:
    for name in ("users", "items", "offsets", "item", "timestamp"):
        assert getattr(one.data, name).tolist() == getattr(other.data, name).tolist(), name
    assert equal_lists(one.train, other.train)
    assert_same_line(one.timeline, other.timeline)
    assert one.order == other.order
    assert equal_lists(one.known_items(), other.known_items())


def assert_same_but_answers(one: Question, other: Question) -> None:
    assert_same_line(one.known, other.known)
    assert equal_lists(one.hidden, other.hidden)
    assert (one.strangers is None) == (other.strangers is None)


def at_work(model: Model, split: Split) -> Trainer:
    """After one round."""
    made = trainer(model, split, HONEST, FederationOptions(), 0, Machine(torch.device("cpu"), torch.float64))
    made.round(1)
    return made


def scores(made: Trainer, question: Question) -> Tensor:
    return made.asked(question).scores(torch.arange(len(question.relevant)), None)


def assert_same_models(first: Split, second: Split, questions: tuple[str, ...]) -> None:
    """Bit for bit: the values, and everybody's scores under the questions."""
    for model in MODELS:
        one, other = at_work(model, first), at_work(model, second)
        packed = one.pack(), other.pack()
        assert set(packed[0]) == set(packed[1])
        for name, value in packed[0].items():
            assert torch.equal(value, packed[1][name]), (model.name, name)
        for stage in questions:
            both = (scores(made, getattr(split, stage)) for made, split in ((one, first), (other, second)))
            assert torch.equal(*both), (model.name, stage)


@settings(max_examples=20)
@given(past(), TIES, st.sampled_from(["all", "first"]), st.data())
def test_under_next_sitting_the_future_changes_nothing_but_the_answers(
    rows: list[Row], ties: str, relevant: str, choice: st.DataObject
) -> None:
    first, second = (
        cut(build(choice.draw(mixed_in(rows, MOMENT, MOMENT + 60))), ties=ties, relevant=relevant) for _ in range(2)
    )
    assert_same_training(first, second)
    assert_same_but_answers(first.test, second.test)
    assert_same_models(first, second, ("test",))


@settings(max_examples=20)
@given(past(), TIES, st.booleans(), st.data())
def test_under_honest_time_the_future_changes_nothing_but_the_answers(
    rows: list[Row], ties: str, knows: bool, choice: st.DataObject
) -> None:
    first, second = (
        windows(build(choice.draw(mixed_in(rows, MOMENT, MOMENT + 60))), ties=ties, knows_validation=knows)
        for _ in range(2)
    )
    assert_same_training(first, second)
    assert_same_but_answers(first.validation, second.validation)
    if not knows:
        assert_same_line(first.test.known, second.test.known)
    assert_same_models(first, second, ("validation",) if knows else ("validation", "test"))


@settings(max_examples=20)
@given(past(), TIES, st.data())
def test_under_honest_time_what_comes_after_the_second_moment_changes_only_the_answers_of_test(
    rows: list[Row], ties: str, choice: st.DataObject
) -> None:
    rows = choice.draw(mixed_in(rows, MOMENT, LATER - 1))
    first, second = (
        windows(build(choice.draw(mixed_in(rows, LATER, LATER + 60))), ties=ties, knows_validation=True)
        for _ in range(2)
    )
    assert_same_training(first, second)
    for stage in ("validation", "test"):
        assert_same_but_answers(getattr(first, stage), getattr(second, stage))
    answers = [
        [
            set(split.items_of(split.validation)[split.validation.answers(user)].tolist())
            for user in range(split.num_users)
        ]
        for split in (first, second)
    ]  # by id: items that nobody had met are numbered by what the whole file holds
    assert answers[0] == answers[1]
    assert_same_models(first, second, ("validation", "test"))


def test_the_answers_do_change() -> None:
    """So that the properties above are not about splits that never ask."""
    rows = [("a", "i0", 1), ("a", "i1", 2), ("b", "i1", 95), ("b", "i2", 96)]
    later = [[("a", "i2", 140)], [("b", "i0", 141)]]
    for split in (partial(cut, ties="hash"), partial(windows, ties="hash")):
        asked = [split(build([*rows, *more])).test for more in later]
        assert [one.users.tolist() for one in asked] == [[0], [1]]
        assert [one.relevant.values.tolist() for one in asked] == [[2], [0]]


kept_out = partial(held_out_users, share=0.5, fold=0, ties="hash", untimed="random", seed=0,
                   knows_validation=False, moment="last item")  # fmt: skip


def all_people() -> tuple[list[str], list[str]]:
    """Ids of some who take part, and of some who do not."""
    names = [f"u{user}" for user in range(12)]
    data = build([(name, f"i{item}", item) for name in names for item in range(3)])
    out = kept_out(data).test.strangers
    assert out is not None
    return [name for name in names if name not in out.tolist()], out.tolist()


@st.composite
def histories(draw: st.DrawFn, users: list[str], fewest: int = 3) -> list[Row]:
    """Different items of every user, one user after the other."""
    rows = []
    for user in users:
        items = draw(st.lists(ITEMS, min_size=fewest, max_size=6, unique=True))
        rows += [(user, item, draw(st.integers(0, 20))) for item in items]
    return rows


@settings(max_examples=20)
@given(st.data())
def test_under_new_users_nothing_of_theirs_changes_the_model(choice: st.DataObject) -> None:
    members, newcomers = all_people()
    inside = choice.draw(histories(members)) + [(user, f"only {user}'s", 0) for user in members]
    same = choice.draw(histories(newcomers[:1]))
    first, second = (kept_out(build([*same, *choice.draw(histories(newcomers[1:])), *inside])) for _ in range(2))
    assert_same_training(first, second)
    for model in MODELS:
        one, other = at_work(model, first), at_work(model, second)
        for name, value in one.pack().items():
            assert torch.equal(value, other.pack()[name]), (model.name, name)
        # Whose own history is the same gets the same lists, with any other people.
        mine, again = (scores(made, split.test)[0] for made, split in ((one, first), (other, second)))
        assert torch.allclose(mine, again, rtol=0, atol=1e-9), model.name


@pytest.mark.parametrize("model", MODELS, ids=NAMES)
def test_asking_newcomers_leaves_the_model_as_it_was(model: Model) -> None:
    members, newcomers = all_people()
    random = np.random.default_rng(0)
    rows = [(name, f"i{item}", int(random.integers(20))) for name in [*newcomers, *members]
            for item in random.choice(8, 5, replace=False)]  # fmt: skip
    split = kept_out(build(rows))
    made = at_work(model, split)
    before = {name: value.clone() for name, value in made.pack().items()}
    twice = [scores(made, split.test) for _ in range(2)]
    assert torch.equal(*twice)
    assert twice[0].shape == (len(newcomers), split.num_items)
    for name, value in made.pack().items():
        assert torch.equal(value, before[name]), name


def test_what_is_known_by_then_counts_and_not_what_was_trained_on() -> None:
    """FedEASE scores x B: x is what a client knows when it is asked, B what was learnt from training alone."""
    rows = [(f"u{user}", f"i{(user + k) % 7}", 10 * k + user) for user in range(7) for k in range(5)]
    split = replace(HONEST, name="more", knows="training and validation").prepare(build(rows))
    made = at_work(FedEASE(nearness=math.inf, recency=math.inf), split)
    learned = made.pack()["shared.weights"]
    for question, known in ((split.validation, 3), (split.test, 4)):
        history = torch.zeros(7, 7, dtype=torch.float64)
        for user in range(7):
            history[user, question.known.items.of(user)] = 1
        assert history.sum(1).tolist() == [known] * 7
        assert torch.allclose(scores(made, question), history @ learned, rtol=0, atol=1e-9)
