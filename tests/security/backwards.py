"""SplitMix64 run backwards: from a few noisy numbers whose true value is 0 to the stream that all noise came from.

A number of the old noise was scale x quantile(u), u the upper 53 of 63 bits that SplitMix64's finaliser makes of
`stream + (counter + 1) x golden`. The finaliser is a bijection. A noisy 0 tells u up to a few neighbours; ten lower
bits and the sign are missing, 2,048 candidates each; every other noisy number tells whether a candidate is right.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy import special

_GOLDEN = 0x9E3779B97F4A7C15
_FIRST, _SECOND = 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
_NEIGHBOURS = 24
"""Units of the last place of u on either side that are tried."""
_TRIED, _CHECKED, _ZEROS = 40, 24, 4
"""Numbers that may be noise alone, those that every candidate is held against, and true zeros that there must be."""

Words = npt.NDArray[np.uint64]
Numbers = npt.NDArray[np.float64]


def mixed(state: Words) -> Words:
    """SplitMix64's finaliser."""
    with np.errstate(over="ignore"):
        state = (state ^ (state >> np.uint64(30))) * np.uint64(_FIRST)
        state = (state ^ (state >> np.uint64(27))) * np.uint64(_SECOND)
    return state ^ (state >> np.uint64(31))


def unmixed(state: Words) -> Words:
    """What the finaliser made `state` of."""
    with np.errstate(over="ignore"):
        state = _unshifted(state, 31) * np.uint64(pow(_SECOND, -1, 2**64))
        state = _unshifted(state, 27) * np.uint64(pow(_FIRST, -1, 2**64))
    return _unshifted(state, 30)


def _unshifted(state: Words, by: int) -> Words:
    """X of x ^ (x >> by)."""
    found = state
    for _ in range(64 // by):
        found = state ^ (found >> np.uint64(by))
    return found


def noise_of(stream: int, count: int, scale: float) -> Numbers:
    """[count] what the stream's noise is, in counting order."""
    return _at(np.uint64(stream), np.arange(count, dtype=np.uint64), scale)


def _at(streams: Words | np.uint64, counters: Words | int, scale: float) -> Numbers:
    """What the noise of streams is at counters."""
    with np.errstate(over="ignore"):
        states = np.asarray(streams + (np.asarray(counters, dtype=np.uint64) + np.uint64(1)) * np.uint64(_GOLDEN))
    return _quantile((mixed(states) & np.uint64(2**63 - 1)) >> np.uint64(10), scale)


def _quantile(units: Words, scale: float) -> Numbers:
    return np.asarray(scale * special.ndtri(np.maximum(units * 2.0**-53, 2.0**-54)))


def stream_behind(noisy: Numbers, scale: float, rest: float = 1.0) -> int | None:
    """The stream that noise came from; None where none is found.

    Args:
        noisy: [D] numbers with noise, some of whose true values are 0; nobody says which.
        scale: standard deviation of the noise, which everybody knows.
        rest: the largest true value that there may be.
    """
    order = np.argsort(-np.abs(noisy))  # the largest have the fewest neighbours
    for place in order[:_TRIED].tolist():
        found = _candidates(float(noisy[place]), place, scale)
        for other in range(min(len(noisy), _CHECKED)):  # noise taken off leaves small numbers, other noise does not
            found = found[np.abs(noisy[other] - _at(found, other, scale)) <= rest + 1e-6]
        for stream in found.tolist():
            left = np.abs(noisy - noise_of(stream, len(noisy), scale))
            if left.max() <= rest + 1e-6 and (left < 1e-9 * scale).sum() >= _ZEROS:
                return int(stream)
    return None


def _candidates(value: float, counter: int, scale: float) -> Words:
    """Streams whose noise at a counter is this value, to the last bits of it."""
    middle = round(special.ndtr(value / scale) * 2**53)
    near = np.arange(max(0, middle - _NEIGHBOURS), min(2**53, middle + _NEIGHBOURS), dtype=np.uint64)
    close = np.abs(_quantile(near, scale) - value) <= 2.0**-40 * scale
    near = near[close]
    low = np.arange(2**10, dtype=np.uint64)
    bits = ((near[:, None] << np.uint64(10)) | low).reshape(-1)
    both = np.concatenate([bits, bits | np.uint64(2**63)])
    with np.errstate(over="ignore"):
        return unmixed(both) - np.uint64((counter + 1) * _GOLDEN % 2**64)
