"""FedIALS: two rounds in one dimension, where every equation is a fraction, and the same model computed centrally."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from ownview import FederationOptions, FedIALS
from ownview.round.scorers import scorer_of
from ownview.testing.worlds import federation as small_federation
from ownview.testing.worlds import small_world
from tests.methods.golden import ENVELOPE, ITEMS, POSITIVES, federation, heading, scores_of_all

Matrix = NDArray[np.float64]

OWNERS = {0: (0,), 1: (0, 1), 2: (1,), 3: ()}


def _user(client: int, v: list[float], a: float, l: float, nu: float) -> float:  # noqa: E741 - the formula's own letter
    mine = POSITIVES[client]
    left: float = sum(v[i] ** 2 for i in mine) + a * sum(x**2 for x in v) + l * (2 + a * ITEMS) ** nu
    return sum(v[i] for i in mine) / left


@pytest.mark.parametrize("nu", [1.0, 0.5])
@pytest.mark.parametrize("engine", ["loop", "vector"])
def test_fedials(engine: str, nu: float) -> None:
    a, l = 0.3, 0.2  # noqa: E741
    method = FedIALS(embedding_size=1, unobserved=a, regularization=l, exponent=nu, initial_scale=1.0)
    one = federation(method, engine)
    v = one.server.shared["items"][:, 0].tolist()
    for number in (1, 2):
        report = one.round(number)
        u = [_user(client, v, a, l, nu) for client in range(2)]
        common = a * (u[0] ** 2 + u[1] ** 2)
        v = [
            sum(u[c] for c in owners) / (sum(u[c] ** 2 for c in owners) + common + l * (len(owners) + a * 2) ** nu)
            for owners in OWNERS.values()
        ]
        assert one.server.shared["items"][:, 0].tolist() == pytest.approx(v, abs=1e-9)
        # Four items of one dimension are shorter in the dense form; the two that a client has, by their positions.
        up = heading("equations", 2) + ITEMS * 8 + heading("targets", 2) + ITEMS * 8
        up += heading("users", 1) + 4 + 2 * (4 + 8) + heading("common", 2) + 8
        assert report.bytes_up == ENVELOPE + up
    u = [_user(client, v, a, l, nu) for client in range(2)]
    assert np.array(scores_of_all(one)) == pytest.approx(np.outer(u, v), abs=1e-9)


def _central(seen: Matrix, items: Matrix, rounds: int, a: float, l: float, nu: float) -> tuple[Matrix, Matrix]:  # noqa: E741
    """Alternating least squares on the whole matrix; the users' half step last."""
    users = np.empty((len(seen), items.shape[1]))
    for number in range(rounds + 1):
        users = _half(seen, items, a, l, nu)
        if number < rounds:
            items = _half(seen.T, users, a, l, nu)
    return users, items


def _half(seen: Matrix, fixed: Matrix, a: float, l: float, nu: float) -> Matrix:  # noqa: E741
    everything = a * fixed.T @ fixed
    solved = []
    for row in seen:
        mine = fixed[row > 0]
        ridge = l * (len(mine) + a * len(fixed)) ** nu * np.eye(fixed.shape[1])
        solved.append(np.linalg.solve(mine.T @ mine + everything + ridge, mine.sum(0)))
    return np.array(solved)


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-10), (torch.float32, 1e-4)])
def test_it_is_the_central_model(dtype: torch.dtype, tolerance: float) -> None:
    split = small_world()
    seen = np.zeros((split.num_users, split.num_items))
    for user in range(split.num_users):
        seen[user, split.train.of(user).numpy()] = 1
    one = small_federation(FedIALS(embedding_size=6, unobserved=0.1, regularization=0.02), split, dtype=dtype)
    start = one.server.shared["items"].double().numpy()
    for number in range(1, 6):
        one.round(number)
    users, items = _central(seen, start, 5, 0.1, 0.02, 1.0)
    assert one.server.shared["items"].double().numpy() == pytest.approx(items, abs=tolerance)
    assert scorer_of(one).scores(torch.arange(split.num_users), None).double().numpy() == pytest.approx(
        users @ items.T, abs=tolerance
    )


def test_an_item_that_nobody_of_a_round_has_stays_as_it_was() -> None:
    split = small_world()
    one = small_federation(FedIALS(embedding_size=3), split, options=FederationOptions(clients="2"))
    one.round(1)
    first, known = one.server.shared["items"].clone(), one.server.held["known"].clone()
    one.round(2)
    absent = one.server.held["known"] == known
    assert int((absent & (known > 0)).sum()) > 0
    assert torch.equal(one.server.shared["items"][absent & (known > 0)], first[absent & (known > 0)])
    assert not one.server.shared["items"][one.server.held["known"] == 0].any()
