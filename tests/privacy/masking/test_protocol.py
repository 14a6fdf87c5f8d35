"""Masked sums by messages alone: exact with any dropouts at any step, and nothing is released below the threshold."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import pytest

from ownview.base.errors import MessageError, SettingError, TrainingError
from ownview.privacy.masking.cohort import FEWEST, Cohort, cohort, ring
from ownview.privacy.masking.collector import MaskingServer
from ownview.privacy.masking.device import MaskingClient
from ownview.privacy.masking.exchange import drawn_from_seed
from ownview.privacy.masking.messages import Introduction, Keys, Left, Sealed, SealedShares, Shares
from ownview.privacy.masking.primitives import Words, stream
from ownview.privacy.masks import Masks

COUNT = 50


@dataclass
class Rehearsal:
    """A round by messages as bytes; clients may be lost at every step."""

    clients: int
    cohort: Cohort
    lost_before: Mapping[str, Collection[int]] = field(default_factory=dict)
    identities: Callable[[int], int] = lambda place: 3 * place + 1

    def there(self, step: str, clients: Collection[int]) -> list[int]:
        return [one for one in clients if one not in self.lost_before.get(step, ())]

    def __post_init__(self) -> None:
        random = np.random.default_rng(self.clients)
        self.server = MaskingServer(4, self.cohort, seed=5)
        clients = self.there("keys", [self.identities(place) for place in range(self.clients)])
        self.devices = {one: MaskingClient(one, 4, self.cohort, drawn_from_seed(0, 4, one)) for one in clients}
        self.numbers = {one: random.integers(0, 2**32, COUNT, dtype=np.uint32) for one in clients}
        self.masked: dict[int, Words] = {}

    def total(self) -> Words:
        """What the server has in the end."""
        introductions = self.server.introduce([Keys.unpack(one.keys().pack()) for one in self.devices.values()])
        sharing = self.there("shares", introductions)
        sent = [self.devices[one].shares(Introduction.unpack(introductions[one].pack())).pack() for one in sharing]
        inboxes = self.server.deliver([SealedShares.unpack(one) for one in sent])
        total = np.zeros(COUNT, dtype=np.uint32)
        for one in self.there("numbers", inboxes):
            masks = self.devices[one].masks(SealedShares.unpack(inboxes[one].pack()), COUNT)
            self.masked[one] = self.numbers[one] + masks
            self.server.take(one)
            total += self.masked[one]
        asked = self.server.left()
        shown = [self.devices[one].show(Left.unpack(asked[one].pack())).pack() for one in self.there("showing", asked)]
        return total - self.server.masks_left([Shares.unpack(one) for one in shown], COUNT)

    def plain(self) -> Words:
        """The same without any masks."""
        total: Words = np.sum([self.numbers[one] for one in self.masked], axis=0, dtype=np.uint32)
        return total


def _rehearsal(clients: int, lost: int = 0, step: str = "numbers", **more: int) -> Rehearsal:
    chosen = np.random.default_rng(1).permutation(clients)[:lost]
    agreed = cohort(clients, Masks().survivors(clients, "masked"))
    one = Rehearsal(clients, replace(agreed, **more))
    return replace(one, lost_before={step: {one.identities(int(place)) for place in chosen}})


@pytest.mark.parametrize(("clients", "lost"), [(20, 0), (20, 4), (70, 14)])
def test_a_masked_sum_is_the_sum_bit_for_bit(clients: int, lost: int) -> None:
    one = _rehearsal(clients, lost)
    assert np.array_equal(one.total(), one.plain())
    assert len(one.masked) == clients - lost


@pytest.mark.slow
def test_a_masked_sum_of_300_clients_is_the_sum_bit_for_bit() -> None:
    one = _rehearsal(300, 60)
    assert np.array_equal(one.total(), one.plain())
    assert one.cohort.neighbours < 60


@pytest.mark.parametrize("step", ["keys", "shares", "numbers", "showing"])
def test_clients_may_drop_out_before_every_step(step: str) -> None:
    one = _rehearsal(20, 3, step, neighbours=16)
    assert np.array_equal(one.total(), one.plain())
    assert len(one.masked) == (20 if step == "showing" else 17)


@pytest.mark.parametrize(
    ("step", "did"), [("keys", "sent keys"), ("shares", "sent shares"), ("numbers", "sent masked numbers"),
                      ("showing", "showed shares")]
)  # fmt: skip
def test_below_the_threshold_nothing_is_released(step: str, did: str) -> None:
    one = _rehearsal(20, 5, step)
    with pytest.raises(TrainingError, match=f"round 4: 15 clients {did}, and 16 are needed; nothing is released"):
        one.total()


def test_a_gap_on_the_ring_stops_the_round() -> None:
    """Four in a row are gone and masks reach over three: enough are left in all, but they might have fallen apart."""
    one = Rehearsal(30, Cohort(30, 20, 8))
    order = ring([one.identities(place) for place in range(30)], seed=5)
    with pytest.raises(TrainingError, match="4 clients in a row are missing, and masks reach over 3; nothing is rel"):
        replace(one, lost_before={"numbers": [order[-1], *order[:3]]}).total()
    three = replace(one, lost_before={"numbers": order[:3]})
    assert np.array_equal(three.total(), three.plain())


def _until_masks(one: Rehearsal) -> dict[int, SealedShares]:
    introductions = one.server.introduce([device.keys() for device in one.devices.values()])
    inboxes = one.server.deliver([one.devices[client].shares(introductions[client]) for client in introductions])
    for client, inbox in inboxes.items():
        one.devices[client].masks(inbox, COUNT)
    return inboxes


def test_a_client_shows_a_seed_or_a_key_of_everybody_and_only_once() -> None:
    one = _rehearsal(5)
    introductions = one.server.introduce([device.keys() for device in one.devices.values()])
    with pytest.raises(MessageError, match="asked twice for shares"):
        [one.devices[1].shares(introductions[1]) for _ in range(2)]
    again = _rehearsal(5)
    _until_masks(again)
    first = again.devices[1]
    shown = first.show(Left(4, 1, {1: True, 4: True, 7: True, 10: True, 13: False}))
    assert (set(shown.seeds), set(shown.keys)) == ({1, 4, 7, 10}, {13})
    with pytest.raises(MessageError, match="twice"):
        first.show(Left(4, 1, dict.fromkeys((1, 4, 7, 10, 13), True)))


def test_a_client_shows_nothing_where_too_few_are_left_to_hide_among() -> None:
    one = _rehearsal(6)
    inboxes = _until_masks(one)
    first = one.devices[1]
    with pytest.raises(TrainingError, match="client 1: 4 clients are left, and 5 are needed; no share is shown"):
        first.show(Left(4, 1, {other: other not in (4, 7) for other in inboxes[1].boxes}))
    with pytest.raises(MessageError, match="whose numbers have not arrived"):
        first.show(Left(4, 1, {other: other != 1 for other in inboxes[1].boxes}))


def test_a_client_takes_part_in_no_other_round_than_was_agreed_on() -> None:
    """Clients that a server makes up would stand for T of its own; fewer than T are too few; its own keys are known."""
    one = _rehearsal(6)
    made_up = [MaskingClient(100 + k, 4, one.cohort, drawn_from_seed(1, 4, k)).keys() for k in range(3)]
    honest = [device.keys() for device in one.devices.values()]
    for keys, found in (([*honest, *made_up], "9 clients take part; from 5 to 6"), (honest[:4], "4 clients take part")):
        with pytest.raises(TrainingError, match=f"client 1: {found}"):
            one.devices[1].shares(Introduction(4, 1, tuple(keys)))
    with pytest.raises(MessageError, match="without its own keys"):
        one.devices[1].shares(Introduction(4, 1, (*honest[1:], replace(honest[1], client=1))))
    with pytest.raises(MessageError, match="names a client twice"):
        one.devices[1].shares(Introduction(4, 1, (*honest[1:], honest[1])))


def test_the_server_holds_nothing_that_a_masked_number_could_be_read_by() -> None:
    """Before shares are shown: no numbers, no seeds, no private keys; and single uploads are as good as random."""
    one = _rehearsal(12)
    one.total()
    held = repr(vars(one.server)).encode() + b"".join(
        part for keys in one.server.keys.values() for part in (keys.sealing, keys.masking)
    )
    for device in one.devices.values():
        for secret in (device._seed, device._masking.private, device._sealing.private):
            assert secret not in held
            assert repr(secret).encode() not in held
    assert not any(isinstance(value, np.ndarray) for value in vars(one.server).values())
    together = np.concatenate([words - one.numbers[client] for client, words in one.masked.items()])
    assert len(np.unique(together)) > 0.99 * len(together)
    assert abs(np.unpackbits(together.view(np.uint8)).mean() - 0.5) < 0.02  # 19,200 bits: 0.0036 is one standard error


def test_what_was_changed_on_its_way_is_refused() -> None:
    one = _rehearsal(5)
    introductions = one.server.introduce([device.keys() for device in one.devices.values()])
    inboxes = one.server.deliver([one.devices[client].shares(introductions[client]) for client in introductions])
    first = next(iter(inboxes.values()))
    device = one.devices[first.client]
    boxes = {other: sent._replace(box=bytes([sent.box[0] ^ 1]) + sent.box[1:]) for other, sent in first.boxes.items()}
    with pytest.raises(MessageError, match=r"of client .*changed on its way"):
        device.masks(replace(first, boxes=boxes), COUNT)
    boxes = {other: sent._replace(seed=bytes(16)) for other, sent in first.boxes.items()}
    with pytest.raises(MessageError, match="has sealed other shares than it gave checks of"):
        device.masks(replace(first, boxes=boxes), COUNT)
    with pytest.raises(MessageError, match="a message to client"):
        device.masks(replace(first, client=first.client + 3), COUNT)
    for data in (b"", b"OM", introductions[first.client].pack()[:-1], first.pack() + b"x"):
        with pytest.raises(MessageError):
            Introduction.unpack(data)


def test_messages_are_read_as_they_were_written() -> None:
    keys = Keys(2, 9, bytes(range(32)), bytes(range(32, 64)), bytes(range(64, 96)))
    sealed = Sealed(b"x" * 88, b"y" * 16, b"z" * 16)
    for message in (
        keys, Introduction(2, 5, (keys, replace(keys, client=11))), SealedShares(2, 5, {9: sealed, 11: sealed}),
        Left(2, 5, {9: True, 11: False}), Shares(2, 5, {9: b"s" * 36}, {11: b"k" * 36}),
    ):  # fmt: skip
        assert type(message).unpack(message.pack()) == message


def test_streams_are_the_same_on_every_machine() -> None:
    """The keystream of ChaCha20 with an all-zero key and nonce (RFC 8439, appendix A.1, first test vector)."""
    assert stream(bytes(32), 4).tolist() == [0xADE0B876, 0x903DF1A0, 0xE56A5D40, 0x28BD8653]


def test_neighbours_are_mutual_and_enough() -> None:
    order, agreed = ring(range(100), seed=3), Cohort(100, 80, 10)
    around = {one: agreed.of(one, order) for one in order}
    assert all(len(set(others)) == 10 for others in around.values())
    assert all(one in around[other] for one, others in around.items() for other in others)
    assert ring(range(100), seed=4) != order
    assert cohort(20, 16) == Cohort(20, 16, 19)
    chosen = cohort(1000, 800)
    apart = [1000 * 0.25 ** (k / 2) for k in (chosen.neighbours - 2, chosen.neighbours)]
    assert apart[0] > 2**-40 >= apart[1]
    assert cohort(1000, 800, 60).neighbours == 60


@pytest.mark.parametrize("wanted", [2, 46, 49, 100])
def test_neighbours_that_hide_too_little_or_cannot_be_are_refused(wanted: int) -> None:
    with pytest.raises(SettingError, match=f"neighbours={wanted}: .* expected an even number from 48 to 98"):
        cohort(100, 80, wanted)
    with pytest.raises(SettingError, match="everybody shares masks with everybody; expected no neighbours"):
        cohort(20, 16, wanted)
    with pytest.raises(SettingError, match="too few"):
        cohort(FEWEST - 1, 2)
