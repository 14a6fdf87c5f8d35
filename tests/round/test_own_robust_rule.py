"""A robust rule of this file alone: uploads longer than three medians do not count, wherever clients are."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from ownview.base.errors import SettingError
from ownview.deploy.coordinator import Coordinator
from ownview.deploy.place import Place
from ownview.federation.options import FederationOptions
from ownview.messages.upload import Upload
from ownview.methods.fedmf import FedMF
from ownview.methods.fedrap import FedRAP
from ownview.round.conduct import Round
from ownview.round.scorers import scorer_of
from ownview.seam.method import Federated
from ownview.testing.worlds import federation, small_world
from tests.deploy.in_process import InProcess
from tests.deploy.world import QUICK, agreement, assert_equal, replayed, write_homes
from tests.round.alike import alone, assert_alike, counting

LIAR = 4


def lying(uploads: Iterator[Upload], going: Round) -> Iterator[Upload]:
    """One client sends a thousand times what it learnt."""
    for upload in uploads:
        yield upload.scaled(1 + 999.0 * (upload.clients == LIAR))


def within_three_medians(uploads: Iterator[Upload], going: Round) -> Iterator[Upload]:
    """The rule: it waits for all uploads, and leaves out those longer than three times the median."""
    held = list(uploads)
    longest = 3 * torch.cat([one.norms() for one in held]).median()
    for upload in held:
        yield going.keep(upload, upload.norms() <= longest, "is longer than three medians")


RULES = (lying, within_three_medians)
METHODS = [FedMF(embedding_size=2, local_epochs=1), FedRAP(embedding_size=2, local_epochs=1)]


@pytest.mark.parametrize("method", METHODS, ids=lambda one: one.name)
def test_the_liar_is_left_out_and_ends_as_if_it_had_not_taken_part(method: Federated, tmp_path: Path) -> None:
    split = small_world(num_users=9)
    one, honest = (federation(method, split, block_clients=4) for _ in range(2))
    one.rules = RULES
    counting(honest, lambda number: torch.tensor([k for k in range(9) if k != LIAR]))
    for number in (1, 2):
        report = one.round(number)
        assert report.left_out == {LIAR: "is longer than three medians"}
        assert report.clients == honest.round(number).clients == 8
    assert_alike(one, honest, scorer_of(one).scores(torch.arange(9), None))
    server, scores, reports = alone(method, split, RULES, tmp_path)
    assert [list(report.left_out) for report in reports] == [[LIAR]] * 2
    for name, value in honest.server.shared.items():
        assert torch.allclose(server.shared[name], value, atol=1e-10), name
    assert torch.allclose(scores, scorer_of(one).scores(torch.arange(9), None), atol=1e-9)


def test_devices_leave_out_the_whole_place_of_a_liar(tmp_path: Path) -> None:
    """All of a place's uploads count, or none: what came is added up again without it."""
    agreed, homes = agreement("fedrap"), write_homes(tmp_path, users=3)
    places = {name: Place(home) for name, home in homes.items()}
    said: list[str] = []
    coordinator = Coordinator(agreed, InProcess(places), tmp_path / "server", QUICK, said.append, RULES)
    for number in (1, 2):
        one = coordinator.round(number)
        place = next(name for name, mine in one.asked.items() if LIAR in mine)
        assert set(one.counted) == set(homes) - {place}
        assert one.refused == {place: "is longer than three medians"}
    coordinator.share()
    simulation = replayed(agreed, homes, tmp_path / "server")
    counted = {name: at for name, at in places.items() if name in coordinator.standing.counted}
    assert_equal(agreed, coordinator, counted, simulation)
    assert f"round 1: goes on without place {place}, which is longer than three medians" in said


def test_masks_hide_uploads_from_every_rule() -> None:
    one = federation(
        FedMF(embedding_size=2, local_epochs=1), small_world(), options=FederationOptions(privacy="masked:clip=1")
    )
    one.rules = RULES
    with pytest.raises(SettingError, match="masks hide single uploads from every rule"):
        one.round(1)
