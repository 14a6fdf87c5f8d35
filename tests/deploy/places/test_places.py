"""What a place answers, refuses, remembers and falls back to; what a coordinator makes of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from ownview.base.errors import DataError, MessageError, OutputError, SettingError
from ownview.deploy.agreement import Agreement
from ownview.deploy.coordination.participants import read_log
from ownview.deploy.coordinator import Coordinator
from ownview.deploy.envelopes import envelope
from ownview.deploy.envelopes.envelope import Envelope, Kind
from ownview.deploy.generations import Generation, Generations
from ownview.deploy.place import Place
from ownview.deploy.places.holdings import read_holdings
from ownview.deploy.settings import CoordinatorSettings
from ownview.evaluation.metrics import means
from ownview.evaluation.named_protocols import HONEST
from ownview.evaluation.ranking import rankers
from ownview.round.scorers import scorer_of
from tests.deploy.in_process import InProcess
from tests.deploy.world import QUICK, agreement, assert_equal, replayed, write_homes, write_ratings

ONE = ("north",)


class Noted:
    """A place whose messages can be looked at."""

    def __init__(self, home: Path) -> None:
        self.place = Place(home)
        self.asked: list[bytes] = []
        self.answers: list[bytes] = []

    def answer(self, message: bytes) -> bytes:
        self.asked.append(message)
        self.answers.append(self.place.answer(message))
        return self.answers[-1]

    def last(self, kind: Kind) -> tuple[bytes, bytes]:
        pairs = zip(self.asked, self.answers, strict=True)
        return [(asked, answer) for asked, answer in pairs if Envelope.unpack(asked).kind is kind][-1]


@pytest.fixture
def worked(tmp_path: Path) -> tuple[Noted, Coordinator]:
    """A place of two users after two rounds of FedMF."""
    home = write_homes(tmp_path, ONE, users=2)["north"]
    noted = Noted(home)
    coordinator = Coordinator(agreement("fedmf"), InProcess({"north": noted}), tmp_path / "server", QUICK)
    coordinator.round(1)
    coordinator.round(2)
    return noted, coordinator


def test_the_same_message_is_answered_the_same_again(worked: tuple[Noted, Coordinator]) -> None:
    asked, answer = worked[0].last(Kind.WORK)
    before = {slot: one.serial for slot, one in worked[0].place.generations.slots.items()}
    assert worked[0].answer(asked) == answer
    assert Place(worked[0].place.home.folder).answer(asked) == answer  # from its files alone
    assert {slot: one.serial for slot, one in worked[0].place.generations.slots.items()} == before


def test_an_old_message_is_refused_and_changes_nothing(worked: tuple[Noted, Coordinator]) -> None:
    noted, coordinator = worked
    first = next(one for one in noted.asked if Envelope.unpack(one).kind is Kind.WORK)
    newest = noted.place.generations.newest
    coordinator.round(3)
    coordinator.round(4)
    after = noted.place.generations.newest
    assert _why(noted.answer(first)).startswith("an old message of round 1")
    assert noted.place.generations.newest is after is not newest


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda one: one[:3] + b"\x07" + one[4:], "a message of version 7; this program speaks version 1"),
        (lambda one: one[:-1] + bytes([one[-1] ^ 1]), "its checksum is wrong"),
        (lambda one: one[:-1], "its checksum is wrong"),
        (lambda one: one[:9], "a damaged message of 9 bytes"),
        (lambda one: b"GET / HTTP/1.1" + one, "it does not begin with OVP"),
        (lambda one: Envelope(Kind.REFUSED).pack(), "asks for nothing"),
        (lambda one: _noted(one, agreed="another"), "no agreement"),
        (lambda one: _noted(one, clients=[7]), "no user here has the identity 7"),
    ],
)
def test_what_is_no_message_for_this_place_is_refused_with_one_line(
    change: Any, why: str, worked: tuple[Noted, Coordinator]
) -> None:
    asked, answer = worked[0].last(Kind.WORK)
    found = _why(worked[0].answer(change(asked)))
    assert why in found
    assert "\n" not in found
    assert worked[0].answer(asked) == answer


def test_a_place_of_another_version_is_told_and_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    homes = write_homes(tmp_path, ("north", "west"), users=2)
    said: list[str] = []

    class Later:
        def answer(self, message: bytes) -> bytes:
            return message[:3] + bytes([envelope.VERSION + 1]) + message[4:]

    transport = InProcess({"north": Place(homes["north"]), "west": Later()})
    coordinator = Coordinator(agreement(), transport, tmp_path / "server", QUICK, said.append)
    assert list(coordinator.round(1).counted) == ["north"]
    assert said[0] == "place west: answered wrongly: a message of version 2; this program speaks version 1"


def test_a_damaged_newest_generation_falls_back_to_the_older_and_says_so(
    worked: tuple[Noted, Coordinator], tmp_path: Path
) -> None:
    noted, coordinator = worked
    home, newest = noted.place.home, noted.place.generations.newest
    slot = next(slot for slot, one in noted.place.generations.slots.items() if one is newest)
    file = home.state / f"{slot}.generation"
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    said: list[str] = []
    again = Place(home.folder, said.append)
    damaged = f"{file.name} is damaged (its checksum is wrong); going on from the other generation"
    assert said == [f"{home.state}: {damaged}"]
    coordinator.transport.homes["north"] = again  # type: ignore[attr-defined]
    one = coordinator.round(3)
    assert one.notes["north"] == [damaged, "the state after round 2 is not there; going on from round 1"]
    assert coordinator.round(4).notes == {}


def test_a_coordinator_with_a_damaged_checkpoint_goes_back_a_round_and_places_go_with_it(
    worked: tuple[Noted, Coordinator], tmp_path: Path
) -> None:
    noted, coordinator = worked
    newest = coordinator.generations.newest
    slot = next(slot for slot, one in coordinator.generations.slots.items() if one is newest)
    file = coordinator.folder / f"{slot}.generation"
    file.write_bytes(file.read_bytes()[:-20])
    said: list[str] = []
    again = Coordinator(coordinator.agreement, coordinator.transport, coordinator.folder, QUICK, said.append)
    assert "is damaged" in said[0]
    assert again.done == 1
    assert [one.round for one in read_log(coordinator.folder / "participants.jsonl")] == [1]
    again.run(3)
    homes = {"north": noted.place.home.folder}
    simulation = replayed(again.agreement, homes, again.folder)
    assert_equal(again.agreement, again, {"north": noted.place}, simulation)


def test_generations_keep_the_one_that_must_stay(tmp_path: Path) -> None:
    generations = Generations(tmp_path)
    base = generations.write(Generation(1, values={"x": torch.arange(3)}, kept={"empty": b"", "some": b"abc"}), None)
    for number in range(2, 5):
        generations.write(Generation(number), keep=base)
    found = Generations(tmp_path)
    kept = found.after(1)
    assert kept is not None
    assert torch.equal(kept.values["x"], torch.arange(3))
    assert kept.kept == {"empty": b"", "some": b"abc"}
    assert found.newest is not None
    assert found.newest.round == 4
    assert found.after(3) is None


def test_methods_whose_server_needs_more_than_sums_are_refused() -> None:
    for method in ("fedem", "gpfedrec", "perfedrec", "pfedgraph", "fedfast"):
        with pytest.raises(SettingError, match=f"method {method} cannot be deployed: its server needs every client"):
            Agreement(method, 4, ("a", "b", "c")).terms()
    with pytest.raises(SettingError, match="is not federated"):
        Agreement("popularity", 4, ("a", "b", "c")).terms()
    with pytest.raises(SettingError, match="places run no code that is sent"):
        Agreement("mine.py", 4, ("a", "b", "c"))


def test_an_agreement_survives_its_bytes() -> None:
    one = agreement("plgc", clients="0.5", titles=tuple(f"title {k}" for k in range(24)), hold_out=True)
    again = Agreement.unpack(one.pack())
    assert again == one
    assert again.digest == one.digest != agreement("plgc").digest
    with pytest.raises(MessageError, match="a damaged agreement"):
        Agreement.unpack(one.pack()[:-3])


def test_users_without_room_wait_and_others_go_on(tmp_path: Path) -> None:
    homes, said, heard = write_homes(tmp_path, ("north", "west"), users=3), list[str](), list[str]()
    transport = InProcess({"north": Place(homes["north"]), "west": Place(homes["west"], heard.append)})
    coordinator = Coordinator(agreement(room=4), transport, tmp_path / "server", QUICK, said.append)
    assert coordinator.round(1).clients == [0, 1, 2, 3]
    coordinator.round(2)
    assert said == ["place west: no room for 2 of its users; 4 were agreed on"]
    assert heard[-1] == f"the server declines users of this place: {said[0].removeprefix('place west: ')}"


def test_a_place_or_a_folder_of_another_agreement_is_refused(worked: tuple[Noted, Coordinator], tmp_path: Path) -> None:
    noted, coordinator = worked
    other = agreement("pfedrec")
    with pytest.raises(OutputError, match="has rounds of another agreement"):
        Coordinator(other, coordinator.transport, coordinator.folder, QUICK)
    terms = Envelope(Kind.TERMS, note={"identities": [0, 1]}, parts=[other.pack(), b""]).pack()
    assert "takes part in another federation" in _why(noted.answer(terms))
    terms = Envelope(Kind.TERMS, note={"identities": [1, 0]}, parts=[coordinator.agreement.pack(), b""]).pack()
    assert "they never change" in _why(noted.answer(terms))


def test_new_ratings_count_from_the_next_round_on(worked: tuple[Noted, Coordinator], tmp_path: Path) -> None:
    noted, coordinator = worked
    before = noted.place.residents
    ratings = noted.place.home.ratings
    known = {line.split(",")[1] for line in ratings.read_text().splitlines() if line.startswith("north-0,")}
    new = next(f"i{k}" for k in range(24) if f"i{k}" not in known)
    with ratings.open("a") as file:
        file.write(f"north-0,{new},9999\n")
    coordinator.round(3)
    assert before is not None
    assert noted.place.residents is not None
    assert len(noted.place.residents.data.train.of(0)) == len(before.data.train.of(0)) + 1


def test_a_home_without_ratings_is_told_what_is_missing(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such folder"):
        Place(tmp_path / "nowhere")
    said: list[str] = []
    place = Place(tmp_path, said.append)
    assert _why(place.answer(Envelope(Kind.HELLO).pack())) == "DataError at the place, which tells the rest at home"
    assert "ratings.csv: is not there" in said[0], "what may name users and files stays"


def test_ratings_without_times_do_where_nobody_looks_at_times(tmp_path: Path) -> None:
    file = tmp_path / "ratings.csv"
    file.write_text("user,item\nanna,i3\nben,i1\nanna,i2\nanna,i3\nanna,unheard of\n")
    found = read_holdings(file, agreement("fedmf"), ["ben"])
    assert found.users == ("ben", "anna")
    assert [found.train.of(k).tolist() for k in range(2)] == [[1], [3, 2]]
    assert found.unknown == 1
    rows = read_holdings(file, agreement("fednext", order="rows"), ["ben"])
    assert rows.timeline.items.of(1).tolist() == [3, 2]
    with pytest.raises(DataError, match="no timestamp column, and fednext goes by the times of ratings"):
        read_holdings(file, agreement("fednext"))


def test_places_send_sums_of_metrics_alone(tmp_path: Path) -> None:
    homes = write_homes(tmp_path, ("north", "west"), users=4)
    noted = {name: Noted(home) for name, home in homes.items()}
    agreed = agreement("fedmf", hold_out=True)
    coordinator = Coordinator(agreed, InProcess(noted), tmp_path / "server", QUICK)
    coordinator.run(2)
    found = coordinator.measure()
    sums = [Envelope.unpack(one.last(Kind.MEASURE)[1]) for one in noted.values()]
    assert all(set(one.note) == {"of", "sums"} and not one.parts for one in sums)
    assert all(set(one.note["sums"]) == {"users", "HR@10", "NDCG@10"} for one in sums)
    assert found["HR@10"] == sum(one.note["sums"]["HR@10"] for one in sums) / 8
    assert 0 < found["NDCG@10"] < found["HR@10"] < 1
    simulation = replayed(agreed, homes, tmp_path / "server")
    ranker = rankers(HONEST, simulation.split, 0, torch.device("cpu"), 10**8)[1]
    expected = means(ranker.rank(scorer_of(simulation)), (10,))
    assert found == pytest.approx({name: expected[name] for name in found}, rel=1e-9)


def test_a_quorum_counts_who_answered(tmp_path: Path) -> None:
    homes = write_homes(tmp_path, ("north", "west"), users=2)

    class Gone:
        def answer(self, message: bytes) -> bytes:
            if Envelope.unpack(message).kind is Kind.WORK:
                raise ConnectionError
            return west.answer(message)

    west = Place(homes["west"])
    transport = InProcess({"north": Place(homes["north"]), "west": Gone()})
    conduct = CoordinatorSettings(resend=0.05, greeting=0.2, deadline=0.1, quorum=0.5)
    coordinator = Coordinator(agreement(), transport, tmp_path / "server", conduct)
    one = coordinator.round(1)
    assert list(one.asked) == ["north", "west"]
    assert list(one.counted) == ["north"]
    line = json.loads((tmp_path / "server" / "participants.jsonl").read_text())
    assert (line["round"], line["counted"]) == (1, {"north": [0, 1]})


def test_users_who_come_get_identities_behind_the_others(tmp_path: Path) -> None:
    homes = write_homes(tmp_path, ("north", "west"), users=2)
    places = {name: Place(home) for name, home in homes.items()}
    coordinator = Coordinator(agreement(), InProcess(places), tmp_path / "server", QUICK)
    coordinator.round(1)
    write_ratings(homes["north"], "north", 3)
    coordinator.round(2)  # the place says that there are more
    assert coordinator.round(3).clients == [0, 1, 2, 3, 4]
    assert coordinator.register.places == {"north": [0, 1, 4], "west": [2, 3]}
    assert places["north"].members.users == ("north-0", "north-1", "north-2")


def _why(answer: bytes) -> str:
    read = Envelope.unpack(answer)
    assert read.kind is Kind.REFUSED
    return str(read.note["why"])


def _noted(message: bytes, **changed: Any) -> bytes:
    one = Envelope.unpack(message)
    return Envelope(one.kind, one.round, one.counted, {**one.note, **changed}, one.parts).pack()
