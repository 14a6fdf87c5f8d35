"""What a run cost whose clients send sums: the same figures as `runs.cost`, where up and down are not the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from ownview.engine.clock import clock_on
from ownview.federation.cost import Cost, MeasuredCost
from ownview.federation.declared_cost import DeclaredCost
from ownview.federation.gathering import GatheringFederation
from ownview.seam.training import Params

_REPEATS = 3


@dataclass(frozen=True)
class GatheringCost(DeclaredCost):
    """Cost that follows from what a method that gathers declares; `shared` are the values clients download.

    Args:
        kept: values that never leave the server, by name; the sums are among them.
        first_upload: bytes a client sends in its first round, the mean over all clients.
    """

    kept: Mapping[str, int] | None = None
    first_upload: int = 0

    @property
    def server_values(self) -> int:
        """What clients download, and what stays."""
        return sum(self.shared.values()) + sum((self.kept or {}).values())

    @property
    def server_bytes_with_uploads(self) -> int:
        """Bytes of a server that stores every client's upload before it adds them up."""
        return self.server_bytes + self.num_clients * self.first_upload

    @property
    def bytes_down(self) -> int:
        """To one client in a round."""
        return sum(self.shared.values()) * self.bytes_per_value

    @property
    def bytes_up(self) -> int:
        """From one client in its first round, the mean over clients."""
        return self.first_upload


def gathering_cost(one: GatheringFederation, number: int, rounds: Sequence[Mapping[str, Any]]) -> Cost:
    """Measure a federation without changing it.

    Args:
        one: trained.
        number: of the round whose report is repeated.
        rounds: lines of rounds.jsonl.
    """
    client = int(one.split.train.lengths.numpy().argmax())
    kept = sum(value[client].numel() * value.element_size() for value in one.own.values())
    measured = MeasuredCost(
        client=str(one.split.data.users[client]),
        samples=int(one.split.train.lengths[client]) * (1 + one.method.negatives_each),
        client_bytes=kept + one.bytes_down,
        server_bytes=_bytes(one.server) + one.bytes_whole,
        client_seconds=_seconds_alone(one, client, number),
        server_seconds=sum(line["seconds"]["server"] for line in rounds) / len(rounds),
    )
    return Cost(declared_cost(one), measured, str(one.machine.device))


def declared_cost(one: GatheringFederation) -> GatheringCost:
    """Cost by what the method declares, on this data."""
    held = one.method.server(one.world)
    sums = {f"sum of {name}": prod(summand.shape) for name, summand in one.declared.items()}
    return GatheringCost(
        private={name: prod(value.shape) for name, value in one.method.own(one.world).items()},
        shared={name: prod(value.shape) for name, value in held.items() if value.down},
        num_clients=one.world.num_clients,
        bytes_per_value=one.machine.bytes_per_value,
        kept={name: prod(value.shape) for name, value in held.items() if not value.down} | sums,
        first_upload=one.first_upload(),
    )


def _seconds_alone(one: GatheringFederation, client: int, number: int) -> tuple[float, ...]:
    """Seconds of one client's report, and of settling where it does, as a device of its own would work it out."""
    seconds = []
    for _ in range(_REPEATS):
        clock = clock_on(one.machine.device)
        one.work_of(client, number)
        clock.lap("train")
        seconds.append(clock.seconds()["train"])
    return tuple(seconds)


def _bytes(values: Params) -> int:
    return sum(value.numel() * value.element_size() for value in values.values())
