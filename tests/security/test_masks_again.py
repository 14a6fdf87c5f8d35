"""No round has two sums: a server that begins it again without one client gets nothing.

Before, a round that had failed was begun again over the clients that were left, with the same numbers: the difference
of the two sums was what the missing client had sent, exactly. A coordinator that was killed did so by itself.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor

from ownview import FedMF
from ownview.base.errors import MessageError, TrainingError
from ownview.deploy.agreement import Agreement
from ownview.deploy.coordination.participants import CountedRound, read_log
from ownview.deploy.coordinator import Coordinator
from ownview.deploy.envelopes.envelope import Envelope, Kind
from ownview.deploy.place import Place
from ownview.deploy.places.home import Home
from ownview.deploy.places.masks import PlaceMasks
from ownview.federation.options import FederationOptions
from ownview.federation.server import AggregationServer
from ownview.messages.layout import Layout, Part
from ownview.messages.sums import MeanPartial, SumPartial
from ownview.messages.upload import MODULUS, Upload
from ownview.privacy.masked import Masked
from ownview.privacy.masking.exchange import Exchange, OwnMasks
from ownview.privacy.masking.messages import Left
from ownview.privacy.masks import Masks
from ownview.round.alone import ProcessFederation
from ownview.seam.training import Params
from ownview.testing.worlds import federation, small_world
from tests.deploy.in_process import InProcess
from tests.deploy.world import QUICK, agreement, replayed, write_homes

NAMES = ("east", "north", "south", "west")
MASKED = Masked(Layout((Part("whole", (30,)),)), 1.0, 10, 8, Masks())


def _upload(client: int) -> Upload:
    """The same numbers, whenever they are asked for."""
    nothing = torch.zeros(1, 0, dtype=torch.long)
    words = torch.randint(MODULUS, (1, 30), generator=torch.Generator().manual_seed(client))
    return Upload(torch.tensor([client]), torch.zeros(1), nothing, nothing.bool(), words=words)


def _plain(clients: range) -> Tensor:
    words = [_upload(one).words for one in clients]
    return torch.cat([one for one in words if one is not None]).sum(0) % MODULUS


def _sum(own: dict[int, OwnMasks], number: int, clients: range, showing: range) -> Tensor:
    """A round over some clients, as a server asks for it."""
    exchange = Exchange(MASKED.cohort, number, 1)
    introductions = exchange.introduce([own[one].keys(number) for one in clients])
    inboxes = exchange.deliver([own[one].shares(introductions[one]) for one in clients])
    total = MeanPartial({"whole": torch.zeros(30)}, torch.empty(0), "uniform")
    total.words = torch.zeros(30, dtype=torch.long)
    for one in clients:
        upload = own[one].put_on(_upload(one), inboxes[one])
        exchange.take(upload)
        total.add(upload)
    asked = exchange.left()
    exchange.lift(total, [own[one].show(asked[one]) for one in showing])
    return total.words


def test_a_round_is_not_summed_again_without_one_client() -> None:
    own = {one: OwnMasks(one, MASKED.cohort) for one in range(10)}
    total = _sum(own, 1, range(10), range(10))
    assert torch.equal(total, _plain(range(10)))
    with pytest.raises(MessageError, match="shares were shown for round 1, and no sum of it is made again"):
        _sum(own, 1, range(9), range(9))
    _sum(own, 2, range(10), range(10))
    with pytest.raises(MessageError, match="shares were shown for round 2"):
        _sum(own, 1, range(9), range(9))


def test_a_round_that_failed_while_shares_were_shown_is_not_summed_again() -> None:
    """Seven of ten have shown shares, which lift nothing; a second sum needs eight others, and there are three."""
    own = {one: OwnMasks(one, MASKED.cohort) for one in range(10)}
    with pytest.raises(TrainingError, match="7 clients showed shares, and 8 are needed"):
        _sum(own, 1, range(10), range(7))
    with pytest.raises(MessageError, match="no sum of it is made again"):
        _sum(own, 1, range(9), range(9))


def test_before_shares_are_shown_a_round_may_begin_again() -> None:
    """Masked numbers alone say nothing, whatever keys they are masked with."""
    own = {one: OwnMasks(one, MASKED.cohort) for one in range(10)}
    with pytest.raises(TrainingError, match="0 clients showed shares"):
        _sum(own, 1, range(10), range(0))
    assert torch.equal(_sum(own, 1, range(9), range(9)), _plain(range(9)))


class _Killed(BaseException):
    pass


def _federation(tmp_path: Path) -> tuple[Agreement, dict[str, Path]]:
    """Seven users, of whom one is alone at the place west."""
    agreed = agreement(room=7, settings={"embedding_size": 2, "local_epochs": 1})
    options = FederationOptions(privacy="masked:clip=1,threshold=5")
    homes = write_homes(tmp_path, NAMES[:3], 2) | write_homes(tmp_path, ("west",), 1)
    return Agreement(**{**vars(agreed), "federation": options}), homes


def test_a_coordinator_that_lies_or_was_killed_gets_no_second_sum(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has the sum of everybody, keeps it, says that it was killed, and begins the round again without west."""
    agreed, homes = _federation(tmp_path)
    sums: list[Tensor] = []
    finishing = AggregationServer.finish

    def killed(
        self: AggregationServer,
        number: int,
        total: MeanPartial | SumPartial,
        cohort: Tensor,
        made: Params | None = None,
    ) -> None:
        assert total.words is not None
        sums.append(total.words.clone())
        raise _Killed

    monkeypatch.setattr(AggregationServer, "finish", killed)
    with pytest.raises(_Killed):
        Coordinator(agreed, InProcess({name: Place(homes[name]) for name in NAMES}), tmp_path / "s", QUICK).round(1)
    said: list[str] = []
    # Places were killed too: what they have shown is on their disks.
    others = InProcess({name: Place(homes[name]) for name in NAMES[:3]})
    lost = Coordinator(agreed, others, tmp_path / "s", QUICK, said.append).round(1)
    assert len(sums) == 1, "the difference of two would be the upload of the user at west"
    assert not lost.clients
    assert "round 1: is lost: its shares were shown before, and a sum is not made twice" in said
    monkeypatch.setattr(AggregationServer, "finish", finishing)
    # The federation goes on with the next round.
    coordinator = Coordinator(agreed, InProcess({one: Place(homes[one]) for one in NAMES}), tmp_path / "s", QUICK)
    coordinator.run(3)
    assert [len(one.clients) for one in read_log(tmp_path / "s" / "participants.jsonl")] == [0, 7, 7]
    simulation = replayed(agreed, homes, tmp_path / "s")
    assert simulation.terms.masked is not None
    close = 100 / simulation.terms.masked.coding(1, None).scale
    assert float((coordinator.server.shared["items"] - simulation.server.shared["items"]).abs().max()) < close


