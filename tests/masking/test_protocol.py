"""Masked sums by messages alone: exact whoever drops out when, and nothing is released below the threshold."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import pytest

from ownview.base.errors import MessageError, SettingError, TrainingError
from ownview.federation.masked_round import drawn_from_seed
from ownview.masking.collector import MaskingServer
from ownview.masking.device import MaskingClient
from ownview.masking.messages import Keys, Left, Neighbours, SealedShares, Shares
from ownview.masking.neighbours import FEWEST, Neighbourhood, drawn, neighbourhood, ring
from ownview.masking.primitives import Words, stream
from ownview.privacy.masks import Masks

COUNT = 50


@dataclass
class Rehearsal:
    """A round by messages as bytes; clients may be lost at every step."""

    clients: int
    reach: Neighbourhood
    survivors: int
    lost_before: Mapping[str, Collection[int]] = field(default_factory=dict)
    identities: Callable[[int], int] = lambda place: 3 * place + 1

    def there(self, step: str, someone: Collection[int]) -> list[int]:
        return [one for one in someone if one not in self.lost_before.get(step, ())]

    def __post_init__(self) -> None:
        random = np.random.default_rng(self.clients)
        self.server = MaskingServer(4, self.survivors, self.reach, seed=5)
        everybody = self.there("keys", [self.identities(place) for place in range(self.clients)])
        self.devices = {one: MaskingClient(one, 4, drawn_from_seed(0, 4, one)) for one in everybody}
        self.numbers = {one: random.integers(0, 2**32, COUNT, dtype=np.uint32) for one in everybody}
        self.masked: dict[int, Words] = {}

    def total(self) -> Words:
        """What the server has in the end."""
        told = self.server.introduce([Keys.unpack(one.keys().pack()) for one in self.devices.values()])
        sharing = self.there("shares", told)
        sent = [self.devices[one].shares(Neighbours.unpack(told[one].pack())).pack() for one in sharing]
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
    survivors = Masks().survivors(clients, "masked")
    chosen = np.random.default_rng(1).permutation(clients)[:lost]
    one = Rehearsal(clients, neighbourhood(clients, survivors, more.get("neighbours")), survivors)
    return replace(one, lost_before={step: {one.identities(int(place)) for place in chosen}})


@pytest.mark.parametrize("lost", [0, 10, 20])
def test_a_masked_sum_of_100_clients_is_the_sum_bit_for_bit(lost: int) -> None:
    one = _rehearsal(100, lost)
    assert np.array_equal(one.total(), one.plain())
    assert len(one.masked) == 100 - lost


@pytest.mark.slow
@pytest.mark.parametrize("lost", [0, 100, 200])
def test_a_masked_sum_of_1000_clients_is_the_sum_bit_for_bit(lost: int) -> None:
    one = _rehearsal(1000, lost)
    assert np.array_equal(one.total(), one.plain())
    assert one.reach.neighbours < 100


@pytest.mark.parametrize("step", ["keys", "shares", "numbers", "showing"])
def test_clients_may_drop_out_before_every_step(step: str) -> None:
    one = _rehearsal(20, 3, step, neighbours=12)
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


def test_a_neighbourhood_that_is_lost_stops_the_round() -> None:
    """Six of eight neighbours of one client are gone: enough are left in all, but none can lift its masks."""
    one = Rehearsal(30, Neighbourhood(8, 5), 20)
    around = ring([one.identities(place) for place in range(30)], 8, seed=5)
    lost = list(next(iter(around.values())))[:6]
    with pytest.raises(TrainingError, match="5 are needed to lift its masks; nothing is released"):
        replace(one, lost_before={"numbers": lost}).total()


def test_a_client_shows_a_seed_or_a_key_of_a_neighbour_and_only_once() -> None:
    one = _rehearsal(8, 1)
    one.total()
    gone = next(client for client in one.devices if client not in one.masked)
    device = MaskingClient(one.identities(0), 4, drawn_from_seed(0, 4, one.identities(0)))
    others = [MaskingClient(client, 4, drawn_from_seed(0, 4, client)) for client in (4, 7, 10)]
    told = Neighbours(4, 1, 2, tuple(other.keys() for other in others))
    device.shares(told)
    with pytest.raises(MessageError, match="asked twice for shares"):
        device.shares(told)
    boxes = {other.client: other.shares(Neighbours(4, other.client, 1, (device.keys(),))).boxes[1] for other in others}
    device.masks(SealedShares(4, 1, boxes), COUNT)
    shown = device.show(Left(4, 1, {4: True, 7: True, 10: False}))
    assert (set(shown.seeds), set(shown.keys)) == ({4, 7}, {10})
    with pytest.raises(MessageError, match="twice"):
        device.show(Left(4, 1, {4: False, 7: False, 10: False}))
    assert gone not in one.server.arrived


def test_a_client_shows_nothing_where_too_few_are_left_to_hide_among() -> None:
    one = _rehearsal(6)
    told = one.server.introduce([device.keys() for device in one.devices.values()])
    inboxes = one.server.deliver([one.devices[client].shares(told[client]) for client in told])
    first = one.devices[1]
    first.masks(inboxes[1], COUNT)
    with pytest.raises(TrainingError, match="1 neighbours are left and 4 are needed; no share is shown"):
        first.show(Left(4, 1, {other: other == 4 for other in inboxes[1].boxes}))


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
    told = one.server.introduce([device.keys() for device in one.devices.values()])
    inboxes = one.server.deliver([one.devices[client].shares(told[client]) for client in told])
    first = next(iter(inboxes.values()))
    boxes = {other: bytes([box[0] ^ 1]) + box[1:] for other, box in first.boxes.items()}
    with pytest.raises(MessageError, match="changed on its way"):
        one.devices[first.client].masks(replace(first, boxes=boxes), COUNT)
    with pytest.raises(MessageError, match="a message to client"):
        one.devices[first.client].masks(replace(first, client=first.client + 3), COUNT)
    for data in (b"", b"OM", told[first.client].pack()[:-1], first.pack() + b"x"):
        with pytest.raises(MessageError):
            Neighbours.unpack(data)


def test_messages_are_read_as_they_were_written() -> None:
    keys = Keys(2, 9, bytes(range(32)), bytes(range(32, 64)))
    for message in (
        keys, Neighbours(2, 5, 3, (keys, replace(keys, client=11))), SealedShares(2, 5, {9: bytes(82), 11: b"x" * 82}),
        Left(2, 5, {9: True, 11: False}), Shares(2, 5, {9: 2**256 + 1}, {11: 7}),
    ):  # fmt: skip
        assert type(message).unpack(message.pack()) == message


def test_streams_are_the_same_on_every_machine() -> None:
    """The keystream of ChaCha20 with an all-zero key and nonce (RFC 8439, appendix A.1, first test vector)."""
    assert stream(bytes(32), 4).tolist() == [0xADE0B876, 0x903DF1A0, 0xE56A5D40, 0x28BD8653]


def test_neighbours_are_mutual_and_enough() -> None:
    around = ring(range(100), 10, seed=3)
    assert all(len(set(others)) == 10 for others in around.values())
    assert all(one in around[other] for one, others in around.items() for other in others)
    assert ring(range(100), 10, seed=4) != around
    assert neighbourhood(20, 16) == Neighbourhood(19, 11)
    chosen = neighbourhood(1000, 800)
    assert chosen.neighbours < 60
    lost = 1000 * sum(drawn(999, 799, chosen.neighbours)[: chosen.threshold])
    learnt = 1000 * sum(drawn(999, 50, chosen.neighbours)[chosen.threshold :])
    assert (lost <= 2**-20, learnt <= 2**-40) == (True, True)
    assert sum(drawn(30, 12, 7)) == pytest.approx(1)
    assert drawn(5, 2, 2) == pytest.approx([0.3, 0.6, 0.1])


@pytest.mark.parametrize("wanted", [3, 20, 40])
def test_neighbours_that_cannot_be_are_refused(wanted: int) -> None:
    with pytest.raises(SettingError, match="expected an even number below 20"):
        neighbourhood(20, 16, wanted)
    with pytest.raises(SettingError, match="too few"):
        neighbourhood(FEWEST - 1, 2)
