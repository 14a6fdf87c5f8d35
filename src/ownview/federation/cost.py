"""What a federated run cost: what is declared, what is really held, and how long a round takes in the field.

In the field all clients train at once, so a round takes the slowest client's local training plus the server's part;
communication is left out. That is how PFedCLR's paper counts (Table 7). It is not the time this machine needed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from ownview.engine.clock import clock_on
from ownview.engine.loop import LoopEngine
from ownview.federation.declared_cost import DeclaredCost
from ownview.federation.round import Federation
from ownview.seam.training import Context

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
        number: of the round whose training is repeated.
        rounds: lines of rounds.jsonl.
    """
    params = federation.state.params
    client = int(federation.split.train.lengths.numpy().argmax())
    measured = MeasuredCost(
        client=str(federation.split.data.users[client]),
        samples=int(federation.split.train.lengths[client]) * (1 + federation.method.negatives),
        client_bytes=_client_bytes(federation, client),
        server_bytes=_server_bytes(federation),
        client_seconds=_seconds_alone(federation, client, number),
        server_seconds=sum(line["seconds"]["server"] for line in rounds) / len(rounds),
    )
    declared = DeclaredCost.of(params, federation.world, federation.machine.bytes_per_value, federation.uploaded)
    return Cost(declared, measured, str(federation.machine.device))


def _seconds_alone(federation: Federation, client: int, number: int) -> tuple[float, ...]:
    """Seconds of one client's training in a round, by the loop engine, as a device of its own would run it."""
    device = federation.machine.device
    samples = federation.samples(number, torch.tensor([client], device=device))
    engine = LoopEngine(federation.method, federation.world, federation.seed, device, federation.split.data)
    seconds = []
    for _ in range(_REPEATS):
        values = federation.state.receive(samples).values  # copies, so training them leaves the federation as it is
        clock = clock_on(device)
        engine.train(values, samples, Context(number), federation.state.row_names)
        clock.lap("train")
        seconds.append(clock.seconds()["train"])
    return tuple(seconds)


def _client_bytes(federation: Federation, client: int) -> int:
    place = torch.tensor([client], device=federation.machine.device)
    values, _ = federation.state.predicting(place, None)
    return sum(value.numel() * value.element_size() for name, value in values.items() if not name.endswith(".rest"))


def _server_bytes(federation: Federation) -> int:
    mixtures = [one.pack() for one in federation.state.mixtures.values()]
    held = [federation.state.shared, federation.state.reported, *federation.server.moments, *mixtures]
    return sum(value.numel() * value.element_size() for part in held for value in part.values())
