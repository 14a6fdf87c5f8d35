"""A place answers nothing under an agreement that is weaker than its own floor.

Before, a place took whatever privacy the first server it met had in its agreement, none included; and after leaving a
federation it joined a weaker one without a word.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from ownview.base.errors import SettingError
from ownview.deploy.agreement import Agreement
from ownview.deploy.coordinator import Coordinator
from ownview.deploy.envelopes.envelope import Envelope, Kind
from ownview.deploy.place import Place
from ownview.deploy.places.floor import Floor
from ownview.deploy.places.home import Home
from ownview.federation.options import FederationOptions
from tests.deploy.in_process import InProcess
from tests.deploy.world import QUICK, agreement, write_homes

LOCAL_4, LOCAL_8 = "local:epsilon=4,rounds=2", "local:epsilon=8,rounds=2"


def _agreed(privacy: str) -> Agreement:
    return agreement(room=4, options=FederationOptions(privacy=privacy))


def _terms(privacy: str) -> bytes:
    return Envelope(Kind.TERMS, note={"identities": [0, 1]}, parts=[_agreed(privacy).pack(), b""]).pack()


@pytest.mark.parametrize(
    ("floor", "offered", "why"),
    [
        ("none", "none", ""),
        ("none", "local:epsilon=8", ""),
        ("masked", "none", "expected masked or distributed"),
        ("masked", "masked:clip=5", ""),
        ("masked", "distributed:epsilon=8", ""),
        ("masked", "local:epsilon=1", "expected masked or distributed"),
        ("masked:clip=5", "masked:clip=1", ""),
        ("masked:clip=5,threshold=50", "masked:clip=1,threshold=60", ""),
        ("masked:clip=5,threshold=50", "masked:clip=1,threshold=30", "threshold is 30; expected threshold=50 or more"),
        ("masked:clip=5,threshold=50", "masked:clip=1", "threshold is not named; expected threshold=50 or more"),
        ("masked:clip=5,threshold=50", "distributed:epsilon=8,threshold=30", "threshold is 30"),
        ("distributed:epsilon=8,threshold=50", "distributed:epsilon=8,threshold=30", "threshold is 30"),
        ("distributed:epsilon=8,threshold=50", "local:epsilon=8", ""),
        ("local:epsilon=8", "central:epsilon=1", "expected local"),
        ("local:epsilon=8", "local:epsilon=8,rounds=20", ""),
        ("local:epsilon=8", "local:epsilon=8.1", "epsilon is 8.1; expected 8 at most"),
        ("local:epsilon=8", "local:epsilon=1,delta=0.001", "delta is 0.001; expected 1e-05 at most"),
        ("distributed:epsilon=8", "local:epsilon=8", ""),
        ("distributed:epsilon=8", "central:epsilon=8", "expected distributed or local"),
        ("central:epsilon=8", "distributed:epsilon=2", ""),
        ("central:epsilon=8", "masked:clip=5", "expected central or distributed or local"),
        ("central:epsilon=8", "none", "is below this place's floor"),
        ("laplace:0.1", "laplace:0.1", ""),
        ("laplace:0.1", "laplace:0.01", "expected laplace:0.1"),
    ],
)
def test_what_is_below_a_floor(floor: str, offered: str, why: str) -> None:
    found = Floor(floor).refusal(offered)
    assert why in found
    assert bool(why) == bool(found)


@pytest.mark.parametrize("floor", ["locl:epsilon=8", "local:epsilon=-1", "local", "secret"])
def test_a_floor_that_is_none_is_refused(floor: str) -> None:
    with pytest.raises(SettingError, match="expected"):
        Floor(floor)


def test_a_weaker_agreement_gets_no_answer_and_both_ends_say_why(tmp_path: Path) -> None:
    homes, said, heard = write_homes(tmp_path, ("east", "north"), users=2), list[str](), list[str]()
    places = {"east": Place(homes["east"], heard.append, Floor(LOCAL_8)), "north": Place(homes["north"])}
    coordinator = Coordinator(_agreed("none"), InProcess(places), tmp_path / "server", QUICK, said.append)
    assert list(coordinator.round(1).counted) == ["north"]
    why = f"privacy='none' is below this place's floor '{LOCAL_8}'; expected local; nothing leaves this place"
    assert f"place east: {why}" in said
    assert why in heard
    assert places["east"].agreement is None
    assert {one["kind"] for one in Home(homes["east"]).sent()} <= {"hello", "refused"}


def test_what_was_agreed_on_at_joining_is_never_weakened(tmp_path: Path) -> None:
    home = write_homes(tmp_path, ("north",), users=2)["north"]
    place = Place(home)
    assert Envelope.unpack(place.answer(_terms(LOCAL_4))).kind is Kind.TERMS
    assert Home(home).floor() == Floor(LOCAL_4)
    shutil.rmtree(home / "state")  # as it is told to, where it shall join another federation
    again = Place(home)
    refused = Envelope.unpack(again.answer(_terms(LOCAL_8)))
    assert refused.kind is Kind.REFUSED
    assert "epsilon is 8; expected 4 at most" in refused.note["why"]
    assert Envelope.unpack(again.answer(_terms("local:epsilon=2,rounds=2"))).kind is Kind.TERMS


def test_a_floor_that_is_raised_ends_answers_under_the_old_agreement(tmp_path: Path) -> None:
    home = write_homes(tmp_path, ("north",), users=2)["north"]
    place = Place(home)
    coordinator = Coordinator(_agreed(LOCAL_8), InProcess({"north": place}), tmp_path / "server", QUICK)
    coordinator.round(1)
    raised = Place(home, floor=Floor(LOCAL_4))
    for kind in (Kind.HELLO, Kind.DECLINED):
        note = {} if kind is Kind.HELLO else {"why": "x"}
        refused = Envelope.unpack(raised.answer(Envelope(kind, note=note).pack()))
        assert refused.kind is Kind.REFUSED
        assert "nothing leaves this place" in refused.note["why"]
    assert Home(home).floor() == Floor(LOCAL_4)
