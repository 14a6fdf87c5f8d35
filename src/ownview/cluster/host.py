"""What lives in a worker: shards of one federation or several. It knows nothing of who carries its messages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from ownview.base.files import write_whole
from ownview.engine.clock import Clock
from ownview.engine.machine import Machine
from ownview.federation.options import FederationOptions
from ownview.federation.server import partial_sums
from ownview.federation.terms import Terms
from ownview.federation.timelines import Timelines
from ownview.federation.work import Work
from ownview.messages.download import Download
from ownview.messages.traffic import Traffic
from ownview.messages.upload import Upload
from ownview.privacy.entropy import NoiseKey
from ownview.round.local_fleet import worked
from ownview.round.residents import OwnData
from ownview.seam.method import Federated
from ownview.seam.roles import REPORTED
from ownview.seam.training import Params, World

Agreed = tuple[Federated, World, FederationOptions, int, Machine, NoiseKey]
"""What `Terms.of` makes terms of: every worker makes its own."""

Arrays = dict[str, npt.NDArray[Any]]
"""Values by name as they travel."""

_STEP = "step"


@dataclass(frozen=True, eq=False)
class Order:
    """What the clients of a shard receive in a round, besides what is the same for all.

    Args:
        round: from 1.
        clients: [C] positions in the shard of those that take part.
        moves: by the name of the reported value, what each of them has to add to its own, [C, ...].
        receives: [C] False for clients that get no table in this round; None where all get one.
    """

    round: int
    clients: npt.NDArray[np.int64]
    moves: Arrays
    receives: npt.NDArray[np.bool_] | None


@dataclass(frozen=True, eq=False)
class Answer:
    """A shard's report of a round, besides its partial sums.

    Args:
        loss: mean over the clients that took part; None where there is none.
        clients: how many took part.
        receiving: how many of them received tables.
        bytes_up: of all their messages.
        senders: [S] identities of those that sent something.
        samples: [S] of each.
        reported: by name, [S, ...] what each of them reported.
    """

    loss: float | None
    clients: int
    receiving: int
    bytes_up: float
    senders: npt.NDArray[np.int64]
    samples: npt.NDArray[np.int64]
    reported: Arrays


@dataclass
class _Register:
    """Notes of every upload what the server will want of single clients."""

    names: tuple[str, ...]
    senders: list[Tensor] = field(default_factory=list)
    samples: list[Tensor] = field(default_factory=list)
    reported: dict[str, list[Tensor]] = field(default_factory=dict)

    def take(self, upload: Upload) -> None:
        self.senders.append(upload.clients)
        self.samples.append(upload.samples)
        for name in self.names:
            self.reported.setdefault(name, []).append(upload.whole[name])


class Host:
    """Shards by the key of their federation, on one thread or one GPU."""

    def __init__(self) -> None:
        torch.set_num_threads(1)
        self.shards: dict[str, tuple[Terms, Work]] = {}

    def begin(self, key: str, agreed: Agreed, data: OwnData, file: Path) -> int:
        """Set a shard up, with what is in its file; returns the step that is from, 0 where there is none."""
        method, world, options, seed, machine, noise = agreed
        if machine.device.type == "cuda":
            machine = replace(machine, device=torch.device("cuda"))  # the one that this worker sees
        terms = Terms.of(method, world, options, seed, machine, noise)
        device = machine.device
        timelines = Timelines(data.timeline.to(device), world.num_items, machine.dtype)
        train, never = data.train.to(device), data.excluded.to(device)
        work = terms.work(data.identities, train, timelines, never, data.users, data.facts)
        self.shards[key] = terms, work
        if not file.exists():
            return 0
        packed = load_file(file)
        number = int(packed.pop(_STEP))
        work.home.clients.unpack(packed)
        return number

    def round(self, key: str, shared: Arrays, order: Order) -> tuple[Answer, Arrays]:
        """A round of a shard: what it reports, and its partial sums."""
        terms, work = self.shards[key]
        device = terms.machine.device
        values, cohort = as_tensors(shared, device), torch.from_numpy(np.array(order.clients)).to(device)
        first = Download(order.round, values)
        register = _Register(tuple(name for name, one in terms.client.params.items() if one.role is REPORTED))
        total, traffic = partial_sums(terms, values, order.round), Traffic(terms.codec, first)
        for _, uploads in worked(terms, work, first, cohort, _Sent(first, order, cohort), traffic, Clock()):
            for upload in uploads:
                total.add(upload)
                register.take(upload)
        empty = torch.zeros(0, dtype=torch.long)
        senders, samples = (_end_to_end(some, empty) for some in (register.senders, register.samples))
        reported = {name: _end_to_end(some, empty) for name, some in register.reported.items()}
        loss = work.loss(order.round)
        answer = Answer(loss, len(cohort), traffic.receiving, traffic.bytes_up, senders, samples, reported)
        return answer, as_arrays(total.pack())

    def after_round(self, key: str, shared: Arrays, order: Order) -> None:
        """Clients work on what the server has combined."""
        terms, work = self.shards[key]
        device = terms.machine.device
        cohort = torch.from_numpy(np.array(order.clients)).to(device)
        download = _Sent(Download(order.round, as_tensors(shared, device)), order, cohort)(cohort)
        work.after_round(download, cohort)

    def add(self, mine: Arrays, others: Arrays) -> Arrays:
        """Two partial sums as one."""
        return {name: value + others[name] for name, value in mine.items()}

    def pack(self, key: str) -> Arrays:
        """What the clients of a shard hold."""
        return as_arrays(self.shards[key][1].home.clients.pack())

    def unpack(self, key: str, shared: Arrays, held: Arrays) -> None:
        """Restore what `pack` returned; nothing is shared."""
        self.shards[key][1].home.clients.unpack(as_tensors(held, torch.device("cpu")))

    def save(self, key: str, number: int, file: Path) -> None:
        """Write what the clients of a shard hold after step `number`, whole or not at all."""
        held = {name: value.cpu().contiguous() for name, value in self.shards[key][1].home.clients.pack().items()}
        held[_STEP] = torch.tensor(number)
        write_whole(file, lambda temporary: save_file(held, temporary))

    def drop(self, key: str) -> None:
        """Forget a shard."""
        self.shards.pop(key, None)


class _Sent:
    """What the server sends to some clients of an order."""

    def __init__(self, first: Download, order: Order, cohort: Tensor) -> None:
        device = cohort.device
        self.first, self.moves = first, as_tensors(order.moves, device)
        self.receives = None if order.receives is None else torch.from_numpy(np.array(order.receives)).to(device)
        self.sorted, self.place = torch.sort(cohort)

    def __call__(self, clients: Tensor) -> Download:
        here = self.place[torch.searchsorted(self.sorted, clients)]
        moves = {name: value[here] for name, value in self.moves.items()}
        return replace(self.first, moves=moves, receives=None if self.receives is None else self.receives[here])


def as_arrays(values: Mapping[str, Tensor]) -> Arrays:
    """Tensors as NumPy arrays, for Ray."""
    return {name: value.detach().cpu().numpy() for name, value in values.items()}


def as_tensors(values: Mapping[str, npt.NDArray[Any]], device: torch.device) -> Params:
    """Copied: what arrives may lie in memory that all workers of a machine read, and must not be written to."""
    return {name: torch.from_numpy(np.array(value)).to(device) for name, value in values.items()}


def _end_to_end(some: list[Tensor], nothing: Tensor) -> npt.NDArray[Any]:
    return torch.cat(some or [nothing]).cpu().numpy()
