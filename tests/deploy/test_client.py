"""A client's own life: it recommends offline and at any time, tells what it has sent, and keeps to its budget."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from ownview.base.errors import DataError, UnknownNameError
from ownview.deploy.coordination.participants import read_log
from ownview.deploy.coordinator import Coordinator
from ownview.deploy.envelopes.envelope import Envelope, Kind
from ownview.deploy.place import Place
from ownview.deploy.places.advice import advise
from ownview.deploy.places.sent_messages import sent_messages
from ownview.federation.options import FederationOptions
from ownview.round.scorers import scorer_of
from tests.deploy.in_process import InProcess
from tests.deploy.world import QUICK, agreement, replayed, write_homes, write_ratings
from tests.outcome import Outcome

TITLES = tuple(f"The story of {k}" for k in range(24))


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Of two users that are new."""
    return write_homes(tmp_path, ("north",), users=2)["north"]


def started(home: Path, case: str = "fedmf", **more: Any) -> tuple[Place, Coordinator]:
    place = Place(home)
    agreed = agreement(case, titles=TITLES, **more)
    return place, Coordinator(agreed, InProcess({"north": place}), home.parent / "server", QUICK)


def test_recommendations_are_those_of_the_simulation(home: Path) -> None:
    coordinator = started(home)[1]
    coordinator.run(2)
    found = advise(home, "north-1", 5)
    simulation = replayed(coordinator.agreement, {"north": home}, coordinator.folder)
    scores = scorer_of(simulation).scores(torch.tensor([1]), None)[0]
    scores[simulation.split.train.of(1)] = -torch.inf
    assert [one.item for one in found.items] == [f"i{item}" for item in scores.topk(5).indices.tolist()]
    assert [one.title for one in found.items] == [TITLES[int(one.item[1:])] for one in found.items]
    assert (found.round, found.taken_part) == (2, True)


@pytest.mark.parametrize("case", ["fedmf", "fedease"])
def test_somebody_who_has_not_taken_part_gets_recommendations_from_ratings_alone(case: str, home: Path) -> None:
    coordinator = started(home, case)[1]
    coordinator.attendance.greet()
    before = advise(home, "north-0", 3)
    assert (before.round, before.taken_part) == (0, False)
    assert len(before.items) == 3
    coordinator.run(2)
    write_ratings(home, "north", 3)  # one more, whom the coordinator has not heard of
    after = advise(home, "north-2", 30)
    assert (after.round, after.taken_part) == (2, False)
    rated = {line.split(",")[1] for line in (home / "ratings.csv").read_text().splitlines() if "north-2" in line}
    assert {one.item for one in after.items} == {f"i{k}" for k in range(24)} - rated


def test_what_cannot_be_recommended_is_said(home: Path) -> None:
    with pytest.raises(DataError, match="has not met a coordinator yet"):
        advise(home, "north-0", 3)
    started(home)[1].attendance.greet()
    with pytest.raises(DataError, match="has 2 users; expected --user"):
        advise(home, None, 3)
    with pytest.raises(UnknownNameError, match="did you mean 'north-1'"):
        advise(home, "north1", 3)


def test_the_command_line_recommends_and_tells_what_was_sent(home: Path, ownview: Callable[..., Outcome]) -> None:
    started(home)[1].run(1)
    shown = ownview("client", "recommend", home, "--user", "north-0", "-k", 2)
    assert "fedmf for north-0, shared values of round 1, a client that took part" in shown.out
    assert shown.out.count("The story of") == 2
    found = json.loads(ownview("client", "recommend", home, "--user", "north-0", "--json").out)
    assert len(found["items"]) == 10
    listed = ownview("client", "sent", home)
    assert "no privacy budget was agreed on" in listed.out
    lines = json.loads(ownview("client", "sent", home, "--json").out)
    assert [one["kind"] for one in lines["messages"]] == ["hello", "terms", "work", "result"]
    work = lines["messages"][2]
    assert (work["round"], work["users"], work["what"]) == (1, 2, ["items"])
    assert lines["bytes"] == sum(one["bytes"] for one in lines["messages"]) > work["bytes"] > 0


def test_noise_is_a_place_s_own_and_its_budget_ends(home: Path) -> None:
    options = FederationOptions(privacy="local:epsilon=8,clip=1").for_rounds(2)
    place, coordinator = started(home, settings={"embedding_size": 2, "local_epochs": 1})
    agreed = replace(coordinator.agreement, federation=options)
    heard: list[bytes] = []

    class Heard:
        def answer(self, message: bytes) -> bytes:
            heard.append(message)
            return place.answer(message)

    coordinator = Coordinator(agreed, InProcess({"north": Heard()}), home.parent / "private", QUICK)
    coordinator.round(1)
    releases = home / "state" / "releases.jsonl"
    releases.write_text(releases.read_text() + '{"round": 2, "mark": "cut sh')  # by a kill
    (home / "state" / ".newest.0123abcd").write_bytes(b"left behind")
    place = Place(home)
    assert not (home / "state" / ".newest.0123abcd").exists()
    halfway = sent_messages(home)
    assert halfway.budget is not None
    assert 0 < halfway.spent["north-0"] < 8
    first = next(one for one in heard if Envelope.unpack(one).kind is Kind.WORK)
    assert place.answer(first) == place.answer(first)
    assert sent_messages(home).spent == halfway.spent, "the same answer again costs nothing"
    asked = Envelope.unpack(first)
    other = Envelope(asked.kind, asked.round, asked.counted, {**asked.note, "clients": [0]}, asked.parts).pack()
    once, twice = (Envelope.unpack(place.answer(one)).parts[0] for one in (first, other))
    assert once != twice, "other noise for another question"
    spent = sent_messages(home).spent
    assert spent["north-0"] == pytest.approx(8, rel=0.02)
    assert spent["north-1"] == halfway.spent["north-1"]
    changed = Envelope(
        asked.kind, asked.round, asked.counted, {**asked.note, "clients": [0, 1], "back": 1}, asked.parts
    )
    refused = Envelope.unpack(place.answer(changed.pack()))
    assert refused.kind is Kind.REFUSED
    assert "has sent 2 times, which is all that epsilon 8 allows" in refused.note["why"]
    assert sent_messages(home).spent == spent


def test_ratings_that_come_after_a_sum_under_a_budget_wait(home: Path) -> None:
    options = FederationOptions(privacy="local:epsilon=8").for_rounds(2)
    place, coordinator = started(home, "fedease")
    agreed = replace(coordinator.agreement, federation=options)
    coordinator = Coordinator(agreed, InProcess({"north": place}), home.parent / "private", QUICK)
    coordinator.round(1)
    assert place.residents is not None
    before = place.residents.data.train.of(0)
    with (home / "ratings.csv").open("a") as file:
        file.write("".join(f"north-0,i{item},9999\n" for item in range(24)))
    coordinator.round(2)
    assert torch.equal(place.residents.data.train.of(0), before)
    assert len(read_log(coordinator.folder / "participants.jsonl")) == 2
    assert advise(home, "north-0", 3).items == [], "recommendations know all that was rated"
