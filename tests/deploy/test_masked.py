"""Masked sums between a coordinator and places: what a simulation gives, who drops out, and who is never unmasked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from ownview.base.errors import SettingError
from ownview.deploy.agreement import Agreement
from ownview.deploy.coordinator import Conduct, Coordinator
from ownview.deploy.envelope import Envelope, Kind
from ownview.deploy.place import Place
from ownview.deploy.transport import Answering, InProcess
from ownview.federation.options import FederationOptions
from ownview.federation.wire import Message, Words
from tests.deploy.world import QUICK, agreement, assert_equal, replayed, write_homes

USERS = 4
"""Of each of three places: masks take time, and all of them are each other's neighbours."""


def _agreed(case: str, privacy: str) -> Agreement:
    return replace(agreement(case, room=3 * USERS), federation=FederationOptions(privacy=privacy))


class Listening:
    """A place; everything it answers is noted, and some kinds of answers are lost."""

    def __init__(self, place: Answering, lost: Callable[[Envelope], bool] = lambda asked: False) -> None:
        self.place, self.lost = place, lost
        self.answers: list[Envelope] = []

    def answer(self, message: bytes) -> bytes:
        answer = self.place.answer(message)
        self.answers.append(Envelope.unpack(answer))
        if self.lost(Envelope.unpack(message)):
            raise ConnectionError("nobody hears it")
        return answer


@pytest.mark.parametrize("case", ["fedmf", "fedease"])
def test_masked_rounds_of_places_equal_a_simulation(case: str, tmp_path: Path) -> None:
    """To a step of fixed point: places round by secrets of their own, which no simulation knows."""
    agreed, homes = _agreed(case, "masked:clip=20"), write_homes(tmp_path, users=USERS)
    places = {name: Place(home) for name, home in homes.items()}
    heard: dict[str, Answering] = {name: Listening(place) for name, place in places.items()}
    coordinator = Coordinator(agreed, InProcess(heard), tmp_path / "server", QUICK)
    coordinator.run(2)
    simulation = replayed(agreed, homes, tmp_path / "server")
    assert_equal(agreed, coordinator, places, simulation, within=1e-4)
    for one in heard.values():
        assert isinstance(one, Listening)
        work = [answer for answer in one.answers if answer.kind is Kind.WORK]
        assert len(work) == 2
        for part in (part for answer in work for part in answer.parts):
            (table,) = Message.unpack(part).tables.values()
            assert isinstance(table, Words)
            assert float((table.values == 0).double().mean()) < 0.01, "zeros are masked as well"


def test_a_place_that_is_lost_on_the_way_leaves_the_sum_of_the_others(tmp_path: Path) -> None:
    agreed, homes = _agreed("fedmf", "masked:clip=20,threshold=7"), write_homes(tmp_path, users=USERS)
    places = {name: Place(home) for name, home in homes.items()}
    heard: dict[str, Answering] = dict(places)
    hasty = Conduct(resend=0.05, greeting=0.2, deadline=0.2, quorum=0.5)
    coordinator = Coordinator(agreed, InProcess(heard), tmp_path / "server", hasty)
    kinds = (Kind.SHARES, Kind.WORK, Kind.SHOW)
    for number, kind in enumerate(kinds, start=1):
        heard["east"] = Listening(places["east"], lambda asked, kind=kind: asked.kind is kind)  # type: ignore[misc]
        one = coordinator.round(number)
        assert ("east" in one.counted) == (kind is Kind.SHOW), "what has arrived counts, whoever is gone afterwards"
    heard["east"] = places["east"]
    coordinator.share()
    simulation = replayed(agreed, homes, tmp_path / "server")
    expected = simulation.server.pack()
    for name, value in coordinator.server.pack().items():
        if value.is_floating_point():
            assert torch.allclose(value, expected[name], atol=1e-4), name


def test_below_the_threshold_nothing_is_released_and_the_round_begins_anew(tmp_path: Path) -> None:
    agreed, homes = _agreed("fedmf", "masked:clip=20"), write_homes(tmp_path, users=USERS)
    places = {name: Place(home) for name, home in homes.items()}
    heard: dict[str, Answering] = dict(places)
    said: list[str] = []

    def say(line: str) -> None:
        said.append(line)
        if "begins anew" in line:
            heard["east"] = places["east"]

    hasty = Conduct(resend=0.05, greeting=0.2, deadline=0.2, quorum=0.5)
    coordinator = Coordinator(agreed, InProcess(heard), tmp_path / "server", hasty, say)
    heard["east"] = Listening(places["east"], lambda asked: asked.kind is Kind.WORK)
    one = coordinator.round(1)
    assert any("8 clients sent masked numbers, and 10 are needed; nothing is released; begins anew" in x for x in said)
    assert len(one.clients) == 12


def test_a_place_works_for_nobody_who_leaves_masks_out(tmp_path: Path) -> None:
    agreed, homes = _agreed("fedmf", "masked:clip=20"), write_homes(tmp_path, users=USERS)
    places = {name: Place(home) for name, home in homes.items()}
    coordinator = Coordinator(agreed, InProcess(dict(places)), tmp_path / "server", QUICK)
    coordinator.round(1)
    mine = coordinator.register.places["east"]
    download = coordinator._download(2)
    bare = coordinator._envelope(Kind.WORK, 2, "east", {"clients": mine}, download)
    for parts in ([download], [download, *[b""] * len(mine)]):
        answer = Envelope.unpack(places["east"].answer(replace(bare, parts=parts).pack()))
        assert answer.kind is Kind.REFUSED
        assert not answer.parts
    with pytest.raises(SettingError, match="only a simulation can leave masks out"):
        _agreed("fedmf", "masked:clip=1,masks=skipped").terms()


def test_a_budget_with_shared_noise_is_carried_out_between_places(tmp_path: Path) -> None:
    agreed, homes = _agreed("fedmf", "distributed:epsilon=1e6,clip=20,rounds=1"), write_homes(tmp_path, users=USERS)
    places = {name: Place(home) for name, home in homes.items()}
    coordinator = Coordinator(agreed, InProcess(dict(places)), tmp_path / "server", QUICK)
    coordinator.run(1)
    simulation = replayed(agreed, homes, tmp_path / "server")
    plan = coordinator.terms.world.protection
    assert plan is not None
    noise = 20 * plan.in_sum(1) / plan.clients
    apart = coordinator.server.shared["items"] - simulation.server.shared["items"]
    assert 0 < float(apart.abs().max()) < 12 * noise, "each has drawn noise of its own"
