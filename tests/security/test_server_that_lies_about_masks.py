"""Masks against a server that lies: what it gets without signatures, and that it gets nothing with them.

Both attacks succeed where keys and stories are not signed; docs/masking.md says so.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from ownview import FedMF
from ownview.base.errors import DataError, MessageError, TrainingError
from ownview.deploy.coordinator import Coordinator
from ownview.deploy.place import Place
from ownview.deploy.places.floor import Floor
from ownview.deploy.places.home import Home
from ownview.deploy.places.signers import SIGNERS
from ownview.deploy.settings import CoordinatorSettings
from ownview.federation.checks.liars import warning
from ownview.federation.options import FederationOptions
from ownview.messages.layout import Layout, Part
from ownview.messages.sums import MeanPartial
from ownview.messages.upload import MODULUS, Upload
from ownview.privacy.masked import Masked
from ownview.privacy.masking.collector import MaskingServer
from ownview.privacy.masking.device import MASKS, MaskingClient, place_of
from ownview.privacy.masking.exchange import Exchange, OwnMasks
from ownview.privacy.masking.messages import Agreements, Introduction, Keys, Left
from ownview.privacy.masking.primitives import SECRET, KeyPair, stream
from ownview.privacy.masking.shamir import combined
from ownview.privacy.masking.signatures import Signer, Trust
from ownview.privacy.masks import Masks
from ownview.round.federation import Federation
from ownview.testing.worlds import federation, small_world
from tests.deploy.in_process import InProcess
from tests.deploy.places.test_masks import NAMES, masked
from tests.deploy.world import replayed, write_homes

CLIENTS, T, COUNT = 10, 6, 30
MASKED = Masked(Layout((Part("whole", (COUNT,)),)), 1.0, CLIENTS, T, Masks())
STEADY = CoordinatorSettings(resend=0.2, greeting=30.0, deadline=30.0)
SIGNED = "masked:clip=1,threshold=5,masks=signed"


def _numbers(client: int) -> Tensor:
    return torch.randint(MODULUS, (COUNT,), generator=torch.Generator().manual_seed(client))


def _trusts(clients: int = CLIENTS) -> list[Trust]:
    signers = [Signer(bytes([one]) * SECRET) for one in range(clients)]
    known = frozenset(one.public for one in signers)
    return [Trust(one, known) for one in signers]


def _entropy(label: int) -> Callable[[int], bytes]:
    return np.random.default_rng(label).bytes


# --- keys of its own ---


def _read_alone(trust: Trust | None) -> Tensor:
    """A server that makes up all others: their shares are sealed for its keys, and their masks agreed with them."""
    victim = MaskingClient(0, 1, MASKED.cohort, _entropy(0), trust)
    puppets = [MaskingClient(one, 1, MASKED.cohort, _entropy(one)) for one in range(1, CLIENTS)]
    mine = victim.keys()
    keys: tuple[Keys, ...] = (mine, *(one.keys() for one in puppets))
    collector = MaskingServer(1, MASKED.cohort, 0)
    introductions = collector.introduce(keys)
    shares = [victim.shares(introductions[0]), *(one.shares(introductions[one.client]) for one in puppets)]
    inboxes = collector.deliver(shares)
    sent = (_numbers(0).numpy() + victim.masks(inboxes[0], COUNT)).astype("uint32")
    mask = sum((one.masks(inboxes[one.client], COUNT) for one in puppets), np.zeros(COUNT, dtype=np.uint32))
    for one in range(CLIENTS):
        collector.take(one)
    left = collector.left()
    lifted = collector.masks_left([one.show(left[one.client]) for one in puppets], COUNT)
    # All seeds but the victim's are of the server's own making; what is left beside its masks is the victim's numbers.
    return torch.from_numpy((sent + mask - lifted).astype("int64")) % MODULUS


def test_without_signatures_keys_of_the_servers_own_open_one_upload() -> None:
    assert torch.equal(_read_alone(None), _numbers(0))


def test_with_signatures_nothing_is_sealed_for_keys_of_the_servers_own() -> None:
    with pytest.raises(MessageError, match=r"client 0: keys of client .* by a signer that is not known here"):
        _read_alone(_trusts()[0])


def test_keys_that_were_changed_on_their_way_are_refused() -> None:
    trusts = _trusts()
    clients = [MaskingClient(one, 1, MASKED.cohort, _entropy(one), trusts[one]) for one in range(CLIENTS)]
    keys = [one.keys() for one in clients]
    other = keys[3]
    keys[3] = Keys(1, 3, keys[4].sealing, other.masking, other.seed, other.signer, other.signature)
    with pytest.raises(MessageError, match="keys of client 3 have a wrong signature"):
        clients[0].shares(Introduction(1, 0, tuple(keys)))
    old = MaskingClient(3, 2, MASKED.cohort, _entropy(3), trusts[3]).keys()
    keys[3] = Keys(1, 3, old.sealing, old.masking, old.seed, old.signer, old.signature)
    with pytest.raises(MessageError, match="keys of client 3 have a wrong signature"):
        clients[1].shares(Introduction(1, 1, tuple(keys)))


# --- other stories of who is left ---

GONE = range(4, CLIENTS)
"""Six of ten that have sent their numbers; the server wants the sum of the other four, and six were promised."""


def _story_for(client: int) -> dict[int, bool]:
    """Four clients are missing in every story, never the listener; each of the six in six stories at least."""
    others = [one for one in GONE if one != client]
    start = client * 2
    missing = {others[(start + step) % len(others)] for step in range(4)}
    return {one: one not in missing for one in range(CLIENTS)}


def _sum_of_four(trusts: list[Trust] | list[None]) -> Tensor:
    clients = [MaskingClient(one, 1, MASKED.cohort, _entropy(one), trusts[one]) for one in range(CLIENTS)]
    collector = MaskingServer(1, MASKED.cohort, 0)
    introductions = collector.introduce([one.keys() for one in clients])
    inboxes = collector.deliver([one.shares(introductions[one.client]) for one in clients])
    sent = [(_numbers(k).numpy() + one.masks(inboxes[k], COUNT)).astype("uint32") for k, one in enumerate(clients)]
    stories = {one.client: Left(1, one.client, _story_for(one.client)) for one in clients}
    if trusts[0] is None:
        shown = [one.show(stories[one.client]) for one in clients]
    else:
        signed = {one.client: one.agree(stories[one.client]).signature for one in clients}
        shown = [one.show_agreed(Agreements(1, one.client, signed)) for one in clients]
    # What an honest server does with one story, this one does with shares of several.
    seeds = {who: {one.client: one.seeds[who] for one in shown if who in one.seeds} for who in range(CLIENTS)}
    keys = {who: {one.client: one.keys[who] for one in shown if who in one.keys} for who in GONE}
    total = sum((sent[one] for one in range(4)), np.zeros(COUNT, dtype=np.uint32))
    for one in range(4):
        total = total - stream(combined({place_of(k): s for k, s in list(seeds[one].items())[:T]}), COUNT)
    for one in GONE:
        assert len(keys[one]) >= T
        pair = KeyPair(combined({place_of(k): s for k, s in list(keys[one].items())[:T]}))
        for other in range(4):
            mask = stream(pair.agreed(collector.keys[other].masking, MASKS), COUNT)
            total = total - mask if other < one else total + mask
    return torch.from_numpy(total.astype("int64")) % MODULUS


def test_without_signatures_several_stories_give_a_sum_over_fewer_than_were_promised() -> None:
    four = torch.stack([_numbers(one) for one in range(4)]).sum(0) % MODULUS
    assert torch.equal(_sum_of_four([None] * CLIENTS), four)


def test_with_signatures_no_share_is_shown_where_stories_differ() -> None:
    with pytest.raises(TrainingError, match="clients have signed what it was told of who is left, and 6 are needed"):
        _sum_of_four(_trusts())


def test_a_client_signs_one_story_and_shows_nothing_without_signatures() -> None:
    trusts = _trusts()
    clients = [MaskingClient(one, 1, MASKED.cohort, _entropy(one), trusts[one]) for one in range(CLIENTS)]
    collector = MaskingServer(1, MASKED.cohort, 0)
    introductions = collector.introduce([one.keys() for one in clients])
    inboxes = collector.deliver([one.shares(introductions[one.client]) for one in clients])
    for one in clients:
        one.masks(inboxes[one.client], COUNT)
    left = Left(1, 0, dict.fromkeys(range(CLIENTS), True))
    with pytest.raises(MessageError, match="asked for shares without signatures"):
        clients[0].show(left)
    with pytest.raises(MessageError, match="before it signed"):
        clients[0].show_agreed(Agreements(1, 0, {}))
    clients[0].agree(left)
    with pytest.raises(MessageError, match="asked to sign who is left twice"):
        clients[0].agree(left)
    with pytest.raises(TrainingError, match="0 clients have signed"):
        clients[0].show_agreed(Agreements(1, 0, dict.fromkeys(range(CLIENTS), bytes(64))))


# --- whole rounds ---


def _own(trusts: list[Trust]) -> dict[int, OwnMasks]:
    return {one: OwnMasks(one, MASKED.cohort, trust=trusts[one]) for one in range(CLIENTS)}


def test_a_signed_round_gives_the_sum_and_who_signs_wrongly_drops_out() -> None:
    """Two drop out; one has keys with a wrong signature, and the round goes on without it."""
    own, exchange = _own(_trusts()), Exchange(MASKED.cohort, 1, 1)
    keys = [own[one].keys(1) for one in range(CLIENTS)]
    keys[9] = keys[9][:-1] + bytes([keys[9][-1] ^ 1])
    introductions = exchange.introduce(keys)
    assert sorted(introductions) == list(range(9))
    inboxes = exchange.deliver([own[one].shares(introductions[one]) for one in range(9)])
    total = MeanPartial({"whole": torch.zeros(COUNT)}, torch.empty(0), "uniform")
    total.words = torch.zeros(COUNT, dtype=torch.long)
    nothing = torch.zeros(1, 0, dtype=torch.long)
    for one in range(7):
        words = _numbers(one)[None]
        plain = Upload(torch.tensor([one]), torch.zeros(1), nothing, nothing.bool(), words=words)
        upload = own[one].put_on(plain, inboxes[one])
        exchange.take(upload)
        total.add(upload)
    asked = exchange.left()
    agreed = exchange.agreed([own[one].agree(asked[one]) for one in range(7)])
    exchange.lift(total, [own[one].show(agreed[one]) for one in range(7)])
    assert torch.equal(total.words, torch.stack([_numbers(one) for one in range(7)]).sum(0) % MODULUS)


def _values(privacy: str) -> dict[str, Tensor]:
    one: Federation = federation(FedMF(), small_world(), options=FederationOptions(privacy=privacy))
    one.round(1)
    return one.server.pack()


def test_signed_masks_change_no_number_of_a_simulation() -> None:
    plain, signed = (_values(f"masked:clip=1,masks={masks}") for masks in ("skipped", "signed"))
    assert all(torch.equal(value, plain[name]) for name, value in signed.items())


def _list_signers(homes: dict[str, Path], names: list[str]) -> str:
    """The same list for every place, with the keys of some of them."""
    listed = "# who\n" + "".join(f"{name} {Home(homes[name]).signer().public.hex()}\n" for name in names)
    for home in homes.values():
        (home / SIGNERS).write_text(listed)
    return listed


def test_places_that_know_each_others_keys_add_up_what_a_simulation_does(tmp_path: Path) -> None:
    agreed, homes = masked(SIGNED), write_homes(tmp_path, NAMES, 2)
    _list_signers(homes, list(homes))
    places = {name: Place(home) for name, home in homes.items()}
    coordinator = Coordinator(agreed, InProcess(places), tmp_path / "server", STEADY)
    coordinator.run(2)
    simulation = replayed(agreed, homes, tmp_path / "server")
    assert [len(simulation.log[number].clients) for number in (1, 2)] == [8, 8]
    assert simulation.terms.masked is not None
    step = 1 / simulation.terms.masked.coding(1, None).scale
    for name, value in simulation.server.shared.items():
        # Rounding is drawn from secrets: every client may differ by one step a round, and what follows.
        assert float((coordinator.server.shared[name] - value).abs().max()) < 100 * step, name


def test_a_place_that_others_do_not_know_is_left_out_by_the_servers_own_list(tmp_path: Path) -> None:
    """Without the server's list the other six users would seal nothing for it, and no round would go on."""
    agreed, homes, said = masked(SIGNED), write_homes(tmp_path, NAMES, 2), list[str]()
    listed = _list_signers(homes, [name for name in NAMES if name != "west"])
    (homes["west"] / SIGNERS).write_text(f"{listed}west {Home(homes['west']).signer().public.hex()}\n")
    (tmp_path / "server").mkdir()
    (tmp_path / "server" / SIGNERS).write_text(listed)
    places = {name: Place(home) for name, home in homes.items()}
    coordinator = Coordinator(agreed, InProcess(places), tmp_path / "server", STEADY, said.append)
    assert sorted(coordinator.round(1).counted) == ["east", "north", "south"]
    assert any("place west: answered wrongly: signs with a key that" in line for line in said)


