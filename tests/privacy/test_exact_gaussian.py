"""Rounded Gaussian noise against its formula. Bits are secret; a wrong alarm has a chance below one in a million."""

from __future__ import annotations

import decimal
from decimal import Decimal

import numpy as np
import numpy.typing as npt
import pytest
from scipy import special, stats

from ownview.privacy import exact_gaussian
from ownview.privacy.entropy import NoiseKey, Stream, Words
from ownview.privacy.exact_gaussian import MOST, delta_of_tails, rounded_gaussian

_NUMBERS = 400_000
_UNLIKELY = 1e-7


def _drawn(exponent: int, count: int = _NUMBERS) -> exact_gaussian.Whole:
    return rounded_gaussian(NoiseKey.fresh().stream("test"), count, exponent)


def _chances(values: exact_gaussian.Whole, exponent: int) -> npt.NDArray[np.float64]:
    """Of round(2^e G) = k: what the normal distribution has from k - 1/2 to k + 1/2."""
    size = -np.abs(values)  # below 0 nothing is lost to cancellation
    return np.asarray(special.ndtr((size + 0.5) / 2**exponent) - special.ndtr((size - 0.5) / 2**exponent))


@pytest.mark.parametrize("exponent", [0, 2, 5])
def test_every_whole_number_comes_as_often_as_the_formula_says(exponent: int) -> None:
    """Chi-square over all whole numbers that are expected ten times at least; those beyond count as one."""
    drawn, reach = _drawn(exponent), 5 * 2**exponent
    inside = np.arange(-reach, reach + 1)
    chances = _chances(inside, exponent)
    counted = chances * _NUMBERS >= 10
    counts = np.array([(drawn == k).sum() for k in inside[counted]])
    expected = chances[counted] * _NUMBERS
    found = np.append(counts, _NUMBERS - counts.sum())
    wanted = np.append(expected, _NUMBERS - expected.sum())
    assert stats.chisquare(found, wanted).pvalue > _UNLIKELY


@pytest.mark.parametrize("exponent", [2, 20, MOST])
def test_quantiles_are_uniform(exponent: int) -> None:
    """By intervals between 200 quantiles of the formula, at every scale."""
    drawn = _drawn(exponent)
    edges = np.unique(np.floor(special.ndtri(np.arange(1, 200) / 200) * 2**exponent)).astype(np.int64)
    upto = np.concatenate([[0.0], special.ndtr((edges + 0.5) / 2**exponent), [1.0]])
    counts = np.bincount(np.searchsorted(edges, drawn, side="left"), minlength=len(edges) + 1)
    assert stats.chisquare(counts, np.diff(upto) * _NUMBERS).pvalue > _UNLIKELY


@pytest.mark.parametrize("bound", [3.0, 3.5, 4.0])
def test_tails_are_as_heavy_as_the_formula_says(bound: float) -> None:
    drawn = _drawn(20, 2 * _NUMBERS)
    beyond = int((np.abs(drawn) > bound * 2**20).sum())
    chance = 2 * float(special.ndtr(-bound))
    assert stats.binomtest(beyond, len(drawn), chance).pvalue > _UNLIKELY


def test_the_last_bits_and_neighbours_know_nothing() -> None:
    drawn = _drawn(20)
    assert stats.chisquare(np.bincount(drawn & 255, minlength=256)).pvalue > _UNLIKELY
    signs = (drawn[:-1:2] > 0) * 2 + (drawn[1::2] > 0)
    assert stats.chisquare(np.bincount(signs, minlength=4)).pvalue > _UNLIKELY
    assert abs(float(np.corrcoef(drawn[:-1], drawn[1:])[0, 1])) < 6 / np.sqrt(_NUMBERS)


def test_proposals_are_the_weights_exactly() -> None:
    """In whole numbers: what columns give to every block is its W, all of them together are 2^63, and W >= M e."""
    table, cuts = exact_gaussian._table(), [0] * exact_gaussian._BLOCKS
    for column, entry in enumerate(table.columns.tolist()):
        cut, other = divmod(entry, exact_gaussian._BLOCKS)
        cuts[column] += cut
        cuts[other] += 2**exact_gaussian._CUT - cut
    assert cuts == table.weights
    assert sum(table.weights) == 2**63
    with decimal.localcontext(prec=80):
        for block in (*range(0, exact_gaussian._BLOCKS, 97), exact_gaussian._BLOCKS - 1):
            left, right = (Decimal(b) / 1024 for b in (block, block + 1))
            assert table.weights[block] >= table.scale * (-left * left / 2).exp()
            least = table.scale * (-right * right / 2).exp() / table.weights[block]
            assert Decimal(int(table.levels[block])) <= least * 2**exact_gaussian._LEVEL


class _Digits(Stream):
    """Digits that a test has chosen."""

    def __init__(self, *words: int) -> None:
        self.left = list(words)

    def words(self, count: int) -> Words:
        """The next of them."""
        found, self.left = self.left[:count], self.left[count:]
        return np.array(found, dtype=np.uint64)


def test_what_is_near_the_bound_is_decided_by_more_digits() -> None:
    """U's first 44 digits are those of p itself: the next ones decide, one way and the other."""
    table, block, inside = exact_gaussian._table(), 1500, 77
    with decimal.localcontext(prec=80):
        x = Decimal((block << 20) + inside) / 2**30
        chance = table.scale * (-x * x / 2).exp() / table.weights[block]
        level = int(chance * 2**44)
    lower, higher = _Digits(0, 0), _Digits(2**32 - 1, 0)
    assert exact_gaussian._below(lower, table, block, inside, level)
    assert not exact_gaussian._below(higher, table, block, inside, level)
    assert len(lower.left) < 2, "44 digits decided what they cannot"
    assert exact_gaussian._below(_Digits(), table, block, inside, level - 2**20)
    assert not exact_gaussian._below(_Digits(), table, block, inside, level + 2**20)


def test_a_key_draws_the_same_again_and_two_keys_share_nothing() -> None:
    key = NoiseKey.fresh()
    one, again = (rounded_gaussian(key.stream("sum", 1), 1000, 20) for _ in range(2))
    assert (one == again).all()
    for other in (NoiseKey.fresh().stream("sum", 1), key.stream("sum", 2), key.derived("sum").stream(1)):
        assert (rounded_gaussian(other, 1000, 20) == one).mean() < 0.01


def test_a_secret_key_draws_other_noise_for_other_content_and_a_seeded_one_the_same() -> None:
    zeros, ones = np.zeros(4), np.ones(4)
    for key, same in ((NoiseKey.fresh(), False), (NoiseKey.from_seed(3), True)):
        first, second, again = (key.stream("sum", content=one).words(8).tolist() for one in (zeros, ones, zeros))
        assert (first == second) == same
        assert first == again


def test_a_key_is_never_printed() -> None:
    key = NoiseKey.fresh()
    assert str(key.key) not in repr(key)


def test_what_is_cut_off_costs_next_to_nothing() -> None:
    assert 0 < delta_of_tails(8.0, 100, 10**9) < 1e-40
    assert 2 * float(special.ndtr(-16.0)) < 2.0**-188


@pytest.mark.parametrize("exponent", [-1, MOST + 1])
def test_a_scale_that_does_not_fit_is_refused(exponent: int) -> None:
    with pytest.raises(ValueError, match="exponent from 0 to 29"):
        rounded_gaussian(NoiseKey.fresh().stream("test"), 1, exponent)
