"""Straggler rules of this file alone: who is late does not count, wherever clients are."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from torch import Tensor

from ownview.base.randomness import bits, derive, unit
from ownview.deploy.coordinator import Coordinator
from ownview.deploy.place import Place
from ownview.messages.upload import Upload
from ownview.methods.fedease import FedEASE
from ownview.methods.fedmf import FedMF
from ownview.methods.fedrap import FedRAP
from ownview.round.conduct import LATE, Round
from ownview.round.scorers import scorer_of
from ownview.seam.method import Federated
from ownview.testing.worlds import federation, small_world
from tests.deploy.in_process import InProcess
from tests.deploy.world import QUICK, agreement, assert_equal, replayed, write_homes
from tests.round.alike import alone, assert_alike, counting

METHODS = [FedMF(embedding_size=2, local_epochs=1), FedRAP(embedding_size=2, local_epochs=1), FedEASE()]


def slow(clients: Tensor, number: int) -> Tensor:
    """[B] whether a client is too slow for a round; one in three is."""
    return unit(bits(derive(7, "slow", number), clients, torch.zeros_like(clients))) < 1 / 3


def on_time(uploads: Iterator[Upload], going: Round) -> Iterator[Upload]:
    """The rule: clients that are too slow are not waited for, whether they would have sent something or not."""
    late = going.cohort[slow(going.cohort, going.number)].tolist()
    for upload in uploads:
        yield upload.without(late)
    going.leave_out(late, LATE)


def first_half(uploads: Iterator[Upload], going: Round) -> Iterator[Upload]:
    """The rule: a round ends as soon as half of its clients have answered."""
    answered = 0
    for upload in uploads:
        answered += len(upload.clients)
        yield upload
        if 2 * answered >= len(going.cohort):
            return


@pytest.mark.parametrize("method", METHODS, ids=lambda one: one.name)
def test_who_is_slow_ends_as_if_it_had_not_taken_part(method: Federated, tmp_path: Path) -> None:
    split, clients = small_world(num_users=9), torch.arange(9)
    one, others = (federation(method, split, block_clients=4) for _ in range(2))
    one.rules = (on_time,)
    counting(others, lambda number: clients[~slow(clients, number)])
    for number in (1, 2):
        report = one.round(number)
        assert set(report.left_out.values()) == {LATE}
        assert report.clients == others.round(number).clients < 9
    scores = scorer_of(one).scores(clients, None)
    assert_alike(one, others, scores)
    server, found, reports = alone(method, split, (on_time,), tmp_path)
    assert [one.clients for one in reports] == [int((~slow(clients, number)).sum()) for number in (1, 2)]
    for name, value in others.server.shared.items():
        assert torch.allclose(server.shared[name], value, atol=1e-10), name
    assert torch.allclose(found, scores, atol=1e-9)


def test_devices_that_are_slow_end_as_if_they_had_not_taken_part(tmp_path: Path) -> None:
    names = tuple(f"home{k}" for k in range(6))
    agreed, homes = agreement("fedrap"), write_homes(tmp_path, names, users=1)
    places = {name: Place(home) for name, home in homes.items()}
    coordinator = Coordinator(agreed, InProcess(places), tmp_path / "server", QUICK, rules=(on_time,))
    for number in (1, 2, 3):
        one = coordinator.round(number)
        asked = torch.tensor(sorted(identity for mine in one.asked.values() for identity in mine))
        assert one.clients == asked[~slow(asked, number)].tolist()
    coordinator.share()
    there = {name: place for name, place in places.items() if name in coordinator.standing.counted}
    assert_equal(agreed, coordinator, there, replayed(agreed, homes, tmp_path / "server"))


def test_a_round_may_end_before_everybody_has_answered(tmp_path: Path) -> None:
    """Clients that nobody waits for are late, whether they have worked or not."""
    split = small_world(num_users=12)
    one, others = (federation(FedRAP(embedding_size=2, local_epochs=1), split, block_clients=4) for _ in range(2))
    one.rules = (first_half,)
    report = one.round(1)
    assert 6 <= report.clients < 12
    assert list(report.left_out.values()) == [LATE] * (12 - report.clients)
    counting(others, lambda number: torch.tensor([k for k in range(12) if k not in report.left_out]))
    others.round(1)
    assert_alike(one, others, scorer_of(one).scores(torch.arange(12), None))
