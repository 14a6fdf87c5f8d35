"""The named protocols: what each of them says, cuts by name, and names and settings that are refused."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from tests.questions import single

from ownview.base.errors import OwnviewError, SettingError
from ownview.data import Interactions
from ownview.data.splitting.causal_splits import moment_at
from ownview.evaluation.named_protocols import (  # fmt: skip
    CUTS,
    HONEST,
    HONEST_TIME,
    NEW_USERS,
    NEXT_SITTING,
    PROTOCOLS,
    SEQUENTIAL,
    at_cut,
    custom,
    protocol,
)
from ownview.evaluation.protocol import Protocol  # fmt: skip


def differs(one: Protocol) -> dict[str, object]:
    """What a protocol says that `honest` does not."""
    return {key: value for key, value in one.values().items() if value != HONEST.values()[key]}


def test_the_named_protocols_differ_from_honest_in_what_is_documented() -> None:
    assert differs(NEXT_SITTING) == {
        "name": "next-sitting", "split": "next-sitting", "validation_from": 0.4, "validation_until": 0.5,
        "test_from": 0.8,
    }  # fmt: skip
    assert differs(HONEST_TIME) == {"name": "honest-time", "split": "global-time"}
    assert differs(NEW_USERS) == {"name": "new-users", "split": "new-users"}
    assert differs(SEQUENTIAL) == {
        "name": "sequential", "min_interactions": 5, "min_item_interactions": 5, "split_ties": "rows",
        "untimed": "rows", "knows": "training and validation",
    }  # fmt: skip
    assert all(protocol(name) is one for name, one in PROTOCOLS.items())


def test_a_cut_is_named_and_validates_a_tenth_earlier() -> None:
    half = protocol("next-sitting@0.5")
    assert half == at_cut(0.5)
    assert (half.name, half.validation_from, half.test_from) == ("next-sitting@0.5", 0.4, 0.5)
    assert protocol("next-sitting@0.50") == half
    assert protocol("next-sitting@0.8") is NEXT_SITTING
    assert [at_cut(share).test_from for share in CUTS] == list(CUTS)
    assert {(at_cut(share).validation_from, at_cut(share).validation_until) for share in CUTS} == {(0.4, 0.5)}
    early = at_cut(0.3)
    assert (early.validation_from, early.validation_until, early.test_from) == (0.2, 0.3, 0.3)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("next-sitting@", "protocol next-sitting@: expected a share behind the @, such as next-sitting@0.6"),
        ("next-sitting@half", "protocol next-sitting@half: expected a share behind the @"),
        ("next-sitting@0.1", "protocol next-sitting@0.1: expected a cut between 0.1 and 1, such as next-sitting@0.6"),
        ("next-sitting@1", "protocol next-sitting@1: expected a cut between 0.1 and 1"),
        ("next-sitting@-3", "protocol next-sitting@-3: expected a cut between 0.1 and 1"),
        ("next-sitting@nan", "protocol next-sitting@nan: expected a cut between 0.1 and 1"),
        ("honest@0.5", "unknown protocol 'honest@0.5'; did you mean 'honest'?"),
        ("next-siting", "unknown protocol 'next-siting'; did you mean 'next-sitting'?"),
        ("new-user", "unknown protocol 'new-user'; did you mean 'new-users'?"),
    ],
)
def test_a_name_that_is_none_is_refused_in_one_line(name: str, message: str) -> None:
    with pytest.raises(OwnviewError) as refused:
        protocol(name)
    assert str(refused.value).startswith(message)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"base": "new-users", "fold": 5}, "fold=5: expected less than 5, there are no more folds of 0.2"),
        ({"base": "new-users", "newcomers": 0.5, "fold": 2}, "fold=2: expected less than 2, there are no more folds"),
        ({"base": "new-users", "newcomers": 0.6}, "newcomers=0.6: expected a number above 0 and at most 0.5"),
        ({"base": "new-users", "candidates": 9}, "candidates=9: split new-users ranks all items; expected 0"),
        ({"base": "next-sitting", "candidates": 9}, "candidates=9: split next-sitting ranks all items; expected 0"),
        ({"base": "next-sitting", "test_from": 0.4}, "test_from=0.4: expected more than validation_from"),
        ({"base": "next-sitting", "test_from": 0.45}, "validation_until=0.5: expected 0, or more than validation_from"),
        (
            {"base": "honest-time", "validation_until": 0.85},
            "validation_until=0.85: split global-time does not have it",
        ),
        ({"base": "next-sitting", "pause_days": 0.0}, "pause_days=0.0: expected a number above 0"),
        ({"base": "next-sitting", "relevant": "last"}, "relevant='last': expected one of all, first"),
        ({"knows": "everything"}, "knows='everything': expected one of training, training and validation"),
        ({"moment": "now"}, "moment='now': expected one of last item, asked"),
    ],
)
def test_settings_that_do_not_fit_are_refused(values: dict[str, object], message: str) -> None:
    with pytest.raises(SettingError) as refused:
        custom(values, "mine")
    assert f"protocol setting {message}" in str(refused.value)


@pytest.mark.parametrize("fold", range(5))
def test_as_many_folds_as_there_are(fold: int) -> None:
    assert custom({"base": "new-users", "fold": fold}, "mine").fold == fold


def rows(*more: tuple[str, str]) -> Interactions:
    """Five users with the items i0 to i4, whose rows run through the file, and more rows before them."""
    every = [*more, *((f"u{user}", f"i{item}") for item in range(5) for user in range(5))]
    users, items = (np.array(column, dtype=object) for column in zip(*every, strict=True))
    return Interactions.from_rows("rows", users, items)


def test_rare_items_go_before_users_are_counted() -> None:
    """u0 has a sixth item that is rare; `few` has five items, four of which are rare."""
    data = rows(("u0", "rare"), *(("few", f"only{k}") for k in range(4)), ("few", "i0"))
    split = SEQUENTIAL.prepare(data)
    assert split.data.items.tolist() == [f"i{item}" for item in range(5)]
    assert split.data.users.tolist() == [f"u{user}" for user in range(5)]
    assert split.notes[:2] == (
        "5 items with fewer than 5 interactions dropped",
        "1 of 6 users with fewer than 5 interactions dropped",
    )


def test_sequential_takes_rows_for_time_and_knows_validation_at_test() -> None:
    split = SEQUENTIAL.prepare(rows())
    assert split.data.items[single(split.validation)].tolist() == ["i3"] * 5
    assert split.data.items[single(split.test)].tolist() == ["i4"] * 5
    assert split.order == "rows"
    for question, known in ((split.validation, ["i0", "i1", "i2"]), (split.test, ["i0", "i1", "i2", "i3"])):
        assert split.data.items[question.known.items.of(2).numpy()].tolist() == known


def test_splits_at_a_moment_drop_nobody_by_number() -> None:
    """Who will be active later must not decide who trains."""
    users = np.array(["a"] * 8 + ["once"], dtype=object)
    items = np.array([f"i{k}" for k in range(8)] + ["i0"], dtype=object)
    data = Interactions.from_rows("rows", users, items, timestamp=np.array([*range(8), 0]) * 86_400 * 3)
    for one in (NEXT_SITTING, HONEST_TIME):
        assert one.prepare(data, papers_filter=10).data.users.tolist() == ["a", "once"]


@pytest.mark.realdata
def test_validation_asks_nothing_that_a_pooled_test_asks(real_data: Callable[[str], Interactions]) -> None:
    """Whatever validation sees lies before the first cut, and every test asks for what comes after it.

    Before, all 511 validation questions of one cut of ml-1m were test questions of the cut before.
    """
    data = real_data("ml-100k")
    assert data.timestamp is not None
    first = moment_at(data, CUTS[0], "next-sitting")
    chosen_by = set()
    for share in CUTS:
        split = at_cut(share).prepare(data)
        assert split.earlier is not None
        asked, earlier = split.test, split.earlier
        assert earlier.data.timestamp is not None
        assert asked.when is not None
        assert split.validation.when is not None
        assert split.validation.when[split.validation.users].max() < first <= asked.when[asked.users].min()
        assert earlier.data.timestamp.max() < first
        users, items = earlier.data.users, earlier.items_of(split.validation)
        chosen_by.add(
            frozenset(
                (str(users[user]), str(items[item]))
                for user in split.validation.users.tolist()
                for item in split.validation.answers(user)
            )
        )
    assert len(chosen_by) == 1, "all cuts choose by the same questions"
