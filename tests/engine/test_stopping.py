"""Clients that leave their epochs early: who, when, and that nothing moves them afterwards."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from ownview import FedRAP
from ownview.engine.local import EarlyStop
from ownview.testing.worlds import federation, small_world
from tests.methods.golden import POSITIVES, error, sigmoid
from tests.methods.golden import federation as golden_federation

EPOCHS = 8
TOLERANCE = 0.05


def test_by_hand() -> None:
    """Samples 2 and 1; losses of the three epochs 2, 2.2, 9 and 3, 1, 7: means 1, 1.05, - and 3, 2, 11/3."""
    values, total = torch.zeros(2, 3), torch.zeros(2)
    stop = EarlyStop(0.1, [values], total, torch.tensor([2, 1]))
    goes_on = []
    for losses in ([2.0, 3.0], [2.2, 1.0], [9.0, 7.0], [5.0, 11 / 3]):

        def epoch(losses: list[float] = losses) -> None:
            total.add_(torch.tensor(losses))
            values.add_(1)

        stop.take(epoch)
        goes_on.append(stop.goes_on)
    # Client 0 stops after two epochs (0.05 of 1), client 1 after four (11/3 to 11/3).
    assert stop.epochs.tolist() == [2, 4]
    assert values.tolist() == [[2.0] * 3, [4.0] * 3]
    assert stop.mean_loss().tolist() == pytest.approx([1.05, 11 / 3])
    assert goes_on == [True, True, True, False]


def test_without_tolerance_everybody_goes_on() -> None:
    total = torch.zeros(())
    stop = EarlyStop(0.0, [], total, torch.tensor(1))
    for _ in range(3):
        stop.take(lambda: None)
        assert stop.goes_on
    assert int(stop.epochs) == 3


def _bias_by_hand(client: int, tolerance: float) -> tuple[float, float, int]:
    """One client whose scores are its bias alone (w and C are 0 and stay there): SGD until the loss settles."""
    b, total, means = 0.0, 0.0, []
    for epoch in range(1, 21):
        total += (2 * -math.log(sigmoid(b)) + 4 * -math.log(1 - sigmoid(b))) / 6
        means.append(total / epoch)
        b -= 0.5 * sum(error(client, item, b) for item in range(4))
        if epoch > 1 and abs(means[-1] - means[-2]) / means[-2] < tolerance:
            break
    return b, means[-1], len(means)


@pytest.mark.parametrize("engine", ["loop", "vector"])
def test_a_round_by_hand(engine: str) -> None:
    method = FedRAP(
        variant="c", negatives=2, local_epochs=20, network_rate=0.5, table_rate=1e-30, step_decay=1.0, sparse=0,
        stop_below=0.002,
    )  # fmt: skip
    one = golden_federation(method, engine)
    one.clients.own["weight"].zero_()
    one.clients.own["bias"].zero_()
    one.server.shared["common"].zero_()
    report = one.round(1)
    by_hand = [_bias_by_hand(client, 0.002) for client in POSITIVES]
    assert 2 < by_hand[0][2] < 20
    assert one.clients.own["bias"].tolist() == pytest.approx([b for b, _, _ in by_hand], abs=1e-9)
    assert report.loss == pytest.approx(sum(loss for _, loss, _ in by_hand) / 2, abs=1e-9)


def _weights(epochs: int, stop_below: float, engine: str) -> Tensor:
    """[n, d] every client's w after one round."""
    method = FedRAP(
        network_rate=0.3, table_rate=5.0, batch_size=32, embedding_size=4, local_epochs=epochs, stop_below=stop_below
    )
    one = federation(method, small_world(num_users=9), engine=engine)
    one.round(1)
    return one.clients.own["weight"]


def test_both_engines_stop_the_same_clients() -> None:
    loop, vector = (_weights(EPOCHS, TOLERANCE, engine) for engine in ("loop", "vector"))
    assert torch.allclose(loop, vector, atol=1e-12, rtol=0)


@pytest.mark.parametrize("engine", ["loop", "vector"])
def test_a_client_that_stopped_keeps_every_bit_of_that_epoch(engine: str) -> None:
    """Its values are those of a round with that many epochs, whatever the others of its block went on to do."""
    stopped = _weights(EPOCHS, TOLERANCE, engine)
    plain = torch.stack([_weights(epochs, 0.0, engine) for epochs in range(1, EPOCHS + 1)])
    same = (plain == stopped).all(-1)
    assert bool((same.sum(0) == 1).all())
    epochs = same.long().argmax(0) + 1
    assert len(set(epochs.tolist())) > 2, "the world must let clients stop at different epochs"
    assert int(epochs.min()) >= 2
