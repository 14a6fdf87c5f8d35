"""How many users a place has is its own word, and gets it no more identities than one place may have.

Before, `users: 1000000000` in a HELLO took every identity that was left, for good: no later place found room.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from ownview.deploy.coordinator import Coordinator
from ownview.deploy.envelopes.envelope import Envelope, Kind
from ownview.deploy.place import Place
from ownview.deploy.settings import CoordinatorSettings
from ownview.deploy.transport import Answering
from tests.deploy.in_process import InProcess
from tests.deploy.world import agreement, write_homes, write_ratings
from tests.security.hostile import Hostile, noted


def _coordinator(
    places: dict[str, Answering], folder: Path, said: list[str], quota: int = 4, room: int = 8
) -> Coordinator:
    conduct = CoordinatorSettings(resend=0.05, greeting=0.05, deadline=0.05, users_per_place=quota)
    return Coordinator(agreement(room=room), InProcess(places), folder, conduct, said.append)


@pytest.mark.parametrize("users", [10**9, 5])
def test_a_place_that_says_too_many_gets_no_identity(users: int, tmp_path: Path) -> None:
    homes, said = write_homes(tmp_path, ("aaa", "north", "west"), users=4), list[str]()
    greedy = Hostile(homes["aaa"], Kind.HELLO, lambda one, of: noted(one, users=users))
    places: dict[str, Answering] = {"aaa": greedy, "north": Place(homes["north"]), "west": Place(homes["west"])}
    coordinator = _coordinator(places, tmp_path / "server", said)
    one = coordinator.round(1)
    assert {place: len(mine) for place, mine in one.counted.items()} == {"north": 4, "west": 4}
    assert coordinator.register.places["aaa"] == []
    assert said == [f"place aaa: has {users} users, and one place may bring 4 (users_per_place)"]


def test_without_a_quota_a_billion_users_take_nothing_either(tmp_path: Path) -> None:
    homes, said = write_homes(tmp_path, ("aaa", "north"), users=2), list[str]()
    greedy = Hostile(homes["aaa"], Kind.HELLO, lambda one, of: noted(one, users=10**9))
    places: dict[str, Answering] = {"aaa": greedy, "north": Place(homes["north"])}
    assert list(_coordinator(places, tmp_path / "server", said, quota=0).round(1).counted) == ["north"]


def test_an_honest_place_with_too_many_is_told_at_both_ends_and_keeps_what_it_had(tmp_path: Path) -> None:
    homes, said, heard = write_homes(tmp_path, ("north",), users=3), list[str](), list[str]()
    place = Place(homes["north"], heard.append)
    coordinator = _coordinator({"north": place}, tmp_path / "server", said)
    coordinator.round(1)
    write_ratings(homes["north"], "north", 6)
    for number in (2, 3, 4):
        assert coordinator.round(number).clients == [0, 1, 2]
    assert said == ["place north: has 6 users, and one place may bring 4 (users_per_place)"]
    declined = [line for line in heard if "declines" in line]
    assert declined == [
        "the server declines users of this place: has 6 users, and one place may bring 4 (users_per_place)"
    ]


def test_a_place_cannot_be_made_to_say_more_than_a_line(tmp_path: Path) -> None:
    home, heard = write_homes(tmp_path, ("north",), users=2)["north"], list[str]()
    place = Place(home, heard.append)
    long = Envelope(Kind.DECLINED, note={"why": "x" * 501}).pack()
    assert Envelope.unpack(place.answer(long)).kind is Kind.REFUSED
    steering = Envelope(Kind.DECLINED, note={"why": "\x1b[2J\n\n" + "y" * 480}).pack()
    assert Envelope.unpack(place.answer(steering)).kind is Kind.DECLINED
    assert all("\n" not in line and "\x1b" not in line and len(line) <= 500 for line in heard)
