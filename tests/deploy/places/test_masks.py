"""Masked sums between devices: the sums of a simulation, no single upload to be read, and places that drop out."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from ownview.base.errors import SettingError
from ownview.deploy.agreement import Agreement
from ownview.deploy.coordination.refusals import NoQuorumError
from ownview.deploy.coordinator import Coordinator
from ownview.deploy.envelopes.envelope import Envelope, Kind
from ownview.deploy.place import Place
from ownview.deploy.places.sent_messages import sent_messages
from ownview.deploy.settings import CoordinatorSettings
from ownview.deploy.transport import Answering
from ownview.federation.options import FederationOptions
from ownview.privacy.masking.messages import Keys, SealedShares
from tests.deploy.in_process import InProcess
from tests.deploy.replay import Replay
from tests.deploy.world import QUICK, agreement, all_holdings, replayed, write_homes

NAMES = ("east", "north", "south", "west")


def masked(privacy: str = "masked:clip=1,threshold=5", **more: Any) -> Agreement:
    """Of eight users, two at each of four places."""
    agreed = agreement(**{"room": 8, "settings": {"embedding_size": 2, "local_epochs": 1}, **more})
    return Agreement(**{**vars(agreed), "federation": FederationOptions(privacy=privacy)})


class Noted:
    """A place that may be told to be gone when it is asked for something."""

    def __init__(self, home: Path) -> None:
        self.home, self.place = home, Place(home)
        self.gone_at: Kind | None = None
        self.uploads: list[bytes] = []

    def answer(self, message: bytes) -> bytes:
        kind = Envelope.unpack(message).kind
        if kind is self.gone_at:
            self.gone_at, self.place = None, Place(self.home)  # killed and back, with nothing but its folder
            raise ConnectionError
        answer = self.place.answer(message)
        if kind is Kind.WORK:
            self.uploads += Envelope.unpack(answer).parts
        return answer


@pytest.mark.parametrize("case", ["fedmf", "fedease"])
def test_masked_sums_are_those_of_a_simulation(case: str, tmp_path: Path) -> None:
    more: dict[str, Any] = {} if case == "fedmf" else {"method": case, "settings": {}}
    agreed, homes = masked(**more), write_homes(tmp_path, NAMES, 2)
    places = {name: Noted(home) for name, home in homes.items()}
    coordinator = Coordinator(agreed, InProcess(places), tmp_path / "server", QUICK)
    coordinator.run(2)
    simulation = replayed(agreed, homes, tmp_path / "server")
    assert simulation.terms.masked is not None
    step = 1 / simulation.terms.masked.coding(1, None).scale
    for name, value in simulation.server.shared.items():
        # Rounding to whole steps is drawn from secrets: every client may differ by one step a round, and what follows.
        assert float((coordinator.server.shared[name] - value).abs().max()) < 100 * step, name
    assert step < 1e-6


def test_single_uploads_look_like_chance_and_their_sum_does_not(tmp_path: Path) -> None:
    agreed, homes = masked(), write_homes(tmp_path, NAMES, 2)
    places = {name: Noted(home) for name, home in homes.items()}
    coordinator = Coordinator(agreed, InProcess(places), tmp_path / "server", QUICK)
    coordinator.round(1)
    uploads = [coordinator.terms.codec.read_upload(one, 0).words for place in places.values() for one in place.uploads]
    assert len(uploads) == 8
    words = torch.cat([one for one in uploads if one is not None]).double() / 2**32
    # Uniform numbers in [0, 1): 8 x 48 of them have a mean within five standard deviations of 1/2.
    assert abs(float(words.mean()) - 0.5) < 5 / (12 * words.numel()) ** 0.5
    plain = Replay(agreement(room=8, settings=agreed.settings), all_holdings(agreed, homes, coordinator.folder), [])
    assert float(coordinator.server.shared["items"].abs().max()) < 10 * float(plain.server.shared["items"].abs().max())


@pytest.mark.parametrize("step", [Kind.KEYS, Kind.SHARES, Kind.WORK, Kind.SHOW])
def test_a_place_that_is_killed_at_any_step_costs_nothing_but_itself(step: Kind, tmp_path: Path) -> None:
    agreed, homes = masked(), write_homes(tmp_path, NAMES, 2)
    places: dict[str, Answering] = {name: Noted(home) for name, home in homes.items()}
    said: list[str] = []
    patient = CoordinatorSettings(
        resend=0.05, greeting=0.2, deadline=60
    )  # a busy machine is no reason to go on without it
    coordinator = Coordinator(agreed, InProcess(places), tmp_path / "server", patient, said.append)
    coordinator.round(1)
    west = places["west"]
    assert isinstance(west, Noted)
    west.gone_at = step
    one = coordinator.round(2)
    # Keys are made anew by who is back; who has lost its secrets is out, unless its numbers have arrived.
    assert ("west" in one.counted) == (step in (Kind.KEYS, Kind.SHOW))
    assert len(one.clients) == (8 if "west" in one.counted else 6)
    coordinator.run(3)
    assert coordinator.standing.counted["west"] == 3
    simulation = replayed(agreed, homes, tmp_path / "server")
    assert simulation.terms.masked is not None
    close = 100 / simulation.terms.masked.coding(1, None).scale
    found = coordinator.server.shared["items"] - simulation.server.shared["items"]
    assert float(found.abs().max()) < close


def test_a_budget_shared_by_devices_goes_through_masks(tmp_path: Path) -> None:
    options = FederationOptions(privacy="distributed:epsilon=8,clip=1,threshold=5").for_rounds(2)
    agreed, homes = masked(options.privacy), write_homes(tmp_path, NAMES, 2)
    coordinator = Coordinator(
        agreed, InProcess({name: Place(home) for name, home in homes.items()}), tmp_path / "s", QUICK
    )
    coordinator.run(2)
    found = sent_messages(homes["north"])
    assert found.budget is not None
    assert found.spent["north-0"] == pytest.approx(8, rel=0.02)
    assert {"keys", "shares", "work", "show"} <= {one["kind"] for one in found.messages}


def test_masks_that_only_a_simulation_can_leave_out_are_refused() -> None:
    with pytest.raises(SettingError, match="only a simulation can leave masks out"):
        masked("masked:clip=1,threshold=5,masks=skipped").terms()


class Liar(Noted):
    """A place whose first user adds 2^28 steps to one number, under its masks."""

    def answer(self, message: bytes) -> bytes:
        answer = Envelope.unpack(super().answer(message))
        if answer.kind is not Kind.WORK:
            return answer.pack()
        codec = self.place.terms.codec
        one = codec.read_upload(answer.parts[0], 0)
        assert one.words is not None
        one.words[0, 0] = (one.words[0, 0] + 2**28) % 2**32
        return replace(answer, parts=[codec.write_upload(one, answer.round), *answer.parts[1:]]).pack()


def _weak_keys(message: bytes) -> bytes:
    """A point of small order: nobody can agree on anything with it, and everybody would refuse the round."""
    return replace(Keys.unpack(message), sealing=bytes(32)).pack()


def _of_another_round(message: bytes) -> bytes:
    return replace(Keys.unpack(message), round=77).pack()


def _for_others(message: bytes) -> bytes:
    sent = SealedShares.unpack(message)
    return replace(sent, boxes={client + 100: one for client, one in sent.boxes.items()}).pack()


@pytest.mark.parametrize(
    ("kind", "changed"), [(Kind.KEYS, _weak_keys), (Kind.KEYS, _of_another_round), (Kind.SHARES, _for_others)]
)
def test_a_place_that_answers_wrongly_about_masks_costs_nobody_else_the_round(
    kind: Kind, changed: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    class Wrong(Noted):
        def answer(self, message: bytes) -> bytes:
            answer = Envelope.unpack(super().answer(message))
            if answer.kind is not kind:
                return answer.pack()
            return replace(answer, parts=[changed(part) for part in answer.parts]).pack()

    agreed, homes = masked(), write_homes(tmp_path, NAMES, 2)
    places: dict[str, Answering] = {name: (Wrong if name == "west" else Noted)(home) for name, home in homes.items()}
    said: list[str] = []

    def say(line: str) -> None:
        said.append(line)
        assert not any(f"place {name}:" in line for name in NAMES[:3]), "an honest place is blamed"
        assert len(said) < 20, "round and round"

    coordinator = Coordinator(agreed, InProcess(places), tmp_path / "server", QUICK, say)
    one = coordinator.round(1)
    assert sorted(one.counted) == sorted(NAMES[:3])


class Sealing(Noted):
    """A place whose shares nobody can open."""

    def answer(self, message: bytes) -> bytes:
        answer = Envelope.unpack(super().answer(message))
        if answer.kind is not Kind.SHARES:
            return answer.pack()
        sent = [SealedShares.unpack(part) for part in answer.parts]
        boxes = [{one: box._replace(box=bytes(len(box.box))) for one, box in each.boxes.items()} for each in sent]
        return replace(
            answer, parts=[replace(one, boxes=own).pack() for one, own in zip(sent, boxes, strict=True)]
        ).pack()


def test_shares_that_nobody_can_open_cost_their_group_alone(tmp_path: Path) -> None:
    """And without groups every round: what docs/masking.md says of it."""
    names = tuple("abcdefghijkl")
    homes = write_homes(tmp_path, names, 1)
    for privacy, most in (("masked:clip=1,groups=4", 0), ("masked:clip=1,threshold=8", 3)):
        places: dict[str, Answering] = {name: (Sealing if name == "l" else Noted)(home) for name, home in homes.items()}
        said: list[str] = []

        def say(line: str, said: list[str] = said, most: int = most) -> None:
            said.append(line)
            if most and sum(line.startswith("round 1:") for line in said) >= most:
                raise KeyboardInterrupt

        agreed = masked(privacy, room=12)
        one = Coordinator(agreed, InProcess(places), tmp_path / privacy, QUICK, say)
        if most:
            with pytest.raises(KeyboardInterrupt):
                one.round(1)
        else:
            counted = sorted(one.round(1).counted)
            assert len(counted) == 9
            assert "l" not in counted
        for home in homes.values():
            shutil.rmtree(home / "state")


@pytest.mark.parametrize("alone", [True, False])
def test_places_that_cannot_fill_the_groups_are_no_endless_round(tmp_path: Path, alone: bool) -> None:
    """12 users of one place are in one group of three: no attempt could succeed."""
    agreed, homes = masked("masked:clip=1,groups=3", room=12), write_homes(tmp_path, ("east",), 12)
    said: list[str] = []

    def say(line: str) -> None:
        said.append(line)
        assert len(said) < 20, "round and round"

    expected = {"east"} if alone else {"east", "west"}
    coordinator = Coordinator(
        agreed, InProcess({"east": Place(homes["east"])}), tmp_path / "server", replace(QUICK, waiting=1.0),
        say, expected=lambda: expected,
    )  # fmt: skip
    why = r"12 users are there.* in 3 groups they are 12, 0, 0, users of one place together, .* need 4 to 7"
    with pytest.raises(NoQuorumError, match=why):
        coordinator.round(1)
    assert sum("users are there" in line or "waits for" in line for line in said) == (0 if alone else 1)


def test_a_lying_place_costs_its_own_group_and_nobody_elses(tmp_path: Path) -> None:
    """Users of one place are in one group: a place that lies spoils one, however many users it has."""
    agreed, homes = masked("masked:clip=1,groups=4", room=12), write_homes(tmp_path, NAMES, 3)
    places: dict[str, Answering] = {name: (Liar if name == "west" else Noted)(home) for name, home in homes.items()}
    said: list[str] = []
    coordinator = Coordinator(agreed, InProcess(places), tmp_path / "server", QUICK, said.append)
    for number in (1, 2):
        one = coordinator.round(number)
        assert sorted(one.counted) == ["east", "north", "south"]
    assert any("times as far from the median of all as it may be (places west)" in line for line in said)
    simulation = replayed(masked("masked:clip=1,threshold=7", room=12), homes, tmp_path / "server")
    assert simulation.terms.masked is not None
    close = 100 / simulation.terms.masked.coding(1, None).scale
    found = coordinator.server.shared["items"] - simulation.server.shared["items"]
    assert float(found.abs().max()) < close
