"""Moments of a dataset as people write them."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import numpy.typing as npt

EARLIEST = 10**8
"""1973. Smaller numbers are places in an order or days rather than seconds since 1970."""

LATEST = 10**11
"""The year 5138. Larger ones are milliseconds or finer."""

_CENTURY_ENDS = 4_102_444_800
"""The year 2100."""

UNITS = {1: "seconds", 10**3: "milliseconds", 10**6: "microseconds", 10**9: "nanoseconds"}
"""By how many of them are in a second."""


def ticks_in_a_second(typical: int) -> int | None:
    """Ticks a second, by a typical timestamp: 1 for seconds or a mere order, 1000 or more, None for no clock.

    What is too late for seconds is taken for the unit in which it lies between 1973 and 2100.
    """
    if typical < LATEST:
        return 1
    return next((ticks for ticks in UNITS if EARLIEST <= typical // ticks < _CENTURY_ENDS), None)


def count_rows(times: npt.NDArray[np.int64]) -> bool:
    """Whether times [r] are numbers of rows, of the file or of a user: no clock stands below r seconds after 1970."""
    return bool(times.size) and int(times.min()) >= 0 and int(times.max()) <= min(times.size, EARLIEST)


def in_utc(seconds: int) -> str:
    """'1998-01-17 22:23 UTC'; the number itself where it cannot be seconds since 1970."""
    if not EARLIEST <= seconds < LATEST:
        return str(seconds)
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M UTC")
