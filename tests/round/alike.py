"""Federations that must have come to the same."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import torch
from torch import Tensor

from ownview.data.splitting.splits import Split
from ownview.federation.options import FederationOptions
from ownview.federation.server import AggregationServer
from ownview.round.alone import ProcessFederation
from ownview.round.conduct import RoundReport, UploadRule
from ownview.round.federation import Federation
from ownview.round.scorers import scorer_of
from ownview.seam.method import Federated
from ownview.testing.worlds import federation


def counting(one: Federation, cohort: Callable[[int], Tensor]) -> None:
    """Have some clients alone take part in each round."""
    one.fleet.choose = lambda server, number: cohort(number)  # type: ignore[method-assign]


def assert_alike(one: Federation, other: Federation, scores: Tensor) -> None:
    """Server, clients' own values and scores are those of another federation, to rounding."""
    for name, value in other.server.shared.items():
        assert torch.allclose(one.server.shared[name], value, atol=1e-10), name
    for name, value in other.clients.own.items():
        assert torch.allclose(one.clients.own[name], value, atol=1e-10), name
    clients = torch.arange(other.world.num_clients)
    assert torch.allclose(scores, scorer_of(other).scores(clients, None), atol=1e-9)


def alone(
    method: Federated, split: Split, rules: Sequence[UploadRule], folder: Path
) -> tuple[AggregationServer, Tensor, list[RoundReport]]:
    """Two rounds with every client by itself: the server, all scores, and the reports."""
    one = federation(method, split)
    agreed = method, one.world, FederationOptions(), one.seed, one.machine
    with ProcessFederation(agreed, split, split.training_items(), folder, together=True, rules=rules) as apart:
        reports = [apart.round(number) for number in (1, 2)]
        return apart.server, apart.look(2)[0], reports
