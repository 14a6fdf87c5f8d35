"""The penalties against redundant dimensions, against loops over samples: a row that counts twice is two samples."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from ownview.parts.redundancy import REDUCTIONS

GAMMA = 0.3
COUNTS = [1, 3, 0, 2, 1, 0]
Vector = list[float]
Matrix = list[Vector]


def _dot(left: Vector, right: Vector) -> float:
    return sum(a * b for a, b in zip(left, right, strict=True))


def _unit(row: Vector) -> Vector:
    length = math.sqrt(_dot(row, row))
    return [one / length for one in row]


def _squared_distance(left: Vector, right: Vector) -> float:
    return sum((a - b) ** 2 for a, b in zip(left, right, strict=True))


def _column(rows: Matrix, j: int) -> Vector:
    return [row[j] for row in rows]


def _err(own: Matrix, received: Matrix, samples: list[int]) -> float:
    size, total = len(own[0]), 0.0
    for i in range(size):
        for j in range(size):
            left = _column([own[s] for s in samples], i)
            right = _column([received[s] for s in samples], j)
            cosine = _dot(_unit(left), _unit(right))
            total += (1 - cosine) ** 2 / size if i == j else GAMMA * cosine**2 / size
    return total


def _au(own: Matrix, received: Matrix, samples: list[int]) -> float:
    x, y = [_unit(own[s]) for s in samples], [_unit(received[s]) for s in samples]
    aligned = sum(_squared_distance(a, b) for a, b in zip(x, y, strict=True)) / len(samples)
    pairs = [math.exp(-2 * _squared_distance(a, b)) for a in x for b in x]
    return aligned + GAMMA * math.log(sum(pairs) / len(pairs))


def _duorec(own: Matrix, received: Matrix, samples: list[int]) -> float:
    """Every sample against the batch's items, each of which stands once among the others."""
    total = 0.0
    for s in samples:
        x = _unit(own[s])
        against = [math.exp(_dot(x, _unit(received[item]))) for item in sorted(set(samples))]
        total -= math.log(math.exp(_dot(x, _unit(received[s]))) / sum(against))
    return total / len(samples)


def _feddecorr(own: Matrix, received: Matrix, samples: list[int]) -> float:
    """Correlation coefficients of every dimension with every other."""
    size, total = len(own[0]), 0.0
    columns = [_column([own[s] for s in samples], j) for j in range(size)]
    means = [sum(column) / len(samples) for column in columns]
    centred = [[one - mean for one in column] for column, mean in zip(columns, means, strict=True)]
    for left in centred:
        for right in centred:
            total += _dot(_unit(left), _unit(right)) ** 2
    return total / size**2


LOOPS: dict[str, Callable[[Matrix, Matrix, list[int]], float]] = {
    "err": _err,
    "au": _au,
    "duorec": _duorec,
    "feddecorr": _feddecorr,
}


def _views(seed: int = 0) -> tuple[Tensor, Tensor]:
    random = torch.Generator().manual_seed(seed)
    own, received = torch.randn(2, len(COUNTS), 3, generator=random, dtype=torch.float64)
    return own, received


def test_every_penalty_has_a_loop() -> None:
    assert set(LOOPS) == set(REDUCTIONS)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("name", REDUCTIONS)
def test_penalties_equal_loops_over_samples(name: str, seed: int) -> None:
    own, received = _views(seed)
    samples = [row for row, count in enumerate(COUNTS) for _ in range(count)]
    found = REDUCTIONS[name](own, received, torch.tensor(COUNTS, dtype=torch.float64), GAMMA)
    assert found.shape == ()
    assert float(found) == pytest.approx(LOOPS[name](own.tolist(), received.tolist(), samples), abs=1e-9)


@pytest.mark.parametrize("name", REDUCTIONS)
def test_counting_a_row_once_only_would_be_another_penalty(name: str) -> None:
    own, received = _views()
    counts = torch.tensor(COUNTS, dtype=torch.float64)
    once = torch.tensor([row for row, count in enumerate(COUNTS) for _ in range(min(count, 1))])
    value = REDUCTIONS[name](own, received, counts, GAMMA)
    flat = REDUCTIONS[name](own[once], received[once], torch.ones(len(once), dtype=torch.float64), GAMMA)
    assert abs(float(value - flat)) > 1e-4


@pytest.mark.parametrize("filling", [0.0, 1e3, -7.0])
@pytest.mark.parametrize("name", REDUCTIONS)
def test_rows_that_do_not_count_do_not_matter(name: str, filling: float) -> None:
    own, received = _views()
    counts = torch.tensor(COUNTS, dtype=torch.float64)
    absent = counts == 0
    mine, theirs = (torch.where(absent[:, None], filling, view).requires_grad_() for view in (own, received))
    value = REDUCTIONS[name](mine, theirs, counts, GAMMA)
    assert float(value.detach()) == pytest.approx(float(REDUCTIONS[name](own, received, counts, GAMMA)), abs=1e-12)
    gradients = torch.autograd.grad(value, (mine, theirs), materialize_grads=True)
    assert float(gradients[0][~absent].abs().max()) > 0
    for gradient in gradients:
        assert torch.equal(gradient[absent], torch.zeros_like(gradient[absent]))


@pytest.mark.parametrize(
    "views",
    [
        pytest.param((torch.ones(2, 3), torch.ones(2, 3)), id="equal rows"),
        pytest.param((torch.zeros(2, 3), torch.zeros(2, 3)), id="a dead network"),
        pytest.param((torch.eye(2, 3), torch.eye(2, 3)), id="a dimension nobody uses"),
    ],
)
@pytest.mark.parametrize("counts", [[1.0, 0.0], [2.0, 1.0]])
@pytest.mark.parametrize("name", REDUCTIONS)
def test_degenerate_batches_stay_finite(name: str, counts: list[float], views: tuple[Tensor, Tensor]) -> None:
    own, received = (view.clone().requires_grad_() for view in views)
    value = REDUCTIONS[name](own, received, torch.tensor(counts), GAMMA)
    assert torch.isfinite(value)
    for gradient in torch.autograd.grad(value, (own, received), materialize_grads=True):
        assert torch.isfinite(gradient).all()


def test_err_of_equal_views_with_independent_dimensions_is_zero() -> None:
    view = torch.tensor([[1.0, 0.0], [0.0, 2.0]], dtype=torch.float64)
    assert float(REDUCTIONS["err"](view, view, torch.ones(2, dtype=torch.float64), GAMMA)) == pytest.approx(0, abs=1e-9)
    same = torch.tensor([[1.0, 1.0], [2.0, 2.0]], dtype=torch.float64)
    found = float(REDUCTIONS["err"](same, same, torch.ones(2, dtype=torch.float64), GAMMA))
    assert found == pytest.approx(GAMMA, abs=1e-9)  # both off-diagonal cosines are 1
