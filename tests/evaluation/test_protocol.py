"""The named protocols as documented, custom ones, and what preparing data does and tells."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.questions import single

from ownview.base.errors import DataError, OwnviewError, SettingError, UnknownNameError
from ownview.data import Interactions
from ownview.evaluation.named_protocols import HONEST, PAPER, PROTOCOLS, custom, protocol
from ownview.evaluation.protocol import Protocol

SHARED = {
    "min_interactions": 0,
    "min_item_interactions": 0,
    "split": "leave-one-out",
    "split_seed": 0,
    "validation_from": 0.8,
    "validation_until": 0.0,
    "test_from": 0.9,
    "pause_days": 1.0,
    "fewest_before": 3,
    "relevant": "all",
    "newcomers": 0.2,
    "fold": 0,
    "split_folder": "",
    "knows": "training",
    "hides": "earlier",
    "moment": "last item",
    "new_by": "draw",
    "new_share": 1 / 7,
    "new_file": "",
    "among": "new",
    "same_candidates": False,
    "selection": "validation",
    "cutoffs": (5, 10, 20),
}


def build(rows: list[tuple[str, str]], timed: bool = True) -> Interactions:
    users, items = (np.array(column, dtype=object) for column in zip(*rows, strict=True))
    return Interactions.from_rows("rows", users, items, timestamp=np.arange(len(rows)) if timed else None)


def user_with(name: str, rows: int) -> list[tuple[str, str]]:
    return [(name, f"i{k}") for k in range(rows)]


def written(folder: Path, text: str, name: str = "mine.toml") -> str:
    (folder / name).write_text(text, encoding="utf-8")
    return str(folder / name)


def test_honest_is_what_is_documented() -> None:
    assert HONEST.values() == {
        **SHARED,
        "name": "honest",
        "repeats": "collapse",
        "split_ties": "hash",
        "untimed": "random",
        "negatives_avoid": "training",
        "candidates": 0,
        "candidates_avoid": "training",
        "ties": "expected",
    }


def test_paper_is_what_is_documented() -> None:
    assert PAPER.values() == {
        **SHARED,
        "name": "paper",
        "repeats": "keep",
        "split_ties": "file",
        "untimed": "appearance",
        "negatives_avoid": "known",
        "candidates": 99,
        "candidates_avoid": "known",
        "ties": "last",
    }


def test_named_protocols_are_found_by_name_and_honest_is_the_default() -> None:
    assert set(PROTOCOLS) == {
        *("honest", "paper", "next-sitting", "honest-time", "sequential", "new-users"),
        *("new-items", "new-items-among-all"),
    }
    assert protocol("honest") == HONEST == Protocol()
    assert protocol("paper") == PAPER


def test_an_unknown_protocol_suggests_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match=r"unknown protocol 'honst'; did you mean 'honest'\?"):
        protocol("honst")


@settings(max_examples=50)
@given(
    st.sampled_from([HONEST, PAPER]),
    st.integers(0, 50),
    st.sampled_from(["collapse", "keep"]),
    st.integers(0, 500),
    st.booleans(),
    st.sets(st.integers(1, 100), max_size=4),
)
def test_values_survive_the_round_trip(
    base: Protocol, least: int, repeats: str, candidates: int, same: bool, more: set[int]
) -> None:
    changed = replace(
        base,
        name="changed",
        min_interactions=least,
        repeats=repeats,
        candidates=candidates,
        same_candidates=same,
        cutoffs=(10, *sorted(more)),
    )
    assert Protocol.of(changed.values()) == changed
    assert custom({"base": "paper", **changed.values()}, "unused") == changed


def test_a_file_states_its_base_and_the_differences(tmp_path: Path) -> None:
    text = 'base = "paper"\nties = "expected"\nmin_interactions = 10\ncutoffs = [1, 10]\n'
    assert protocol(written(tmp_path, text)) == replace(
        PAPER, name="mine", ties="expected", min_interactions=10, cutoffs=(1, 10)
    )


def test_a_file_without_base_starts_from_honest_and_may_name_itself(tmp_path: Path) -> None:
    assert protocol(written(tmp_path, 'name = "ours"\ncandidates = 99\n')) == replace(
        HONEST, name="ours", candidates=99
    )


def test_a_file_builds_on_a_named_protocol_not_on_another_file(tmp_path: Path) -> None:
    first = tmp_path / "first.toml"
    first.write_text(f'base = "{first}"\n', encoding="utf-8")
    with pytest.raises(UnknownNameError, match="unknown base of a protocol"):
        protocol(str(first))


@pytest.mark.parametrize("name", ["honest", "paper"])
def test_a_changed_protocol_may_not_take_a_named_ones_name(tmp_path: Path, name: str) -> None:
    with pytest.raises(SettingError, match=f"protocol name '{name}' is taken; a changed protocol needs a name"):
        protocol(written(tmp_path, f'base = "{name}"\nname = "{name}"\nsplit_seed = 1\n'))
    with pytest.raises(SettingError, match="is taken"):
        protocol(written(tmp_path, "split_seed = 1\n", f"{name}.toml"))


@pytest.mark.parametrize("name", ["honest", "paper"])
def test_a_file_that_changes_nothing_may_keep_the_name(tmp_path: Path, name: str) -> None:
    assert protocol(written(tmp_path, f'base = "{name}"\nname = "{name}"\n')) == PROTOCOLS[name]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("candidate = 99", r"protocol has no setting 'candidate'; did you mean 'candidates'\?"),
        ("candidates = 9.5", r"protocol setting candidates=9.5: expected a whole number at least 0"),
        ("candidates = true", r"candidates=True: expected a whole number"),
        ("same_candidates = 1", r"same_candidates=1: expected true or false"),
        ("candidates = -1", r"candidates=-1: expected a whole number at least 0"),
        ("validation_from = 0.0", r"validation_from=0.0: expected a number above 0 and at most 1"),
        ("test_from = 1.5", r"test_from=1.5: expected a number above 0 and at most 1"),
        ('ties = "lst"', r"ties='lst': expected one of expected, last; did you mean 'last'\?"),
        (
            'split = "random"',
            r"split='random': expected one of leave-one-out, global-time, next-sitting, new-users, new-items, files",
        ),
        ("cutoffs = [0, 10]", r"cutoffs=\(0, 10\): expected whole numbers separated by commas at least 1"),
        ("cutoffs = [5]", r"cutoffs=\(5,\): expected 10 among them"),
        ('split = "files"', r"split=files: expected split_folder"),
        ('split = "global-time"\ntest_from = 0.8', r"test_from=0.8: expected more than validation_from, which is 0.8"),
        ("ties = ", r"mine.toml: not TOML"),
        ('base = "honset"', r"unknown base of a protocol 'honset'; did you mean 'honest'\?"),
    ],
)
def test_a_file_with_a_mistake_is_refused_in_words(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(OwnviewError, match=message):
        protocol(written(tmp_path, text))


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match=r"gone.toml: no such protocol file"):
        protocol(str(tmp_path / "gone.toml"))


def test_custom_leaves_the_values_it_was_given_alone() -> None:
    values: dict[str, Any] = {"base": "paper", "candidates": 10}
    custom(values, "mine")
    assert values == {"base": "paper", "candidates": 10}


def test_users_under_the_minimum_are_dropped_counted_and_told() -> None:
    data = build([*user_with("many", 6), *user_with("enough", 5), *user_with("few", 4), *user_with("one", 1)])
    split = replace(HONEST, name="five", min_interactions=5).prepare(data)
    assert split.data.users.tolist() == ["many", "enough"]
    assert split.notes == ("2 of 4 users with fewer than 5 interactions dropped",)


@pytest.mark.parametrize(
    ("least", "papers", "kept"),
    [(0, 5, ["five", "six"]), (0, None, ["three", "five", "six"]), (6, 5, ["six"]), (4, 6, ["five", "six"])],
)
@pytest.mark.parametrize("base", [HONEST, PAPER])
def test_the_papers_filter_holds_where_the_protocol_names_none(
    base: Protocol, least: int, papers: int | None, kept: list[str]
) -> None:
    data = build([*user_with("two", 2), *user_with("three", 3), *user_with("five", 5), *user_with("six", 6)])
    assert replace(base, name="any", min_interactions=least).prepare(data, papers).data.users.tolist() == kept


def test_a_minimum_below_what_a_split_needs_is_raised_to_it() -> None:
    data = build([*user_with("two", 2), *user_with("three", 3)])
    split = replace(HONEST, name="low", min_interactions=1).prepare(data, 2)
    assert split.data.users.tolist() == ["three"]
    assert split.notes == ("1 of 2 users with fewer than 3 interactions dropped",)


def test_nothing_dropped_is_not_told() -> None:
    assert HONEST.prepare(build(user_with("a", 5))).notes == ()


REPEATED = [("a", "p"), ("a", "q"), ("a", "p"), ("a", "r"), ("a", "q"), ("b", "p"), ("b", "q"), ("b", "p")]


def test_repeats_collapse_to_the_first_and_are_counted() -> None:
    split = HONEST.prepare(build(REPEATED))
    items = split.data.items
    assert split.data.users.tolist() == ["a"]
    assert items[split.train.of(0).numpy()].tolist() == ["p"]
    assert (items[single(split.validation)[0]], items[single(split.test)[0]]) == ("q", "r")
    assert split.notes == (
        "3 repeated (user, item) rows collapsed to their first occurrence",
        "1 of 2 users with fewer than 3 different items dropped",
    )


def test_repeats_are_kept_counted_and_warned_of() -> None:
    split = PAPER.prepare(build(REPEATED))
    items = split.data.items
    assert items[split.train.of(0).numpy()].tolist() == ["p", "q", "p"]
    assert (items[single(split.validation)[0]], items[single(split.test)[0]]) == ("r", "q")
    assert split.train.lengths.tolist() == [3, 1]
    assert split.notes == ("3 repeated (user, item) rows kept: a held-out pair may also stand in training",)


@settings(max_examples=50)
@given(st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from("pqrs")), max_size=30), st.booleans())
def test_under_honest_a_held_out_item_is_never_in_training(rows: list[tuple[str, str]], timed: bool) -> None:
    split = HONEST.prepare(build([*rows, *((user, item) for user in "ab" for item in "xyz")], timed))
    for user in range(split.num_users):
        held = {*split.validation.answers(user), *split.test.answers(user)}
        assert len(held) == 2
        assert not held & set(split.train.of(user).tolist())


@pytest.mark.parametrize("base", [HONEST, PAPER])
def test_data_with_nobody_left_is_an_error(base: Protocol) -> None:
    with pytest.raises(DataError, match="rows: no user has 10 interactions or more; lower min_interactions"):
        replace(base, name="ten", min_interactions=10).prepare(build(user_with("a", 9)))


def test_data_of_repeats_alone_is_an_error() -> None:
    with pytest.raises(DataError, match="rows: no user has 3 different items or more"):
        HONEST.prepare(build([("a", "p"), ("a", "q")] * 4))
    with pytest.raises(DataError, match="rows: no user has 3 different items or more: one each"):
        replace(HONEST, name="eight", min_interactions=8).prepare(build([("a", "p"), ("a", "q")] * 4))


def test_untimed_data_is_told_after_what_was_dropped() -> None:
    data = build([*user_with("a", 5), *user_with("b", 1)], timed=False)
    dropped = "1 of 2 users with fewer than 3 interactions dropped"
    assert HONEST.prepare(data).notes == (
        dropped,
        "no timestamps: the held-out items are drawn at random (seeded); if a user's rows are in time order, give "
        "them a column timestamp that counts them (1, 2, 3, ...), or use a protocol with untimed = rows",
    )
    assert PAPER.prepare(data).notes == (
        dropped,
        "no timestamps: the order in which items first appear in the file stands for time",
    )


def test_the_split_follows_its_own_seed() -> None:
    data = build([(f"u{user}", f"i{item}") for user in range(40) for item in range(12)], timed=False)
    first, again, other = (single(replace(HONEST, name="s", split_seed=seed).prepare(data).test) for seed in (0, 0, 1))
    assert (first == again).all()
    assert (first == other).sum() < 20  # by chance one in twelve


def test_a_global_time_split_and_own_files_are_prepared_too(tmp_path: Path) -> None:
    data = build([(user, f"i{k}") for k in range(10) for user in "ab"])
    timed = custom({"split": "global-time", "validation_from": 0.5, "test_from": 0.8}, "timed").prepare(data)
    assert timed.train.lengths.tolist() == [5, 4]
    assert timed.notes[0].startswith("global time: training before 9, validation before 15")
    for part, rows in {"train": "a,i0\nb,i1\n", "validation": "a,i2\nb,i3\n", "test": "a,i4\nb,i5\n"}.items():
        (tmp_path / f"{part}.csv").write_text("user,item\n" + rows, encoding="utf-8")
    own = custom({"split": "files", "split_folder": str(tmp_path)}, "own").prepare(data)
    assert own.data.items[single(own.test)].tolist() == ["i4", "i5"]
    assert own.notes == (f"split from the files in {tmp_path}",)


def test_training_exclusions_are_training_items_or_all_known_ones() -> None:
    data = build([*user_with("a", 5), ("b", "i4"), ("b", "i0"), ("b", "i5")])
    for base, expected in ((HONEST, [["i0", "i1", "i2"], ["i4"]]), (PAPER, [data.items.tolist()[:5], None])):
        split = base.prepare(data)
        lists = base.training_exclusions(split)
        names = [sorted(split.data.items[lists.of(user).numpy()].tolist()) for user in (0, 1)]
        assert names == [expected[0], expected[1] or ["i0", "i4", "i5"]]
