"""Moments of a dataset as people write them."""

from __future__ import annotations

from datetime import UTC, datetime

_EARLIEST = 10**8
"""1973. Smaller numbers are places in an order or days rather than seconds since 1970."""

_LATEST = 10**11
"""The year 5138. Larger ones are milliseconds or finer."""


def in_utc(seconds: int) -> str:
    """'1998-01-17 22:23 UTC'; the number itself where it cannot be seconds since 1970."""
    if not _EARLIEST <= seconds < _LATEST:
        return str(seconds)
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M UTC")
