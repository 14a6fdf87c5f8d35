"""What is held out, by hand on tiny examples and as properties of any data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ownview.base.errors import DataError
from ownview.data import Interactions
from ownview.data.questions import Question
from ownview.data.splitting.causal_splits import global_time, moment_at
from ownview.data.splitting.split_files import from_files
from ownview.data.splitting.splits import Split, leave_one_out
from tests.questions import NO_ANSWER, single

Row = tuple[str, str, int]


def build(rows: list[Row], timed: bool = True) -> Interactions:
    user, item, time = zip(*rows, strict=True)
    stamps = np.array(time, dtype=np.int64) if timed else None
    return Interactions.from_rows(
        "rows", np.array(user, dtype=object), np.array(item, dtype=object), None, timestamp=stamps
    )


def named(split: Split) -> dict[str, tuple[list[Any], str | None, str | None]]:
    """By user id: training items, validation item and test item, as ids."""

    def of(question: Question, user: int) -> str | None:
        item = single(question)[user]
        return None if item == NO_ANSWER else str(split.items_of(question)[item])

    return {
        str(user): (
            split.data.items[split.train.of(k).numpy()].tolist(),
            of(split.validation, k),
            of(split.test, k),
        )
        for k, user in enumerate(split.data.users.tolist())
    }


@st.composite
def timed_rows(draw: st.DrawFn) -> list[Row]:
    """Rows of a few users, at least three each, with repeats and equal timestamps."""
    users = [name for name in "abcd" for _ in range(draw(st.integers(3, 7)))]
    order = draw(st.permutations(users))
    item = st.sampled_from(["p", "q", "r", "s", "t", "u", "v"])
    return [(user, draw(item), draw(st.integers(0, 3))) for user in order]


def test_the_latest_row_tests_and_the_second_latest_validates() -> None:
    rows = [("a", "p", 30), ("b", "q", 1), ("a", "q", 10), ("a", "r", 40), ("b", "p", 3), ("a", "s", 20), ("b", "r", 2)]
    for ties in ("file", "hash"):
        assert named(leave_one_out(build(rows), ties=ties, untimed="random", seed=0)) == {
            "a": (["q", "s"], "p", "r"),
            "b": (["q"], "r", "p"),
        }


def test_file_ties_take_the_row_first_in_the_file_for_the_latest() -> None:
    rows = [("a", "p", 5), ("a", "q", 7), ("a", "r", 7), ("a", "s", 7), ("b", "s", 1), ("b", "p", 1), ("b", "q", 1)]
    split = leave_one_out(build(rows), ties="file", untimed="appearance", seed=0)
    assert named(split) == {"a": (["p", "s"], "r", "q"), "b": (["q"], "p", "s")}
    assert split.notes == ()


def test_file_ties_follow_the_file_when_it_is_turned_round() -> None:
    rows = [("a", "p", 5), ("a", "q", 7), ("a", "r", 7), ("a", "s", 7)]
    split = leave_one_out(build(rows[::-1]), ties="file", untimed="appearance", seed=0)
    assert named(split) == {"a": (["q", "p"], "r", "s")}


@settings(max_examples=50)
@given(timed_rows())
def test_file_ties_are_descending_ranks_of_first_occurrence(rows: list[Row]) -> None:
    """The published rule: rank = rows with a later time, plus earlier lines of the same time."""
    found = named(leave_one_out(build(rows), ties="file", untimed="appearance", seed=0))
    for user in found:
        own = [row for row in rows if row[0] == user]
        rank = {
            sum(other[2] > row[2] for other in own) + sum(other[2] == row[2] for other in own[:line]): row[1]
            for line, row in enumerate(own)
        }
        assert found[user][1:] == (rank[1], rank[0])


@settings(max_examples=50)
@given(timed_rows(), st.data(), st.booleans())
def test_hash_ties_do_not_depend_on_file_order(rows: list[Row], choice: st.DataObject, timed: bool) -> None:
    rows = list({row[:2]: row for row in rows}.values())
    rows += [(user, extra, 0) for user in "abcd" for extra in "xyz"]
    shuffled = choice.draw(st.permutations(rows))
    first, second = (
        named(leave_one_out(build(order, timed), ties="hash", untimed="random", seed=3)) for order in (rows, shuffled)
    )
    for user in "abcd":
        assert first[user][1:] == second[user][1:]
        assert sorted(first[user][0]) == sorted(second[user][0])


def test_hash_ties_do_not_depend_on_which_other_users_take_part() -> None:
    rows = [(user, item, 0) for user in "abcdefgh" for item in "pqrstuvw"]
    whole = named(leave_one_out(build(rows), ties="hash", untimed="random", seed=0))
    some = named(leave_one_out(build([row for row in rows if row[0] in "fh"]), ties="hash", untimed="random", seed=0))
    assert some == {user: whole[user] for user in "fh"}


def test_hash_ties_depend_on_the_seed_and_differ_between_users() -> None:
    rows = [(f"u{user}", f"i{item}", 0) for user in range(50) for item in range(20)]
    data = build(rows)
    first, again, other = (
        single(leave_one_out(data, ties="hash", untimed="random", seed=seed).test) for seed in (0, 0, 1)
    )
    assert (first == again).all()
    assert (first == other).sum() < 15  # by chance one in twenty
    assert len(set(first.tolist())) > 10


def test_untimed_by_appearance_takes_the_item_that_appears_last_in_the_whole_file() -> None:
    rows = [("a", "p", 0), ("b", "q", 0), ("c", "r", 0), ("c", "q", 0), ("c", "p", 0), ("b", "r", 0), ("b", "p", 0)]
    rows += [("a", "r", 0), ("a", "q", 0)]
    split = leave_one_out(build(rows, timed=False), ties="file", untimed="appearance", seed=0)
    assert named(split) == {user: (["p"], "q", "r") for user in "abc"}
    assert len(split.notes) == 1
    assert split.notes[0].startswith("no timestamps: the order in which items first appear in the file")


def test_untimed_at_random_is_seeded_told_and_reaches_every_item() -> None:
    rows = [(f"u{user}", f"i{item}", 0) for user in range(200) for item in range(5)]
    data = build(rows, timed=False)
    split = leave_one_out(data, ties="hash", untimed="random", seed=0)
    assert [note.partition(";")[0] for note in split.notes] == [
        "no timestamps: the held-out items are drawn at random (seeded)"
    ]
    again = leave_one_out(data, ties="hash", untimed="random", seed=0)
    assert (single(split.test) == single(again.test)).all()
    for held in (single(split.test), single(split.validation)):
        counts = np.bincount(held, minlength=5)  # 200 draws of 5: mean 40, standard deviation 5.7
        assert counts.min() > 40 - 5 * 5.7
        assert counts.max() < 40 + 5 * 5.7


@settings(max_examples=50)
@given(timed_rows(), st.sampled_from(["file", "hash"]), st.sampled_from(["appearance", "random"]), st.booleans())
def test_the_three_parts_are_exactly_the_users_rows(rows: list[Row], ties: str, untimed: str, timed: bool) -> None:
    split = leave_one_out(build(rows, timed), ties=ties, untimed=untimed, seed=1)
    for user, (train, validation, test) in named(split).items():
        assert sorted([*train, str(validation), str(test)]) == sorted(row[1] for row in rows if row[0] == user)


@settings(max_examples=50)
@given(timed_rows(), st.sampled_from(["file", "hash"]))
def test_test_is_no_earlier_than_validation_and_validation_than_training(rows: list[Row], ties: str) -> None:
    rows = list({row[:2]: row for row in rows}.values()) + [(u, f"{u}{k}", k) for u in "abcd" for k in range(3)]
    time = {row[:2]: row[2] for row in rows}
    for user, (train, validation, test) in named(
        leave_one_out(build(rows), ties=ties, untimed="random", seed=2)
    ).items():
        assert time[user, str(test)] >= time[user, str(validation)]
        assert time[user, str(validation)] >= max(time[user, item] for item in train)


def test_training_and_known_items_are_distinct_and_ascending() -> None:
    rows = [("a", "p", 4), ("a", "q", 1), ("a", "q", 2), ("a", "p", 3), ("a", "r", 5), ("b", "r", 1), ("b", "q", 2)]
    split = leave_one_out(build([*rows, ("b", "s", 3)]), ties="file", untimed="appearance", seed=0)
    items = split.data.items
    assert items[split.train.of(0).numpy()].tolist() == ["q", "q", "p"]
    assert [items[split.training_items().of(u).numpy()].tolist() for u in (0, 1)] == [["p", "q"], ["r"]]
    assert [items[split.known_items().of(u).numpy()].tolist() for u in (0, 1)] == [["p", "q", "r"], ["q", "r", "s"]]


def by_shares(rows: list[Row], first: float, second: float, seed: int = 0) -> Split:
    data = build(rows)
    moments = [moment_at(data, share, "time") for share in (first, second)]
    return global_time(data, first=moments[0], second=moments[1], ties="hash", seed=seed)


def test_global_time_takes_the_first_new_item_of_each_window() -> None:
    """Items that nobody met before the first window are not there for the model, and right all the same."""
    rows = [("a", f"i{t}", t) for t in range(10)] + [("b", f"i{t}", t) for t in (0, 2, 9)] + [("c", "i2", 2)]
    rows += [("c", "i1", 4), ("b", "i1", 7), ("c", "i0", 8), ("c", "i1", 7)]
    split = by_shares(rows, 0.4, 0.7)
    assert named(split) == {
        "a": (["i0", "i1", "i2"], "i3", "i7"),
        "b": (["i0", "i2"], None, "i1"),
        "c": (["i2"], "i1", "i0"),
    }
    assert split.data.items.tolist() == ["i0", "i1", "i2"]
    assert split.notes == ("global time: training before 3, validation before 7, test from there",)


def test_global_time_drops_users_without_training_and_tells() -> None:
    rows = [("a", f"i{t}", t) for t in range(10)] + [("late", "i7", 7), ("late", "i8", 8), ("later", "i9", 9)]
    split = by_shares(rows, 0.5, 0.8)
    assert split.data.users.tolist() == ["a"]
    assert split.notes[1:] == ("3 of 7 later rows are of users who had nothing before 6: not asked",)


@settings(max_examples=50)
@given(timed_rows(), st.floats(0.3, 0.6), st.floats(0.65, 1.0), st.integers(0, 5))
def test_global_time_never_trains_on_the_future(rows: list[Row], first: float, second: float, seed: int) -> None:
    start, end = (int(np.quantile([row[2] for row in rows], share, method="lower")) for share in (first, second))
    trained = {row[0] for row in rows if row[2] < start}
    if not trained:
        with pytest.raises(DataError, match="nothing happened before"):
            by_shares(rows, first, second, seed)
        return
    found = named(by_shares(rows, first, second, seed))
    assert set(found) == trained
    for user, (train, validation, test) in found.items():
        own = [(item, time) for name, item, time in rows if name == user]
        assert train == list(dict.fromkeys(item for item, time in own if time < start))
        for held, low, high in ((validation, start, end), (test, end, 99)):
            had = {item for item, time in own if time < low}
            window = [(time, item) for item, time in own if low <= time < high and item not in had]
            earliest = {item for time, item in window if time == min(window)[0]}
            assert held in earliest if window else held is None


def test_a_moment_without_timestamps_is_an_error() -> None:
    data = build([("a", "p", 0), ("a", "q", 0), ("a", "r", 0)], timed=False)
    with pytest.raises(DataError, match="rows: protocol time asks at a moment in time, and this data has no times"):
        moment_at(data, 0.8, "time")


def test_global_time_with_nothing_to_train_on_is_an_error() -> None:
    with pytest.raises(DataError, match="rows: nothing happened before 7; expected a later moment"):
        by_shares([("a", i, 7) for i in "pqr"], 0.5, 0.9)


FILES = {
    "train.csv": "user,item\na,p\nb,r\na,q\nb,p\na,p\n",
    "validation.csv": "user,item\nb,s\n",
    "test.csv": "user,item\nb,q\na,s\n",
}


def universe() -> Interactions:
    return build([(user, item, 0) for user in "ab" for item in "pqrs"], timed=False)


def folder_with(place: Path, changes: dict[str, str | None]) -> Path:
    """A folder of good split files, apart from the changes; None leaves a file out."""
    for name, text in {**FILES, **changes}.items():
        if text is not None:
            (place / name).write_text(text, encoding="utf-8")
    return place


def test_own_split_files_are_taken_as_they_are(tmp_path: Path) -> None:
    split = from_files(folder_with(tmp_path, {}), universe(), ties="hash", seed=0)
    assert named(split) == {"a": (["p", "q", "p"], None, "s"), "b": (["r", "p"], "s", "q")}
    assert split.notes == (f"split from the files in {tmp_path}",)
    assert split.data.items.tolist() == list("pqrs")


def test_own_split_files_may_be_tab_separated_and_have_numbers_for_ids(tmp_path: Path) -> None:
    data = Interactions.from_rows("numbers", np.array([7, 7, 7, 8, 8, 8]), np.array([1, 2, 3, 3, 2, 1]))
    for part, lines in {"train": "7\t1\n8\t3\n", "validation": "7\t2\n8\t2\n", "test": "7\t3\n8\t1\n"}.items():
        (tmp_path / f"{part}.tsv").write_text("user\titem\n" + lines, encoding="utf-8")
    assert named(from_files(tmp_path, data, ties="hash", seed=0)) == {"7": ([1], "2", "3"), "8": ([3], "2", "1")}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"train.csv": None}, r"expected exactly one file train.csv .*, found 0"),
        ({"validation.csv": None}, r"expected exactly one file validation.csv .*, found 0"),
        ({"test.csv": None}, r"expected exactly one file test.csv .*, found 0"),
        ({"test.tsv": "user\titem\na\ts\n"}, r"expected exactly one file test.csv .*, found 2"),
        ({"train.csv": "user,item\na,p\nx,q\nb,r\n"}, r"train.csv: user x does not occur in rows"),
        ({"test.csv": "user,item\na,s\nb,z\n"}, r"test.csv: item z does not occur in rows"),
        ({"train.csv": "user,item\na,p\na,q\n"}, r"user b of rows has no row in the train file"),
        ({"test.csv": "user,item\na,p\n"}, r"test.csv: user a has item p in the train file too"),
        ({"test.csv": "user,item\na,s\nb,q\nb,p\n"}, r"test.csv: user b has 2 rows; expected at most one"),
        ({"validation.csv": "user,item\na,r\na,s\na,q\n"}, r"validation.csv: user a has 3 rows; expected at most"),
        ({"validation.csv": "user,item\n"}, r"validation"),
        ({"test.csv": "who,what\na,s\n"}, r"test"),
    ],
)
def test_own_split_files_that_do_not_fit_are_errors(
    tmp_path: Path, changes: dict[str, str | None], message: str
) -> None:
    with pytest.raises(DataError, match=message):
        from_files(folder_with(tmp_path, changes), universe(), ties="hash", seed=0)


def test_a_folder_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"expected exactly one file train.csv"):
        from_files(tmp_path / "nowhere", universe(), ties="hash", seed=0)
