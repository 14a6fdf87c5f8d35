"""How sure a mean over users is: intervals that hold also where hits are very rare, or nearly certain.

Drawing users with replacement does not: with 943 users and a hit rate of 0.006 the middle 95 % of the drawn means hold
the truth 90 times in 100, and of 100 users none may have hit, where every draw gives 0. The exact limits of a
share of hits know better. They are taken over to values between 0 and 1, such as NDCG or means over seeds, by asking
how many users with plain hits would vary as much. A person who is asked several times is one unit: what a person
answers at one time says much about what the same person answers at another, so questions are no users.
"""

from __future__ import annotations

import numpy as np

from ownview.base.errors import DataError
from ownview.data.interactions import FloatArray, IntArray

_SLACK = 1e-9
"""By which a mean over seeds may leave 0 to 1 by rounding."""


def mean_interval(values: FloatArray, persons: IntArray | None = None, *, level: float = 0.95) -> tuple[float, float]:
    """Interval of the mean of per-user values; see `mean_intervals`."""
    low, high = mean_intervals(values[:, None], persons, level=level)
    return float(low[0]), float(high[0])


def mean_intervals(
    values: FloatArray, persons: IntArray | None = None, *, level: float = 0.95
) -> tuple[FloatArray, FloatArray]:
    """Lower and upper ends [k] for k columns of per-user values [users, k], each from 0 to 1.

    With mean m and variance v of n users, e = n m (1 - m) / v plain users vary as much: hits and misses have variance
    m (1 - m), and all other values between 0 and 1 less, so e is n or more. The ends are those of Clopper and Pearson
    for m e hits of e users, by the quantiles of Beta distributions:

        low = Beta(m e, e - m e + 1) at (1 - level) / 2,    high = Beta(m e + 1, e - m e) at (1 + level) / 2

    Where all values are 0 (or 1), e is n and that end is 0 (or 1) itself. Where all are the same otherwise, both ends
    are the mean.

    Where persons were asked several times, their values are summed: with c_p the sum of a person's differences from m,
    v is the sum of c_p^2 over n, the n questions' mean varies by v / n, and without any hit, e is how many persons
    there are. With one question a person this is the same.

    Args:
        values: where a user has several (seeds of a run), take the user's mean first: values of one user are not
            independent of each other. With fewer than two persons the interval is the mean itself.
        persons: [users] which person each value is of, from 0; None where each is of another.
        level: share of samples of users whose interval holds the truth, or a little more.
    """
    if values.size and (values.min() < -_SLACK or values.max() > 1 + _SLACK):
        raise DataError(
            f"values of users lie from {values.min():g} to {values.max():g}; expected 0 to 1, as HR and NDCG have"
        )
    values = np.clip(values, 0, 1)
    if number_of_persons(values, persons) < 2:
        return values.mean(axis=0), values.mean(axis=0)
    return _limits(values, persons, level)


def by_person(values: FloatArray, persons: IntArray | None) -> FloatArray:
    """[persons, k] sums of values [users, k]; themselves where every user is another person."""
    if persons is None:
        return values
    sums = np.zeros((number_of_persons(values, persons), values.shape[1]))
    np.add.at(sums, persons, values)
    return sums


def number_of_persons(values: FloatArray, persons: IntArray | None) -> int:
    """Number of different persons behind values [users, ...]."""
    return len(values) if persons is None else int(persons.max(initial=-1)) + 1


def difference_interval(
    values: FloatArray, persons: IntArray | None = None, *, level: float = 0.95
) -> tuple[float, float]:
    """Interval of the mean of per-user differences; see `difference_intervals`."""
    low, high = difference_intervals(values[:, None], persons, level=level)
    return float(low[0]), float(high[0])


def difference_intervals(
    values: FloatArray, persons: IntArray | None = None, *, level: float = 0.95
) -> tuple[FloatArray, FloatArray]:
    """The same for differences of two such values, each from -1 to 1.

    A difference is what was won minus what was lost, d = w - l, both from 0 to 1, with the ends of `mean_intervals`
    each. They are put together as independent errors are, but for the correlation r of w and l over persons:

        low = d - sqrt(a^2 + b^2 - 2 r a b),    a = w - low of w,    b = high of l - l

    and the upper end the other way round. Without any win the interval bounds how many there might be.
    """
    if values.size and np.abs(values).max() > 1 + _SLACK:
        raise DataError(f"differences of users go up to {np.abs(values).max():g}; expected -1 to 1")
    if number_of_persons(values, persons) < 2:
        return values.mean(axis=0), values.mean(axis=0)
    won, lost = np.clip(values, 0, 1), np.clip(-values, 0, 1)
    (won_low, won_high), (lost_low, lost_high) = _limits(won, persons, level), _limits(lost, persons, level)
    mean_won, mean_lost = won.mean(axis=0), lost.mean(axis=0)
    moved_won, moved_lost = by_person(won - mean_won, persons), by_person(lost - mean_lost, persons)
    spreads = np.sqrt(np.square(moved_won).sum(axis=0) * np.square(moved_lost).sum(axis=0))
    together = (moved_won * moved_lost).sum(axis=0)
    correlation = np.where(spreads > 0, together / np.where(spreads > 0, spreads, 1), 0)
    below = _joined(mean_won - won_low, lost_high - mean_lost, correlation)
    above = _joined(won_high - mean_won, mean_lost - lost_low, correlation)
    difference = mean_won - mean_lost
    return difference - below, difference + above


def _limits(values: FloatArray, persons: IntArray | None, level: float) -> tuple[FloatArray, FloatArray]:
    from scipy.special import betaincinv  # noqa: PLC0415 - slow to import

    mean = values.mean(axis=0)
    variance = np.square(by_person(values - mean, persons)).sum(axis=0) / len(values)
    low, high = mean.copy(), mean.copy()  # of values that are all the same and neither 0 nor 1
    some_hit, some_miss = values.max(axis=0) > 0, values.min(axis=0) < 1
    vary = variance > _SLACK**2
    users = np.where(vary, len(values) * mean * (1 - mean), number_of_persons(values, persons))
    users = users / np.where(vary, variance, 1)
    hits, misses = mean * users, (1 - mean) * users
    below, above = vary | ~some_miss, vary | ~some_hit
    low[below] = betaincinv(hits[below], misses[below] + 1, (1 - level) / 2)
    high[above] = betaincinv(hits[above] + 1, misses[above], (1 + level) / 2)
    return np.minimum(low, mean), np.maximum(high, mean)


def _joined(one: FloatArray, other: FloatArray, correlation: FloatArray) -> FloatArray:
    return np.sqrt(np.maximum(one**2 + other**2 - 2 * correlation * one * other, 0))
