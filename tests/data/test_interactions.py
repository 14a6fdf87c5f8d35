"""Properties of Interactions: nothing is lost, order is kept, equal data is recognised."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import date, datetime, timedelta, timezone
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ownview.base.errors import DataError, UnknownNameError
from ownview.data import Interactions, interactions

Rows = list[tuple[int, int, float, int]]

rows_strategy = st.lists(
    st.tuples(st.integers(-5, 5), st.integers(0, 6), st.sampled_from([0.5, 1.0, 2.5, 5.0]), st.integers(0, 2**40)),
    min_size=1,
    max_size=40,
)


def build(rows: Rows) -> Interactions:
    user, item, rating, timestamp = zip(*rows, strict=True)
    return Interactions.from_rows(
        "rows", np.array(user), np.array(item), np.array(rating), np.array(timestamp, dtype=np.int64)
    )


def rows_of(data: Interactions) -> Rows:
    """The rows as they were given: in order of `row`."""
    assert data.rating is not None
    assert data.timestamp is not None
    columns = (data.users[data.user], data.items[data.item], data.rating, data.timestamp)
    order = np.argsort(data.row, kind="stable")
    return list(zip(*(column[order].tolist() for column in columns), strict=True))


@given(rows_strategy)
def test_rows_survive_the_round_trip(rows: Rows) -> None:
    data = build(rows)
    assert rows_of(data) == rows
    assert data.users.tolist() == list(dict.fromkeys(row[0] for row in rows))
    assert data.items.tolist() == list(dict.fromkeys(row[1] for row in rows))
    assert sorted(data.row.tolist()) == list(range(len(rows)))


@given(rows_strategy)
def test_each_user_has_its_own_rows_in_source_order(rows: Rows) -> None:
    data = build(rows)
    for position, user in enumerate(data.users.tolist()):
        own = data.of(position)
        assert data.items[data.item[own]].tolist() == [row[1] for row in rows if row[0] == user]
        assert np.all(np.diff(data.row[own]) > 0)
        assert data.position_of_user(str(user)) == position


@given(rows_strategy, st.data())
def test_select_keeps_order_and_drops_what_is_unused(rows: Rows, choice: st.DataObject) -> None:
    data = build(rows)
    keep = np.array(choice.draw(st.lists(st.booleans(), min_size=len(rows), max_size=len(rows))))
    kept = data.select(keep)
    expected = [rows[line] for line in sorted(data.row[keep].tolist())]
    assert rows_of(kept) == expected if expected else len(kept) == 0
    assert set(kept.users.tolist()) == {row[0] for row in expected}
    assert set(kept.items.tolist()) == {row[1] for row in expected}
    assert kept.row.tolist() == data.row[keep].tolist()


@given(rows_strategy)
def test_without_repeats_keeps_the_first_of_each_pair(rows: Rows) -> None:
    first: dict[tuple[int, int], tuple[int, int, float, int]] = {}
    for row in rows:
        first.setdefault(row[:2], row)
    assert rows_of(build(rows).without_repeats()) == list(first.values())


@given(rows_strategy, st.integers(1, 5))
def test_filter_counts_repeated_pairs(rows: Rows, least: int) -> None:
    counts = {user: sum(row[0] == user for row in rows) for user, *_ in rows}
    kept = build(rows).with_at_least(least)
    assert len(kept) == sum(count for count in counts.values() if count >= least)
    assert set(kept.users.tolist()) == {user for user, count in counts.items() if count >= least}


@given(rows_strategy, st.data())
def test_fingerprint_changes_with_any_value(rows: Rows, choice: st.DataObject) -> None:
    line = choice.draw(st.integers(0, len(rows) - 1))
    column = choice.draw(st.integers(0, 3))
    changed = list(rows)
    changed[line] = tuple(value + 100 if k == column else value for k, value in enumerate(rows[line]))  # type: ignore[assignment]
    assert build(rows).fingerprint() == build(list(rows)).fingerprint()
    assert build(rows).fingerprint() != build(changed).fingerprint()


def test_fingerprint_sees_row_order_and_missing_columns() -> None:
    rows: Rows = [(1, 1, 1.0, 1), (2, 2, 1.0, 1), (1, 2, 1.0, 1)]
    swapped = [rows[0], rows[2], rows[1]]
    bare = Interactions.from_rows("rows", np.array([1, 2, 1]), np.array([1, 2, 2]))
    assert len({build(rows).fingerprint(), build(swapped).fingerprint(), bare.fingerprint()}) == 3


def test_fingerprint_is_what_it_ever_was_and_is_worked_out_once(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = ["a", "b", "a"], [1, 2, 2], [1.0, 2.0, 3.5], [5, 6, 7]
    data, other = Interactions.from_rows("two", *rows), Interactions.from_rows("two", *rows)
    known = "cf57564fc6f3649bf801a0288473d3b939d9572fc5524bc0cbce679535f83bb9"
    assert data.fingerprint() == known
    monkeypatch.setattr(interactions, "hashlib", None)
    assert data.fingerprint() == known
    for made in (other, replace(data, rating=None)):
        with pytest.raises(AttributeError):
            made.fingerprint()


def test_arrays_cannot_be_changed() -> None:
    with pytest.raises(ValueError, match="read-only"):
        build([(1, 1, 1.0, 1)]).item[0] = 3


def test_no_rows_and_unknown_users_are_errors() -> None:
    with pytest.raises(DataError, match="rows: no interactions"):
        Interactions.from_rows("rows", np.array([]), np.array([]))
    with pytest.raises(UnknownNameError, match=r"unknown user of rows '12'; did you mean '123'\?"):
        build([(123, 1, 1.0, 1)]).position_of_user("12")


def test_it_is_shown_in_a_line() -> None:
    assert repr(build([(1, 1, 1.0, 1), (1, 2, 1.0, 1)])) == "Interactions(rows: 1 users, 2 items, 2 interactions)"


@pytest.mark.parametrize("kind", ["polars", "pandas", "columns"])
def test_tables_of_rows_items_and_users_make_one_data(kind: str) -> None:
    made: dict[str, Any] = {"polars": pl.DataFrame, "columns": dict}
    make = pytest.importorskip("pandas").DataFrame if kind == "pandas" else made[kind]
    rows = make(
        {"user": ["a", "b", "a"], "item": [3, 1, 1], "rating": [4.0, 2.0, 5.0], "timestamp": [7, 8, 9], "x": [0] * 3}
    )
    items = make({"kind": ["k1", "k3"], "item": [1, 3]})
    users = make({"user": ["b", "unheard of"], "age": [30, 40]})
    data = Interactions.from_frame("shop", rows, items=items, users=users)
    assert data.about is not None
    assert data.about_users is not None
    assert (data.items.tolist(), data.about.columns) == ([3, 1], {"kind": ("k3", "k1")})
    assert (data.users.tolist(), data.about_users.columns) == (["a", "b"], {"age": ("", "30")})
    plain = Interactions.from_rows("shop", ["a", "b", "a"], [3, 1, 1], [4.0, 2.0, 5.0], [7, 8, 9])
    assert data.fingerprint() == plain.fingerprint()
    assert data.unread == ("x",)
    for wrong, message in (
        (
            {"rows": make({"user": ["a"], "id": [1]})},
            "shop: the table has columns user, id; expected one called 'item'",
        ),
        ({"rows": rows, "items": make({"item": [1, 1]})}, "the table of items: row 2: item '1' stands in row 1 too"),
        ({"rows": rows, "users": make({"user": ["z"]})}, "names none of the users of the data"),
    ):
        with pytest.raises(DataError, match=message):
            Interactions.from_frame("shop", **wrong)


@pytest.mark.parametrize(
    ("column", "values", "message"),
    [
        ("quantity", [0, 1], "x: quantity 0 in row 1; expected more than 0 of what was taken"),
        ("quantity", [1, "two"], "x: quantity 'two' in row 2; expected a finite number in every row"),
        ("rating", [1.0, float("inf")], "x: rating 'inf' in row 2; expected a finite number in every row"),
        ("timestamp", ["2024-01-01"] * 2, "x: timestamp has values such as '2024-01-01'; expected whole seconds"),
    ],
)
def test_values_that_are_none_are_refused(column: str, values: Any, message: str) -> None:
    """A quantity of 0 would be gone once the data is stored and read again: it is a return there."""
    with pytest.raises(DataError, match=re.escape(message)):
        Interactions.from_frame("x", {"user": ["a", "b"], "item": [1, 1], column: values})


def test_dates_of_python_are_seconds_in_utc() -> None:
    zone = timezone(timedelta(hours=1))
    moments = [datetime(2024, 1, 1, 1, tzinfo=zone), datetime(2024, 1, 1), date(2024, 1, 1)]
    data = Interactions.from_frame("x", {"user": ["a"] * 3, "item": [1, 2, 3], "timestamp": moments})
    assert data.timestamp is not None
    assert data.timestamp.tolist() == [1704067200] * 3


def test_a_column_of_titles_names_the_items() -> None:
    items: dict[str, list[Any]] = {"item": [1, 2], "title": ["Green Tea", None]}
    data = Interactions.from_frame("x", {"user": ["a"] * 3, "item": [1, 2, 3]}, items=items)
    assert (data.titles, data.titled) == (("Green Tea", "2", "3"), True)
    renamed = data.with_tables(items={"item": [1], "title": ["Another"]})
    assert renamed.title(0) == "Green Tea"
