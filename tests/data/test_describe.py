"""Descriptions agree with counts made by hand, and with the papers on the papers' data."""

from __future__ import annotations

import json
from collections.abc import Callable

import numpy as np
import pytest

from ownview.data import Interactions
from ownview.data.datasets.catalog import Entry, PaperCounts, entry_of
from ownview.data.describe import describe


def small() -> Interactions:
    """User a has 4 rows (pair with x twice), b has 1."""
    return Interactions.from_rows(
        "small",
        np.array(["a", "b", "a", "a", "a"], dtype=object),
        np.array(["x", "x", "y", "x", "z"], dtype=object),
        rating=np.array([1.0, 5.0, 2.0, 3.0, 0.5]),
        timestamp=np.array([10, 10, 20, 20, 35], dtype=np.int64),
    )


def entry(*counts: PaperCounts) -> Entry:
    return Entry("small", "Small", "https://example.org", "none", "none", counts=counts, notes="mind the gap")


def test_counts_by_hand() -> None:
    found = describe(small())
    assert (found.users, found.items, found.rows) == (2, 3, 5)
    assert found.sparsity == pytest.approx(1 - 5 / 6)
    assert (found.per_user.min, found.per_user.median, found.per_user.max) == (1, 2.5, 4)
    assert (found.per_item.min, found.per_item.median, found.per_item.max) == (1, 1, 3)
    assert (found.repeated_rows, found.repeated_share) == (1, 0.2)
    assert found.rating_range == (0.5, 5.0)
    assert found.users_under_3 == 1
    assert found.papers == ()


def test_only_rows_of_the_same_user_tie() -> None:
    times = describe(small()).times
    assert (times.kind, times.distinct, times.first, times.last, times.span) == ("real", 3, 10, 35, 25)
    assert times.tied_rows == pytest.approx(2 / 5)


def test_absent_times_and_ratings() -> None:
    found = describe(Interactions.from_rows("bare", np.array([1, 1]), np.array([1, 2])))
    assert found.times.kind == "absent"
    assert found.times.span is None
    assert found.rating_range is None


def test_papers_are_checked_after_their_filter() -> None:
    right = PaperCounts(("Right",), 2, 1, 3, 4)
    wrong = PaperCounts(("Wrong",), 1, 2, 3, 4)
    found = describe(small(), entry(right, wrong))
    assert [check.equal for check in found.papers] == [True, False]
    assert found.papers[1].found == (2, 3, 5)


def test_a_filter_that_drops_everybody_is_counted_as_nothing() -> None:
    found = describe(small(), entry(PaperCounts(("Strict",), 50, 1, 1, 1)))
    assert found.papers[0].found == (0, 0, 0)


def test_dict_goes_through_json() -> None:
    plain = describe(small(), entry(PaperCounts(("Right",), 2, 1, 3, 4))).to_dict()
    again = json.loads(json.dumps(plain))
    assert again == plain
    assert again["papers"][0]["expected"] == {"users": 1, "items": 3, "rows": 4}
    assert again["papers"][0]["equal"] is True
    assert again["times"]["span"] == 25
    assert again["notes"] == "mind the gap"


RAW_COUNTS = {
    "filmtrust": (1_508, 2_071, 35_497),
    "ml-100k": (943, 1_682, 100_000),
    "ml-1m": (6_040, 3_706, 1_000_209),
    "lastfm-2k-tags": (1_892, 12_523, 186_479),
    "lastfm-2k-artists": (1_892, 17_632, 92_834),
    "amazon-instant-video": (8_072, 11_830, 63_836),
}


@pytest.mark.realdata
@pytest.mark.parametrize("name", RAW_COUNTS)
def test_raw_and_filtered_counts_are_the_papers(real_data: Callable[[str], Interactions], name: str) -> None:
    found = describe(real_data(name), entry_of(name))
    assert (found.users, found.items, found.rows) == RAW_COUNTS[name]
    assert found.papers, "the catalogue knows what the papers print"
    for check in found.papers:
        assert check.found == check.expected, check


@pytest.mark.realdata
def test_known_flaws_of_the_papers_data_are_seen(real_data: Callable[[str], Interactions]) -> None:
    tags = describe(real_data("lastfm-2k-tags"))
    assert tags.rows - tags.repeated_rows == 71_064
    assert tags.times.distinct == 75
    assert tags.times.first is not None
    assert tags.times.first < 0
    assert describe(real_data("filmtrust")).repeated_rows == 3
    hundred = describe(real_data("ml-100k"))
    assert hundred.times.tied_rows == pytest.approx(0.758, abs=5e-4)
