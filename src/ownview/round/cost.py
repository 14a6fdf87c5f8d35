"""What a federated run cost: what is declared, what is really held, and how long a round takes in the field.

Space as in Tables 4 and 6 of "Beyond Personalization: Federated Recommendation with Calibration via Low-rank
Decomposition", whose MB are 2^20 bytes. In the field all clients train at once, so a round takes the slowest client's
local training plus the server's part; communication is left out. That is how the same paper counts (Table 7). It is
not the time this machine needed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from math import prod
from typing import Any, NamedTuple

import torch

from ownview.engine.clock import clock_on
from ownview.federation.checks.soundness import names_moved
from ownview.messages.download import Download
from ownview.round.federation import Federation
from ownview.seam.client import Client, Reporting
from ownview.seam.roles import HELD, visible
from ownview.seam.training import World

_REPEATS = 3

_WEIGHED = 2048
"""Clients, spread evenly, whose first upload is made to be weighed: that of many would be the work of a pass."""


class Cost(NamedTuple):
    """Cost of a run as plain values: see `declared_cost` and `_measured`."""

    declared: dict[str, Any]
    measured: dict[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """Everything."""
        return self._asdict()

    def summary(self) -> dict[str, Any]:
        """The part for result.json, without seconds, which differ between runs."""
        seconds = self.measured["seconds"]
        travels = ("server_bytes_with_uploads", "bytes_down_per_client", "bytes_up_per_client")
        return {
            **{name: self.measured[name] for name in ("client_bytes", "server_bytes")},
            **{name: self.declared[name] for name in travels},
            "seconds": {"slowest_client": min(seconds["client"]), **{n: seconds[n] for n in ("server", "round")}},
        }


def cost_of(federation: Federation, number: int, rounds: Sequence[Mapping[str, Any]]) -> Cost:
    """Measure a federation without changing it.

    Args:
        federation: trained.
        number: of the round whose work is repeated.
        rounds: lines of rounds.jsonl.
    """
    return Cost(declared_by(federation, _weighed(federation, rounds)), _measured(federation, number, rounds))


def declared_by(federation: Federation, first_upload: int | None = None) -> dict[str, Any]:
    """Cost by what the method declares, for the federation's world; `first_upload` is measured where it is None."""
    client, world, width = federation.client, federation.world, federation.machine.bytes_per_value
    if isinstance(client.work, Reporting):
        weighed = _first_upload(federation) if first_upload is None else first_upload
        return declared_cost(client, world, width, first_upload=weighed)
    return declared_cost(client, world, width, names_moved(client))


def declared_cost(
    client: Client,
    world: World,
    bytes_per_value: int = 4,
    moved: Collection[str] | None = None,
    first_upload: int | None = None,
) -> dict[str, Any]:
    """Cost by the declared parameters alone; clients' data is not counted.

    Args:
        client: the method's.
        world: number of clients and items.
        bytes_per_value: 4 for float32.
        moved: names of the values that training moves, which alone travel back; None for all.
        first_upload: bytes that a client which reports sends in its first round, the mean over clients.

    Returns:
        private_values: by parameter, what stays with a client, tables received beside its own included.
        shared_values: by parameter, what a client receives.
        client_values: private values and one copy of the received ones: a client that keeps a table trains the copy.
        server_values: one copy of what clients receive, and what is held back, sums over clients included.
        server_bytes_with_uploads: of a server that stores every client's upload beside that, which the paper counts.
        bytes_down_per_client: in a round: all received values, and means beside mixtures; zeros count.
        bytes_up_per_client: in a round: whole values, or the first upload.
    """
    params = {name: param for name, param in client.params.items() if not param.role.given}
    values = {name: prod(param.whole_shape(world.num_items)) for name, param in params.items()}
    private = {n: values[n] for n, param in params.items() if not (param.from_server or param.role is HELD)}
    private |= {table: values[name] for name, param in params.items() for table in param.tables_beside}
    shared = {n: values[n] for n, param in params.items() if param.from_server}
    sums = client.work.sends.values() if isinstance(client.work, Reporting) else ()
    held = sum(values[n] for n, param in params.items() if param.role is HELD) + sum(prod(one.shape) for one in sums)
    sent = sum(values[n] for n, param in params.items() if param.sends and (moved is None or n in moved))
    means = sum(values[n] for n, param in params.items() if param.everybodys_mean)
    received = sum(shared.values())
    at_client, at_server = sum(private.values()) + received, received + held
    up = sent * bytes_per_value if first_upload is None else first_upload
    return {
        "bytes_per_value": bytes_per_value,
        "private_values": private,
        "shared_values": shared,
        "client_values": at_client,
        "client_bytes": at_client * bytes_per_value,
        "server_values": at_server,
        "server_bytes": at_server * bytes_per_value,
        "server_bytes_with_uploads": at_server * bytes_per_value + world.num_clients * up,
        "bytes_down_per_client": (received + means) * bytes_per_value,
        "bytes_up_per_client": up,
    }


