"""Places and a coordinator give what a simulation gives, also where places are killed and join."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ownview.deploy.coordination.participants import CountedRound
from ownview.deploy.coordinator import Coordinator
from ownview.deploy.envelopes.envelope import Envelope, Kind
from ownview.deploy.place import Place
from ownview.deploy.settings import CoordinatorSettings
from ownview.deploy.transport import Answering
from tests.deploy.in_process import InProcess
from tests.deploy.world import CASES, QUICK, agreement, assert_equal, replayed, write_homes, write_ratings


@pytest.mark.parametrize("case", CASES)
def test_deployed_equals_simulated(case: str, tmp_path: Path) -> None:
    agreed, homes = agreement(case, precision="float32"), write_homes(tmp_path)
    places = {name: Place(home) for name, home in homes.items()}
    coordinator = Coordinator(agreed, InProcess(places), tmp_path / "server", QUICK)
    coordinator.run(5)
    simulation = replayed(agreed, homes, tmp_path / "server")
    assert [len(simulation.log[number].clients) for number in range(1, 6)] == [30] * 5
    assert_equal(agreed, coordinator, places, simulation, within=1e-5)


@pytest.mark.parametrize("case", CASES)
def test_half_of_the_clients_kills_and_newcomers_equal_a_simulation_of_the_log(case: str, tmp_path: Path) -> None:
    agreed, homes = agreement(case, clients="0.5", room=40), write_homes(tmp_path)
    places: dict[str, Answering] = {name: Place(home) for name, home in homes.items()}
    server = tmp_path / "server"
    coordinator = Coordinator(agreed, InProcess(places), server, QUICK)
    coordinator.round(1)

    # A place that is killed when it has trained, before its answer is out, is started again.
    places["west"] = KilledOnce(places["west"], lambda: places.update(west=Place(homes["west"])))
    assert coordinator.round(2).resent > 0

    # The server is killed with all uploads in its hands; in the meantime users have joined.
    coordinator.log = KilledLog()  # type: ignore[assignment]
    with pytest.raises(Kill):
        coordinator.round(3)
    homes |= write_homes(tmp_path, ("south",), users=5)
    places["south"] = Place(homes["south"])
    write_ratings(homes["north"], "north", 13)
    hasty = CoordinatorSettings(resend=0.05, greeting=0.2, deadline=0.2, quorum=0.3)
    coordinator = Coordinator(agreed, InProcess(places), server, hasty)
    assert coordinator.done == 2
    coordinator.round(3)
    assert sum(map(len, coordinator.register.places.values())) == 38

    # A place that trains and is not counted ends as if it had not.
    awake = places["east"]
    places["east"] = Silent(awake)
    one = coordinator.round(4)
    assert "east" in one.asked
    assert "east" not in one.counted
    places["east"] = awake
    coordinator.run(5)
    assert coordinator.standing.counted["east"] == 5
    homes_now = {name: place for name, place in places.items() if isinstance(place, Place)}
    assert_equal(agreed, coordinator, homes_now, replayed(agreed, homes, server))


def test_what_clients_do_after_a_round_is_done_once_whoever_is_killed(tmp_path: Path) -> None:
    # Its noise is drawn from a secret of each place, which no simulation knows: none here.
    settings = {"embedding_size": 2, "noise": 0.0, "fit_steps": 3}
    agreed, homes = agreement(method="fedcia", settings=settings), write_homes(tmp_path, ("east", "west"), users=2)
    places: dict[str, Answering] = {name: Place(home) for name, home in homes.items()}
    coordinator = Coordinator(agreed, InProcess(places), tmp_path / "server", QUICK)
    coordinator.round(1)
    places["west"] = Deaf(places["west"])
    coordinator.round(2)
    assert list(coordinator.standing.owed) == ["west"], "it has settled, and the coordinator does not know"
    coordinator = Coordinator(agreed, InProcess(places), tmp_path / "server", QUICK)
    one = coordinator.round(3)
    assert list(one.counted) == ["east"], "who is owed a result gets it before anything else"
    places["west"] = Place(homes["west"])
    coordinator.run(4)
    assert not coordinator.standing.owed
    homes_now = {name: place for name, place in places.items() if isinstance(place, Place)}
    assert_equal(agreed, coordinator, homes_now, replayed(agreed, homes, tmp_path / "server"))


class Deaf:
    """A place whose word that a result has arrived is lost."""

    def __init__(self, place: Answering) -> None:
        self.place = place

    def answer(self, message: bytes) -> bytes:
        answer = self.place.answer(message)
        if Envelope.unpack(message).kind is Kind.RESULT:
            raise ConnectionError("the answer is lost")
        return answer


class Kill(BaseException):
    """What ends a process ends everything in it."""


class KilledOnce:
    """A place that does its work and is gone before it can say so; then it is back."""

    def __init__(self, place: Answering, back: Callable[[], None]) -> None:
        self.place, self.back = place, back

    def answer(self, message: bytes) -> bytes:
        self.place.answer(message)
        self.back()
        raise ConnectionError("killed")


class Silent:
    """A place whose answers are lost."""

    def __init__(self, place: Answering) -> None:
        self.place = place

    def answer(self, message: bytes) -> bytes:
        self.place.answer(message)
        raise ConnectionError("the answer is lost")


class KilledLog:
    """The last thing that a killed server did not do."""

    def add(self, one: CountedRound) -> None:
        raise Kill(f"round {one.round}")
