"""CoLR's rounds, worked out step by step with plain arithmetic, and what travels in them."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from ownview import CoLR, FederationOptions
from ownview.base.errors import SettingError
from ownview.base.randomness import generator
from ownview.plugins.dual_personalisation import DualPersonalisation
from ownview.seam.initial import Orthonormal
from ownview.testing.worlds import federation, small_world
from tests.methods.golden import (
    ENVELOPE,
    ITEMS,
    UNEVEN_COUNTS,
    AdamByHand,
    Matrix,
    Vector,
    dot,
    heading,
    touched_rows,
    uneven_errors,
    uneven_federation,
)

SIZE, RANK, EPOCHS, RATE = 3, 2, 2, 0.05


def _train(client: int, user: Vector, table: Matrix, basis: Matrix) -> Matrix:
    """One client's local training: u moves in place; returns A, which starts at zero. W and B stay."""
    update = [[0.0] * RANK for _ in range(ITEMS)]
    user_moments = [AdamByHand() for _ in range(SIZE)]
    row_moments = {(i, k): AdamByHand() for i in range(ITEMS) for k in range(RANK)}
    for _ in range(EPOCHS):
        seen = _merged(table, update, basis)
        errors = uneven_errors(client, [dot(user, seen[i]) for i in range(ITEMS)])
        for_user = [sum(errors[i] * seen[i][j] for i in range(ITEMS)) for j in range(SIZE)]
        for_rows = [[errors[i] * dot(basis[k], user) for k in range(RANK)] for i in range(ITEMS)]
        user[:] = [user_moments[j].move(user[j], for_user[j], RATE) for j in range(SIZE)]
        for i in range(ITEMS):
            update[i] = [row_moments[i, k].move(update[i][k], for_rows[i][k], RATE) for k in range(RANK)]
    return update


def _merged(table: Matrix, update: Matrix, basis: Matrix) -> Matrix:
    """W + A B."""
    return [
        [table[i][j] + sum(update[i][k] * basis[k][j] for k in range(RANK)) for j in range(SIZE)] for i in range(ITEMS)
    ]


def _mean_by_row(updates: list[Matrix]) -> Matrix:
    """Every row over the clients that touched it, each counting once."""
    touched = [[u for u in (0, 1) if UNEVEN_COUNTS[u][i]] for i in range(ITEMS)]
    return [[sum(updates[u][i][k] for u in touched[i]) / len(touched[i]) for k in range(RANK)] for i in range(ITEMS)]


@pytest.mark.parametrize("engine", ["loop", "vector"])
def test_two_rounds(engine: str) -> None:
    method = CoLR(embedding_size=SIZE, rank=RANK, negatives=1, local_epochs=EPOCHS, learning_rate=RATE)
    one = uneven_federation(method, engine)
    table, users = one.server.shared["items"].tolist(), one.clients.own["user"].tolist()
    bases = []
    for number in (1, 2):
        bases.append(one.server.shared["basis"].tolist())
        one.round(number)
        updates = [_train(client, users[client], table, bases[-1]) for client in (0, 1)]
        table = _merged(table, _mean_by_row(updates), bases[-1])
        assert one.server.shared["items"].tolist() == pytest.approx(np.array(table), abs=1e-9)
        assert one.clients.own["user"].tolist() == pytest.approx(np.array(users), abs=1e-9)
        assert not one.server.shared["update"].any()
    assert bases[0] != bases[1] != one.server.shared["basis"].tolist()


def test_the_basis_is_orthogonal_and_follows_from_seed_and_round() -> None:
    first, again, other = (federation(CoLR(embedding_size=8), small_world(), seed=seed) for seed in (0, 0, 1))
    drawn = []
    for one in (first, again, other):
        one.round(1)
        drawn.append(one.server.shared["basis"])
    assert torch.allclose(drawn[0] @ drawn[0].T, 2 * torch.eye(4, dtype=torch.float64), atol=1e-5)
    assert torch.equal(drawn[0], drawn[1])
    assert not torch.allclose(drawn[0], drawn[2])


def test_an_update_through_the_basis_keeps_its_length_on_average() -> None:
    """B^T B is the identity on average: merging neither shrinks nor stretches what clients learn."""
    basis = Orthonormal(math.sqrt(16 / 4))
    squares = torch.stack([(b := basis.draw((4, 16), generator(0, "basis", k))).T @ b for k in range(2000)])
    assert torch.allclose(squares.mean(0), torch.eye(16), atol=0.15)


def test_only_the_update_is_uploaded() -> None:
    one = federation(CoLR(embedding_size=16), small_world(), dtype=torch.float32)
    report = one.round(1)
    rows = touched_rows(one, 1)
    up = [ENVELOPE + heading("update", 2) + 4 + count * (4 + 4 * 4) for count in rows]
    assert report.bytes_up == round(sum(up) / len(up))
    # A starts as zeros, all of which are left out.
    down = heading("items", 2) + 60 * 16 * 4 + heading("update", 2) + 4 + heading("basis", 2) + 4 * 16 * 4
    assert report.bytes_down == ENVELOPE + down
    assert report.bytes_up < report.bytes_down / 3


def test_noise_is_added_to_the_update_alone() -> None:
    """In one round noise on A reaches W through B; were W itself uploaded, its rows would get noise of full rank."""
    world = small_world()
    one = federation(CoLR(embedding_size=16), world, options=FederationOptions(privacy="laplace:0.5"))
    before, basis = one.server.shared["items"].clone(), one.server.shared["basis"].clone()
    report = one.round(1)
    change = one.server.shared["items"] - before
    along = change @ basis.T @ basis / 4  # the projection on B's rows, whose squared length is 4
    assert change.abs().max() > 0.1
    assert torch.allclose(change, along, atol=1e-5)
    # The whole update, and, since rows are averaged over those that touched them, which they are: each with a 1.
    rows = touched_rows(one, 1)
    up = [ENVELOPE + heading("update", 2) + 60 * 4 * 8 + heading("@touched", 2) + 4 + count * 4 for count in rows]
    assert report.bytes_up == round(sum(up) / len(up))


def test_more_directions_than_there_are_are_refused() -> None:
    with pytest.raises(SettingError, match=r"rank=5.*embedding_size=4.*expected at most 4"):
        CoLR(embedding_size=4, rank=5)


def test_predicting_with_what_was_trained_would_miss_the_merge() -> None:
    with pytest.raises(SettingError, match=r"dual-personalisation .* colr's server rewrites"):
        DualPersonalisation(inner=CoLR())
