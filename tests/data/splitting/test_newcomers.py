"""Users who never take part: folds, what is asked of them, and what is left of them for the model."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ownview.base.errors import DataError
from ownview.data import Interactions
from ownview.data.splitting.newcomers import held_out_users
from ownview.data.splitting.splits import Split, leave_one_out
from tests.questions import NO_ANSWER, single

SETTINGS: dict[str, Any] = {"ties": "hash", "untimed": "random", "seed": 0}


def kept_out(data: Interactions, *, share: float, fold: int) -> Split:
    return held_out_users(data, share=share, fold=fold, **SETTINGS, knows_validation=False, moment="last item")


def world(users: int = 60, per_user: int = 5, items: int = 12) -> Interactions:
    random = np.random.default_rng(0)
    user = np.repeat([f"u{user}" for user in range(users)], per_user).astype(object)
    item = np.concatenate([random.choice(items, per_user, replace=False) for _ in range(users)])
    return Interactions.from_rows("world", user, item, timestamp=random.permutation(len(user)))


def strangers(split: Split) -> set[str]:
    assert split.test.strangers is not None
    assert split.validation.strangers is not None
    assert split.validation.strangers.tolist() == split.test.strangers.tolist()
    return set(split.test.strangers.tolist())


@pytest.mark.parametrize("folds", [2, 4, 5])
def test_folds_are_disjoint_and_together_everybody(folds: int) -> None:
    data = world()
    splits = [kept_out(data, share=1 / folds, fold=fold) for fold in range(folds)]
    out = [strangers(split) for split in splits]
    assert sum(map(len, out)) == len(set.union(*out)) == data.num_users
    for one, split in zip(out, splits, strict=True):
        assert set(split.data.users.tolist()) == set(data.users.tolist()) - one
        assert split.notes[-1] == (
            f"{len(one)} of 60 users never take part in training and are asked with their history alone"
        )


def test_who_is_kept_out_depends_on_ids_and_seed_alone() -> None:
    data = world()
    first = strangers(kept_out(data, share=0.3, fold=0))
    some = data.select(np.repeat(np.arange(60) % 3 > 0, 5))
    assert strangers(kept_out(some, share=0.3, fold=0)) == first & set(some.users.tolist())
    assert strangers(held_out_users(data, share=0.3, fold=0, **{**SETTINGS, "seed": 1},
                                    knows_validation=False, moment="last item")) != first  # fmt: skip
    assert 5 < len(first) < 31  # 18 expected, standard deviation 3.5


@pytest.mark.parametrize("knows", [False, True])
@pytest.mark.parametrize("moment", ["last item", "asked"])
def test_newcomers_are_asked_what_they_would_be_asked_as_members(knows: bool, moment: str) -> None:
    data = world()
    whole = leave_one_out(data, **SETTINGS, knows_validation=knows, moment=moment)
    split = held_out_users(data, share=0.3, fold=0, **SETTINGS, knows_validation=knows, moment=moment)
    for question, theirs in ((split.validation, whole.validation), (split.test, whole.test)):
        assert question.strangers is not None
        for place, one in enumerate(question.strangers.tolist()):
            user = data.position_of_user(one)
            ours, other = (
                (
                    s.data.items[q.relevant.of(k).numpy()].tolist(),
                    s.data.items[q.known.items.of(k).numpy()].tolist(),
                    q.known.times.of(k).tolist(),  # type: ignore[union-attr]
                    int(q.known.now[k]),  # type: ignore[index]
                    sorted(s.data.items[q.hidden.of(k).numpy()].tolist()),
                )
                for s, q, k in ((split, question, place), (whole, theirs, user))
            )
            assert ours == other  # every item is known to some member here


def test_members_are_split_as_ever() -> None:
    data = world()
    split = kept_out(data, share=0.3, fold=0)
    inside = np.isin(data.users, split.data.users)
    alone = leave_one_out(data.select(np.repeat(inside, data.counts)), **SETTINGS)
    by_name = [
        {
            str(user): one.data.items[one.timeline.items.of(k).numpy()].tolist()
            for k, user in enumerate(one.data.users.tolist())
        }
        for one in (split, alone)
    ]
    assert by_name[0] == by_name[1]


def test_items_of_newcomers_alone_are_neither_known_nor_asked() -> None:
    data = world(20)
    out = strangers(kept_out(data, share=0.3, fold=0))
    names = data.users.tolist()
    one, two = sorted(out)[:2]
    assert data.timestamp is not None
    columns = zip(data.user, data.item, data.timestamp, strict=True)
    rows = [(names[user], str(item), int(time)) for user, item, time in columns]
    rows += [(one, "theirs", 500), (two, "theirs", -1)]
    user, item, time = (np.array(column, dtype=object) for column in zip(*rows, strict=True))
    split = kept_out(Interactions.from_rows("more", user, item, timestamp=time.astype(np.int64)), share=0.3, fold=0)
    assert "theirs" not in split.data.items.tolist()
    assert split.test.strangers is not None
    places = {name: k for k, name in enumerate(split.test.strangers.tolist())}
    answers = single(split.test)
    assert answers[places[one]] == NO_ANSWER, "what is right is nothing the model could know"
    assert answers[places[two]] != NO_ANSWER
    assert len(split.test.known.items.of(places[two])) == 3  # five and one more, less two held out and one unknown
    assert split.test.known.times is not None
    assert (split.test.known.times.values >= 0).all()


def test_nobody_or_everybody_kept_out_is_an_error() -> None:
    data = world(3)
    with pytest.raises(DataError, match="world: 0 of 3 users would be kept out of training; expected some and not all"):
        kept_out(data, share=1e-6, fold=0)
    with pytest.raises(DataError, match="world: 3 of 3 users would be kept out"):
        kept_out(data, share=1.0, fold=0)
