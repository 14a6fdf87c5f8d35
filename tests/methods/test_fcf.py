"""FCF: two rounds in two dimensions, the user's equations by Cramer's rule, the server's Adam number by number."""

from __future__ import annotations

import numpy as np
import pytest

from ownview import FCF
from tests.methods.golden import (
    ENVELOPE,
    ITEMS,
    POSITIVES,
    AdamByHand,
    Matrix,
    Vector,
    dot,
    federation,
    heading,
    scores_of_all,
)

CONFIDENCE, RIDGE, RATE = 3.0, 0.5, 0.05


def _confidence(client: int, item: int) -> float:
    return 1 + CONFIDENCE * (item in POSITIVES[client])


def _user(client: int, table: Matrix) -> Vector:
    left = [
        [
            sum(_confidence(client, i) * table[i][j] * table[i][k] for i in range(ITEMS)) + RIDGE * (j == k)
            for k in range(2)
        ]
        for j in range(2)
    ]
    right = [sum(_confidence(client, i) * table[i][j] for i in POSITIVES[client]) for j in range(2)]
    determinant = left[0][0] * left[1][1] - left[0][1] * left[1][0]
    return [
        (right[0] * left[1][1] - left[0][1] * right[1]) / determinant,
        (left[0][0] * right[1] - right[0] * left[1][0]) / determinant,
    ]


@pytest.mark.parametrize("engine", ["loop", "vector"])
def test_fcf(engine: str) -> None:
    method = FCF(
        embedding_size=2, confidence=CONFIDENCE, regularization=RIDGE, learning_rate=RATE, first_decay=0.9,
        second_decay=0.999,
    )  # fmt: skip
    one = federation(method, engine)
    table: Matrix = one.server.shared["items"].tolist()
    moments = {(i, j): AdamByHand() for i in range(ITEMS) for j in range(2)}
    for number in (1, 2):
        report = one.round(number)
        users = [_user(client, table) for client in range(2)]
        errors = [
            [_confidence(c, i) * ((i in POSITIVES[c]) - dot(users[c], table[i])) for i in range(ITEMS)]
            for c in range(2)
        ]
        gradient = [
            [-2 * sum(errors[c][i] * users[c][j] for c in range(2)) + 2 * RIDGE * table[i][j] for j in range(2)]
            for i in range(ITEMS)
        ]
        table = [[moments[i, j].move(table[i][j], gradient[i][j], RATE) for j in range(2)] for i in range(ITEMS)]
        assert one.server.shared["items"].numpy() == pytest.approx(np.array(table), abs=1e-9)
        # Every item has a gradient, so the dense form is the shortest.
        assert report.bytes_up == ENVELOPE + heading("gradient", 2) + ITEMS * 2 * 8
        assert report.bytes_down == ENVELOPE + heading("items", 2) + ITEMS * 2 * 8
        assert report.bytes_dense == 12 + ITEMS * 2 * 8
    users = [_user(client, table) for client in range(2)]
    expected = [[dot(users[c], table[i]) for i in range(ITEMS)] for c in range(2)]
    assert np.array(scores_of_all(one)) == pytest.approx(np.array(expected), abs=1e-9)
