"""Moments in words."""

from __future__ import annotations

import pytest

from ownview.data.dates import in_utc, ticks_in_a_second


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (885_075_824, "1998-01-17 22:23 UTC"),
        (1_700_000_000, "2023-11-14 22:13 UTC"),
        (0, "0"),
        (92_756, "92756"),
        (-5, "-5"),
        (1_700_000_000_000, "1700000000000"),
    ],
)
def test_seconds_are_dates_and_other_numbers_stay(seconds: int, expected: str) -> None:
    assert in_utc(seconds) == expected


@pytest.mark.parametrize(
    ("typical", "ticks"),
    [
        (-5, 1),
        (7, 1),
        (1_700_000_000, 1),
        (99_999_999_999, 1),
        (1_700_000_000_000, 10**3),
        (1_700_000_000_000_000, 10**6),
        (1_700_000_000_000_000_000, 10**9),
        (20_231_114_221_300, None),
        (9_000_000_000_000_000_000, None),
    ],
)
def test_the_unit_of_a_clock_follows_from_where_it_stands(typical: int, ticks: int | None) -> None:
    assert ticks_in_a_second(typical) == ticks
