"""Moments in words."""

from __future__ import annotations

import pytest

from ownview.data.dates import in_utc


@pytest.mark.parametrize(
    ("seconds", "told"),
    [
        (885_075_824, "1998-01-17 22:23 UTC"),
        (1_700_000_000, "2023-11-14 22:13 UTC"),
        (0, "0"),
        (92_756, "92756"),
        (-5, "-5"),
        (1_700_000_000_000, "1700000000000"),
    ],
)
def test_seconds_are_dates_and_other_numbers_stay(seconds: int, told: str) -> None:
    assert in_utc(seconds) == told