def test_a_list_that_is_missing_wrong_or_without_the_places_own_key_is_one_line(tmp_path: Path) -> None:
    homes = write_homes(tmp_path, NAMES, 2)
    with pytest.raises(DataError, match=r"signers\.txt: cannot be read .*masks=signed needs it"):
        Home(homes["east"]).trust()
    _list_signers(homes, [name for name in NAMES if name != "west"])
    with pytest.raises(DataError, match="does not list this place's own key"):
        Home(homes["west"]).trust()
    (homes["east"] / SIGNERS).write_text("east zz\n")
    with pytest.raises(DataError, match="line 1: no key of 64 hexadecimal digits"):
        Home(homes["east"]).trust()


@pytest.mark.parametrize(
    ("offered", "enough"),
    [
        ("masked:clip=1,masks=signed", True),
        ("distributed:epsilon=8,masks=signed", True),
        ("masked:clip=1", False),
        ("distributed:epsilon=8", False),
    ],
)
def test_a_floor_of_signed_masks_refuses_a_server_that_leaves_signatures_out(offered: str, enough: bool) -> None:
    assert (Floor("masked:clip=2,masks=signed").refusal(offered) == "") == enough


def test_who_makes_a_deployment_hears_what_masks_alone_leave_open() -> None:
    plain, signed = (
        warning(
            federation(FedMF(), small_world(), options=FederationOptions(privacy=f"masked:clip=1,masks={masks}")).terms
        )
        for masks in ("real", "signed")
    )
    assert "a server that lies reads uploads in spite of masks: masks=signed refuses it" in plain
    assert "server that lies" not in signed
    assert "spoils masked sums" in signed
