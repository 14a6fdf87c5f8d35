"""What a federated run cost: what is declared, what is really held, and how long a round takes in the field.

In the field all clients train at once, so a round takes the slowest client's local training plus the server's part;
communication is left out. That is how the paper counts (Table 7) that `federation.declared_cost` names. It is not the
time this machine needed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from ownview.engine.clock import clock_on
from ownview.federation.aggregation import SumPartial
from ownview.federation.clients import Clients
from ownview.federation.declared_cost import DeclaredCost
from ownview.federation.messages import Download
from ownview.federation.round import Federation
from ownview.federation.soundness import names_moved
from ownview.seam.client import Reporting
from ownview.seam.roles import visible

_REPEATS = 3


@dataclass(frozen=True)
class MeasuredCost:
    """What was found on this machine.

    Args:
        client: id of the client with the most samples, the first among equals.
        samples: it trains on in a round.
        client_bytes: of the values it predicts with.
        server_bytes: of the shared values, what the server's optimiser keeps, and uploads it mixes.
        client_seconds: of its local training alone, once for each repetition; drawing its samples is left out.
        server_seconds: mean over rounds of the server's part: adding up the clients' changes and applying the mean.
    """

    client: str
    samples: int
    client_bytes: int
    server_bytes: int
    client_seconds: tuple[float, ...]
    server_seconds: float

    @property
    def round_seconds(self) -> float:
        """Slowest client at its best, plus the server."""
        return min(self.client_seconds) + self.server_seconds


@dataclass(frozen=True)
class Cost:
    """Declared and measured cost of a run."""

    declared: DeclaredCost
    measured: MeasuredCost
    device: str

    def to_dict(self) -> dict[str, Any]:
        """Everything, as plain values."""
        declared, measured = self.declared, self.measured
        return {
            "declared": {
                "bytes_per_value": declared.bytes_per_value,
                "private_values": dict(declared.private),
                "shared_values": dict(declared.shared),
                "client_values": declared.client_values,
                "client_bytes": declared.client_bytes,
                "server_values": declared.server_values,
                "server_bytes": declared.server_bytes,
                "server_bytes_with_uploads": declared.server_bytes_with_uploads,
                "bytes_down_per_client": declared.bytes_down,
                "bytes_up_per_client": declared.bytes_up,
            },
            "measured": {
                "client": measured.client,
                "samples": measured.samples,
                "client_bytes": measured.client_bytes,
                "server_bytes": measured.server_bytes,
                "device": self.device,
                "threads": torch.get_num_threads(),
                "seconds": {
                    "client": [round(value, 6) for value in measured.client_seconds],
                    "server": round(measured.server_seconds, 6),
                    "round": round(measured.round_seconds, 6),
                },
            },
        }

    def summary(self) -> dict[str, Any]:
        """What a result tells; seconds stand apart, because no two runs share them."""
        return {
            "client_bytes": self.measured.client_bytes,
            "server_bytes": self.measured.server_bytes,
            "server_bytes_with_uploads": self.declared.server_bytes_with_uploads,
            "bytes_down_per_client": self.declared.bytes_down,
            "bytes_up_per_client": self.declared.bytes_up,
            "seconds": {
                "slowest_client": round(min(self.measured.client_seconds), 6),
                "server": round(self.measured.server_seconds, 6),
                "round": round(self.measured.round_seconds, 6),
            },
        }


def cost_of(federation: Federation, number: int, rounds: Sequence[Mapping[str, Any]]) -> Cost:
    """Measure a federation without changing it.

    Args:
        federation: trained.
        number: of the round whose work is repeated.
        rounds: lines of rounds.jsonl.
    """
    client = int(federation.split.train.lengths.numpy().argmax())
    measured = MeasuredCost(
        client=str(federation.split.data.users[client]),
        samples=int(federation.split.train.lengths[client]) * (1 + federation.client.work.negatives),
        client_bytes=_client_bytes(federation, client),
        server_bytes=_server_bytes(federation),
        client_seconds=_seconds_alone(federation, client, number),
        server_seconds=sum(line["seconds"]["server"] for line in rounds) / len(rounds),
    )
    return Cost(declared_cost(federation), measured, str(federation.machine.device))


def declared_cost(federation: Federation) -> DeclaredCost:
    """Cost by what the method declares, on the federation's data."""
    client, world = federation.client, federation.world
    reports = isinstance(client.work, Reporting)
    moved = None if reports else names_moved(client)
    first = _first_upload(federation) if reports else None
    return DeclaredCost.of(client, world, federation.machine.bytes_per_value, moved, first)


def _first_upload(federation: Federation) -> int:
    """Bytes that a client which reports sends in its first round, the mean over all clients."""
    home, world = federation.work.home, federation.world
    everybody, timelines = home.clients.identities, home.clients.timelines
    new = Clients(home.client.params, world.num_items, everybody, home.seed, home.machine, home.train, timelines)
    work, sizes, first = federation.terms.work(replace(home, clients=new)), 0.0, _first_download(federation)
    for block in work.blocks(torch.arange(world.num_clients, device=home.machine.device)):
        upload = work.do(work.samples(1, block), first)
        sizes += float(federation.terms.sizes(upload).sum())
    return round(sizes / world.num_clients)


def _first_download(federation: Federation) -> Download:
    """What clients received before anything was learnt; nothing where they receive after the round."""
    work, machine = federation.client.work, federation.machine
    if isinstance(work, Reporting) and work.receives_after:
        return Download(1, {})
    given = {name: param for name, param in federation.client.params.items() if param.from_server}
    drawn = {name: param.drawn(name, federation.world.num_items, federation.seed) for name, param in given.items()}
    return Download(1, {name: value.to(machine.device, machine.dtype) for name, value in drawn.items()})


def _seconds_alone(federation: Federation, client: int, number: int) -> tuple[float, ...]:
    """Seconds of one client's work in a round, as a device of its own would do it; nothing is changed."""
    device = federation.machine.device
    place = torch.tensor([client], device=device)
    seconds = []
    for _ in range(_REPEATS):
        work = federation.work.rehearsal(place, number, federation.newest(place))
        clock = clock_on(device)
        work()
        clock.lap("train")
        seconds.append(clock.seconds()["train"])
    return tuple(seconds)


def _client_bytes(federation: Federation, client: int) -> int:
    """Of what it predicts with, its data left out."""
    place = torch.tensor([client], device=federation.machine.device)
    values, _ = federation.predicting(place, None)
    data = {n for n, param in visible(federation.client.params).items() if param.role.given}
    held = [value for name, value in values.items() if name not in data and not name.endswith(".outside")]
    return sum(value.numel() * value.element_size() for value in held)


def _server_bytes(federation: Federation) -> int:
    server = federation.server
    mixtures = [one.pack() for one in server.mixtures.values()]
    total = server.begin()
    sums = total.sums if isinstance(total, SumPartial) else {}
    held = [server.shared, server.held, server.reported, *server.optimizer.moments, *mixtures, sums]
    return sum(value.numel() * value.element_size() for part in held for value in part.values())
