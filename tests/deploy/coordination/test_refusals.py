"""A coordinator ends where the places that may take part cannot bring enough users, and waits where they can."""

from __future__ import annotations

import subprocess
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from ownview.deploy.coordination.refusals import TIMES, NoQuorumError, Refusals
from ownview.deploy.coordination.register import Register
from ownview.deploy.coordinator import Coordinator
from ownview.deploy.folders import Plan, create_server_folder
from ownview.deploy.identities.keys import KnownKeys
from ownview.deploy.place import Place
from ownview.deploy.places.floor import Floor
from ownview.deploy.settings import CoordinatorSettings
from tests.deploy.in_process import InProcess
from tests.deploy.lines import PATIENCE, free_port, serving, started, write_place
from tests.deploy.world import QUICK, agreement, write_homes

STRICT = "local:epsilon=1"
PAIR = ("east", "west")


def test_a_server_s_process_ends_where_every_place_refuses(tmp_path: Path) -> None:
    """Real processes: a server without privacy, and two places with a floor. Exit code 3, one line with the reasons."""
    plan = Plan(port=free_port(), rounds=2)
    conduct = CoordinatorSettings(resend=0.2, greeting=0.3)
    server = create_server_folder(tmp_path / "server", agreement(room=4), plan, conduct)
    for name in PAIR:
        server.keys.enrol(name, write_place(server.certificates, name))
    with ExitStack() as processes:
        process = processes.enter_context(serving(server))
        for name, home in write_homes(tmp_path, PAIR, users=2).items():
            place = started(home, plan.address, server.certificates, name, ("--floor", STRICT))
            processes.callback(_ended, place)
        _, said = process.communicate(timeout=PATIENCE)
    assert process.returncode == 3
    last = said.splitlines()[-1]
    assert last.startswith("ownview: round 1: needs 1 users, and the places that do not refuse can bring 0")
    for name in PAIR:
        assert f"{name}: privacy='none' is below this place's floor '{STRICT}'" in last
    assert "Traceback" not in said


def _ended(place: subprocess.Popen[str]) -> None:
    place.kill()
    place.communicate()


def test_one_place_that_accepts_is_enough(tmp_path: Path) -> None:
    homes = write_homes(tmp_path, PAIR, users=2)
    places = {"east": Place(homes["east"], floor=Floor(STRICT)), "west": Place(homes["west"])}
    coordinator = Coordinator(
        agreement(room=4), InProcess(places), tmp_path / "server", QUICK, expected=lambda: set(PAIR)
    )
    for number in range(1, TIMES + 3):
        assert list(coordinator.round(number).counted) == ["west"]


def test_places_that_refuse_to_work_end_the_server_too(tmp_path: Path) -> None:
    """They greet and have the terms; a floor that is raised between two rounds is met by the next message."""
    home = write_homes(tmp_path, ("north",), users=2)["north"]
    places = {"north": Place(home)}
    coordinator = Coordinator(
        agreement(room=4), InProcess(places), tmp_path / "server", QUICK, expected=lambda: {"north"}
    )
    coordinator.round(1)
    places["north"] = Place(home, floor=Floor(STRICT))
    with pytest.raises(NoQuorumError, match=r"round 2: needs 1 users.* can bring 0; .*north: .*nothing leaves"):
        coordinator.round(2)
    assert coordinator.done == 1


def test_a_place_that_may_still_join_is_waited_for_and_a_limit_ends_that(tmp_path: Path) -> None:
    home = write_homes(tmp_path, ("north",), users=2)["north"]
    hasty = replace(QUICK, waiting=1.5)
    coordinator = Coordinator(
        agreement(room=4),
        InProcess({"north": Place(home, floor=Floor(STRICT))}),
        tmp_path / "server",
        hasty,
        expected=lambda: {"north", "south"},
    )
    why = r"round 1: 0 users are there after waiting=1.5 seconds, expected 1; north refused: privacy='none' is below"
    with pytest.raises(NoQuorumError, match=why):
        coordinator.round(1)


def test_users_that_others_can_bring(tmp_path: Path) -> None:
    """Room for 10 users, 4 of a place: without two of three places at most 4 come, however many are connected."""
    register = Register(tmp_path / "register.json", room=10, quota=4)
    refusals = Refusals(lambda: {"a", "b", "c"})
    for place in ("a", "b"):
        for _ in range(TIMES):
            refusals.add(place, "no", greeting=True)
    refusals.require_hope(1, 4, register)
    with pytest.raises(NoQuorumError, match=r"needs 5 users.* can bring 4; .*a: no; b: no"):
        refusals.require_hope(1, 5, register)
    refusals.end("a", greeting=True)
    refusals.require_hope(1, 5, register)


def test_places_with_a_good_invitation_are_expected(tmp_path: Path) -> None:
    keys, now = KnownKeys(tmp_path / "keys.json"), datetime.now(UTC)
    keys.enrol("east", "1" * 64)
    keys.invite("west", "2" * 64, now + timedelta(days=1))
    keys.invite("late", "3" * 64, now - timedelta(days=1))
    assert keys.expected() == {"east", "west"}