def _measured(federation: Federation, number: int, rounds: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Cost measured on this machine.

    Returns:
        client: id of the client with the most samples, the first among equals.
        samples: it trains on in a round.
        client_bytes: of the values it predicts with.
        server_bytes: of the shared values, what the server's optimiser keeps, and uploads it mixes.
        seconds: `client`, of its local training alone, once for each repetition, drawing its samples left out;
            `server`, the mean over rounds of adding up the clients' changes and applying the mean; `round`, the client
            at its best, plus the server.
    """
    busiest = int(federation.split.train.lengths.numpy().argmax())
    alone = _seconds_alone(federation, busiest, number)
    server = sum(line["seconds"]["server"] for line in rounds) / len(rounds)
    return {
        "client": str(federation.split.data.users[busiest]),
        "samples": int(federation.split.train.lengths[busiest]) * (1 + federation.client.work.negatives),
        "client_bytes": _client_bytes(federation, busiest),
        "server_bytes": _server_bytes(federation),
        "device": str(federation.machine.device),
        "threads": torch.get_num_threads(),
        "seconds": {
            "client": [round(value, 6) for value in alone],
            "server": round(server, 6),
            "round": round(min(alone) + server, 6),
        },
    }


def _weighed(federation: Federation, rounds: Sequence[Mapping[str, Any]]) -> int | None:
    """The first upload's bytes, if round 1 has measured them with all clients taking part; else None."""
    first = rounds[0]
    all_clients = (first.get("round"), first.get("clients")) == (1, federation.world.num_clients)
    return int(first["bytes_up_per_client"]) if all_clients and federation.terms.masked is None else None


def _first_upload(federation: Federation) -> int:
    """Bytes that a client which reports sends in its first round, the mean over all clients or `_WEIGHED` of them."""
    home, world, clients = federation.work.home, federation.world, federation.clients.identities
    work = federation.terms.work(
        clients, home.train, home.clients.timelines, home.excluded, home.users, home.clients.facts
    )
    sizes, first = 0.0, _first_download(federation)
    some = torch.linspace(0, world.num_clients - 1, min(world.num_clients, _WEIGHED), dtype=torch.float64).long()
    for block in work.blocks(some.to(home.machine.device)):
        upload = work.do(work.samples(1, block), first)
        sizes += float(federation.terms.sizes(upload).sum())
    return round(sizes / len(some))


def _first_download(federation: Federation) -> Download:
    """Initial values as a download; empty where clients receive after the round."""
    work, params = federation.client.work, federation.client.params
    if isinstance(work, Reporting) and work.receives_after:
        return Download(1, {})
    return Download(1, {name: federation.terms.drawn(name) for name in params if params[name].from_server})


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
    """Bytes that a client predicts with, its data left out."""
    place = torch.tensor([client], device=federation.machine.device)
    values, _ = federation.predicting(place, None)
    data = {n for n, param in visible(federation.client.params).items() if param.role.given}
    held = [value for name, value in values.items() if name not in data and not name.endswith(".outside")]
    return sum(value.numel() * value.element_size() for value in held)


def _server_bytes(federation: Federation) -> int:
    server = federation.server
    mixtures = [one.pack() for one in server.mixtures.values()]
    held = [server.shared, server.held, server.reported, *server.optimizer.moments, *mixtures]
    standing = sum(value.numel() * value.element_size() for part in held for value in part.values())
    work = federation.client.work
    sums = sum(prod(one.shape) for one in work.sends.values()) if isinstance(work, Reporting) else 0
    return standing + sums * federation.machine.bytes_per_value
