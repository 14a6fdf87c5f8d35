"""What masked sums cost: CPU time of one client and of the server, and bytes, for a whole table in one round.

python -m benchmarks.masked_sums --clients 100 --items 1682 --width 16 --dropouts 0.1
    --signed: with signed keys and the check of who is left (masks=signed)

All clients and the server run one after the other on one core and exchange messages as bytes; times are of the process
(`time.process_time`), the client's by step and as the mean over clients.
"""

from __future__ import annotations

import argparse
import json
import platform
import secrets
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch

from ownview.messages.upload import MODULUS
from ownview.privacy.masking.cohort import cohort
from ownview.privacy.masking.collector import MaskingServer
from ownview.privacy.masking.device import MaskingClient
from ownview.privacy.masking.fixed_point import FixedPoint
from ownview.privacy.masking.messages import Agreed, Agreements, Introduction, Keys, Left, SealedShares, Shares
from ownview.privacy.masking.primitives import SECRET, Words
from ownview.privacy.masking.signatures import Signer, Trust
from ownview.privacy.masks import Masks


class Costs:
    """CPU seconds by step, and bytes."""

    def __init__(self) -> None:
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self.up = 0

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Add what is done inside to a step."""
        begun = time.process_time()
        yield
        self.seconds[name] += time.process_time() - begun

    def sent(self, message: bytes) -> bytes:
        """Weigh a message to the server."""
        self.up += len(message)
        return message


def measured(
    clients: int, neighbours: int | None, numbers: int, dropouts: float, *, signed: bool = False
) -> dict[str, object]:
    """One round, checked against the plain sum."""
    costs, random = Costs(), np.random.default_rng(0)
    survivors = Masks().survivors(clients, "masked")
    agreed = cohort(clients, survivors, neighbours)
    coding = FixedPoint.fitting(1.0, clients)
    lost = set(random.permutation(clients)[: round(dropouts * clients)].tolist())
    server, plain = MaskingServer(1, agreed, secrets.randbits(63)), np.zeros(numbers, dtype=np.uint32)
    signers = [Signer(secrets.token_bytes(SECRET)) for _ in range(clients if signed else 0)]
    known = frozenset(one.public for one in signers)
    trusts: list[Trust | None] = [Trust(one, known) for one in signers] if signed else [None] * clients
    with costs.step("client: keys"):
        devices = [MaskingClient(who, 1, agreed, secrets.token_bytes, trust) for who, trust in enumerate(trusts)]
        keys = [costs.sent(device.keys().pack()) for device in devices]
    with costs.step("server: keys and shares"):
        introductions = {who: one.pack() for who, one in server.introduce([Keys.unpack(one) for one in keys]).items()}
    with costs.step("client: shares"):
        sealed = [
            costs.sent(devices[who].shares(Introduction.unpack(one)).pack()) for who, one in introductions.items()
        ]
    with costs.step("server: keys and shares"):
        boxes = server.deliver([SealedShares.unpack(one) for one in sealed])
        inboxes = {who: one.pack() for who, one in boxes.items()}
    total: Words = np.zeros(numbers, dtype=np.uint32)
    for who in (one for one in range(clients) if one not in lost):
        values = torch.from_numpy(random.standard_normal((1, numbers)))
        values /= values.norm()
        chance = torch.from_numpy(random.random((1, numbers)))
        with costs.step("client: fixed point"):
            words = (coding.steps(values, chance) % MODULUS)[0].numpy().astype(np.uint32)
        with costs.step("client: masks"):
            masked = words + devices[who].masks(SealedShares.unpack(inboxes[who]), numbers)
        costs.up += masked.nbytes
        with costs.step("server: adding up"):
            total += masked
            server.take(who)
        plain += words
    with costs.step("server: lifting masks"):
        asked = {who: one.pack() for who, one in server.left().items()}
    if signed:
        with costs.step("client: signing who is left"):
            signatures = [costs.sent(devices[who].agree(Left.unpack(one)).pack()) for who, one in asked.items()]
        with costs.step("server: lifting masks"):
            agreements = server.agreed([Agreed.unpack(one) for one in signatures])
            asked = {who: one.pack() for who, one in agreements.items()}
    with costs.step("client: showing shares"):
        shown = [
            costs.sent(
                (
                    devices[who].show_agreed(Agreements.unpack(one)) if signed else devices[who].show(Left.unpack(one))
                ).pack()
            )
            for who, one in asked.items()
        ]
    with costs.step("server: lifting masks"):
        total -= server.masks_left([Shares.unpack(one) for one in shown], numbers)
    if not np.array_equal(total, plain):
        raise SystemExit("the masked sum is not the sum")
    return _figures(costs, clients, agreed.neighbours, survivors, numbers, len(lost))


def _figures(costs: Costs, clients: int, neighbours: int, threshold: int, numbers: int, lost: int) -> dict[str, object]:
    early = ("client: keys", "client: shares")
    alone = {
        name: 1e3 * seconds / (clients if name in early else clients - lost)
        for name, seconds in costs.seconds.items()
        if name.startswith("client")
    }
    server = {name: seconds for name, seconds in costs.seconds.items() if name not in alone}
    steps = {name: round(value, 2) for name, value in {**alone, **server}.items()}
    return {
        "machine": platform.machine(), "clients": clients, "neighbours": neighbours, "threshold": threshold,
        "numbers": numbers, "dropped": lost, "exact": True, "client_ms": round(sum(alone.values()), 1),
        "server_s": round(sum(server.values()), 2), "bytes_up_a_client": round(costs.up / (clients - lost)),
        "bytes_plain": 4 * numbers, "steps": steps,
    }  # fmt: skip


def main() -> None:
    """Measure what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clients", type=int, default=100)
    parser.add_argument("--neighbours", type=int, help="default: as many as the cohort asks for")
    parser.add_argument("--items", type=int, default=1682)
    parser.add_argument("--width", type=int, default=16)
    parser.add_argument("--dropouts", type=float, nargs="+", default=[0.0, 0.1])
    parser.add_argument("--signed", action="store_true", help="masks=signed")
    given = parser.parse_args()
    torch.set_num_threads(1)
    for dropouts in given.dropouts:
        found = measured(given.clients, given.neighbours, given.items * given.width, dropouts, signed=given.signed)
        print(json.dumps({**found, "signed": given.signed}), flush=True)


if __name__ == "__main__":
    main()
