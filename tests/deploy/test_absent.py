"""A place that stays away for long, comes back with an old folder, or has its clock wrong, like its server."""

from __future__ import annotations

import shutil
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import torch

from ownview.base.errors import MessageError
from ownview.deploy.coordination.participants import read_log
from ownview.deploy.coordinator import Coordinator
from ownview.deploy.https.server import HttpsTransport
from ownview.deploy.identities import certificates as certificates_module
from ownview.deploy.place import Place
from ownview.deploy.places import home as homes_of_places
from ownview.deploy.places.home import Home
from ownview.deploy.settings import CoordinatorSettings
from ownview.deploy.transport import Answering
from tests.deploy.in_process import InProcess
from tests.deploy.lines import Running, enrolled, wait_for
from tests.deploy.world import CASES, NAMES, agreement, assert_equal, replayed, write_homes

HASTY = CoordinatorSettings(resend=0.05, greeting=0.2, deadline=0.1, quorum=0.5)


@pytest.mark.parametrize("case", CASES)
def test_a_place_that_was_away_for_many_rounds_goes_on_where_it_was(case: str, tmp_path: Path) -> None:
    agreed, homes = agreement(case), write_homes(tmp_path, users=2)
    places: dict[str, Answering] = {name: Place(home) for name, home in homes.items()}
    coordinator = Coordinator(agreed, InProcess(places), tmp_path / "server", HASTY)
    coordinator.run(2)
    del places["west"]
    coordinator.run(12)
    places["west"] = Place(homes["west"])  # another process, with its folder as it was
    coordinator.run(14)
    log = read_log(tmp_path / "server" / "participants.jsonl")
    assert [one.round for one in log if "west" in one.counted] == [1, 2, 13, 14]
    here = {name: place for name, place in places.items() if isinstance(place, Place)}
    assert_equal(agreed, coordinator, here, replayed(agreed, homes, tmp_path / "server"))


def test_a_folder_from_a_backup_counts_from_its_own_state_and_both_ends_say_so(tmp_path: Path) -> None:
    agreed, homes = agreement(), write_homes(tmp_path, users=2)
    places: dict[str, Answering] = {name: Place(home) for name, home in homes.items()}
    coordinator = Coordinator(agreed, InProcess(places), tmp_path / "server", HASTY)
    coordinator.run(2)
    shutil.copytree(homes["west"], tmp_path / "backup")
    coordinator.run(6)
    shutil.rmtree(homes["west"])
    shutil.copytree(tmp_path / "backup", homes["west"])
    said: list[str] = []
    places["west"] = Place(homes["west"], said.append)
    one = coordinator.round(7)
    note = "the state after round 6 is not there; going on from round 2"
    assert one.notes == {"west": [note]}
    assert any(note in line for line in said)
    assert sorted(one.counted) == sorted(NAMES)
    assert coordinator.round(8).notes == {}


def test_a_folder_from_before_the_place_joined_keeps_its_identities_out_of_others_hands(tmp_path: Path) -> None:
    """The server gave the identities to the key: the place receives the same ones again."""
    agreed, homes = agreement(), write_homes(tmp_path, users=2)
    places: dict[str, Answering] = {name: Place(home) for name, home in homes.items()}
    coordinator = Coordinator(agreed, InProcess(places), tmp_path / "server", HASTY)
    coordinator.run(2)
    known = dict(coordinator.register.places)
    shutil.rmtree(homes["west"] / "state")
    places["west"] = Place(homes["west"])
    one = coordinator.round(3)
    while "west" not in one.counted:  # it lacks the terms, receives them, and counts in one of the next rounds
        one = coordinator.round(one.round + 1)
        assert one.round < 6
    assert coordinator.register.places == known
    assert Home(homes["west"]).members().identities == tuple(known["west"])


class Years(datetime):
    """A clock that is ten years ahead."""

    @classmethod
    def now(cls, tz: object = None) -> datetime:  # type: ignore[override]
        return datetime.now(UTC) + timedelta(days=3650)


def test_a_places_clock_changes_what_its_own_account_says_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    agreed, found = agreement(), []
    for name in ("right", "wrong"):
        homes = write_homes(tmp_path / name, users=2)
        places = {one: Place(home) for one, home in homes.items()}
        if name == "wrong":
            monkeypatch.setattr(homes_of_places, "datetime", Years)
        coordinator = Coordinator(agreed, InProcess(places), tmp_path / name / "server", HASTY)
        coordinator.run(3)
        found.append(coordinator.server.pack())
        assert all(len(one.clients) == 6 for one in read_log(tmp_path / name / "server" / "participants.jsonl"))
    assert all(torch.equal(value, found[1][name]) for name, value in found[0].items())
    assert Home(tmp_path / "wrong" / "east").sent()[-1]["at"] > f"{datetime.now(UTC).year + 9}"


def test_a_place_with_a_clock_before_its_servers_certificate_says_what_its_clock_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as during:
        during.setattr(certificates_module, "_CLOCKS_DIFFER", timedelta(days=-2))  # valid in two days
        certificates, keys = enrolled(tmp_path / "certificates", NAMES)
    transport = HttpsTransport(("127.0.0.1", 0), certificates, keys)
    homes = write_homes(tmp_path, ("east",), users=2)
    running = Running(Place(homes["east"]), transport.address, certificates, "east")
    wait_for(lambda: not running.thread.is_alive())
    transport.close()
    assert isinstance(running.error, MessageError)
    assert f"by this machine's clock, {datetime.now(UTC).year}" in str(running.error)
    assert "expected a right clock, or a newer certificate" in str(running.error)


def test_a_server_whose_clock_went_back_still_takes_its_places_along(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before, places that had heard of a later going back refused everything as old messages, for as long as the
    clock was behind."""
    agreed, homes = agreement(), write_homes(tmp_path, users=2)
    places: dict[str, Answering] = {name: Place(home) for name, home in homes.items()}
    transport, folder = InProcess(places), tmp_path / "server"
    coordinator = Coordinator(agreed, transport, folder, HASTY)
    coordinator.run(3)
    for ahead in (10**18, 0):  # a damaged checkpoint twice, the second time with a clock that is right again
        _damage_newest(coordinator)
        monkeypatch.setattr(time, "time_ns", lambda ahead=ahead, real=time.time_ns: real() + ahead)
        coordinator = Coordinator(agreed, transport, folder, HASTY)
        monkeypatch.undo()
        done = coordinator.done
        coordinator.run(done + 3)
        assert coordinator.done == done + 3
    here = {name: place for name, place in places.items() if isinstance(place, Place)}
    assert_equal(agreed, coordinator, here, replayed(agreed, homes, folder))


def _damage_newest(coordinator: Coordinator) -> None:
    newest = coordinator.generations.newest
    slot = next(slot for slot, one in coordinator.generations.slots.items() if one is newest)
    file = coordinator.folder / f"{slot}.generation"
    file.write_bytes(file.read_bytes()[:-20])