def test_a_method_whose_sums_are_needed_stops_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    agreed, homes = _federation(tmp_path)
    agreed = Agreement(**{**vars(agreed), "method": "fedease", "settings": {}})

    def killed(self: Coordinator, one: CountedRound) -> None:
        raise _Killed

    monkeypatch.setattr(Coordinator, "_count", killed)
    places = InProcess({name: Place(homes[name]) for name in NAMES})
    with pytest.raises(_Killed):
        Coordinator(agreed, places, tmp_path / "s", QUICK).round(1)
    with pytest.raises(TrainingError, match="fedease needs the sums of every round: begin again in an empty folder"):
        Coordinator(agreed, places, tmp_path / "s", QUICK).round(1)


def test_a_place_shows_shares_for_one_set_of_clients(tmp_path: Path) -> None:
    """One set for all of its users, and none after that; the same message has the same answer."""
    place = PlaceMasks(tmp_path / "shown", Home(tmp_path).trust)
    others = {one: OwnMasks(one, MASKED.cohort) for one in range(2, 10)}
    exchange = Exchange(MASKED.cohort, 4, 1)

    def asked(kind: Kind, parts: list[bytes], digest: str) -> list[bytes]:
        return place.answer(Envelope(kind, 4, parts=parts), [0, 1], digest, MASKED.cohort)

    keys = [*asked(Kind.KEYS, [b"", b""], "a"), *(one.keys(4) for one in others.values())]
    introductions = exchange.introduce(keys)
    shares = [
        *asked(Kind.SHARES, [introductions[0], introductions[1]], "b"),
        *(one.shares(introductions[who]) for who, one in others.items()),
    ]
    inboxes = exchange.deliver(shares)
    put_on = place.put_on({0: inboxes[0], 1: inboxes[1]})
    for one in (0, 1):
        put_on(_upload(one))
    without = [Left(4, one, {other: other != 7 for other in range(10)}).pack() for one in (0, 1)]
    complete = [Left(4, one, dict.fromkeys(range(10), True)).pack() for one in (0, 1)]
    with pytest.raises(MessageError, match="users of one place received 2 sets of arrived clients"):
        asked(Kind.SHOW, [complete[0], without[1]], "c")
    shown = asked(Kind.SHOW, complete, "d")
    assert asked(Kind.SHOW, complete, "d") == shown
    for kind, parts in ((Kind.SHOW, without), (Kind.KEYS, [b"", b""])):
        with pytest.raises(MessageError, match="shares were shown for round 4"):
            asked(kind, parts, "e")
    assert PlaceMasks(tmp_path / "shown", Home(tmp_path).trust).shown == 4


def test_a_client_in_a_process_of_its_own_remembers_what_it_has_shown(tmp_path: Path) -> None:
    split = small_world(num_users=8)
    one = federation(FedMF(embedding_size=2), split, options=FederationOptions(privacy="masked:clip=1"))
    agreed = (one.method, one.world, one.options, one.seed, one.machine)
    with ProcessFederation(agreed, split, split.training_items(), tmp_path, together=True) as apart:
        apart.round(1)
        apart.restart()
        with pytest.raises(MessageError, match="shares were shown for round 1"):
            apart.round(1)
        apart.round(2)
