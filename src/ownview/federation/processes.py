"""Every client in a process of its own, with its values in a file of its own: they exchange bytes with the server.

Slow next to a simulation in one process, and equal to it: it shows that a client can live alone and that the server
needs nothing but messages.
"""

from __future__ import annotations

import multiprocessing
import pickle
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Self

import torch
from torch import Tensor

from ownview.base.errors import OwnviewError, TrainingError
from ownview.data.ragged import Ragged
from ownview.data.splits import Split
from ownview.engine.machine import Machine
from ownview.federation.device import Device, OwnData
from ownview.federation.options import FederationOptions
from ownview.federation.server import AggregationServer
from ownview.federation.terms import Terms
from ownview.seam.client import Reporting
from ownview.seam.method import Federated
from ownview.seam.training import Params, World


@dataclass(frozen=True)
class Lengths:
    """Bytes of a round's messages.

    Args:
        down: of each message to a client.
        up: of each message to the server; 0 where a client had nothing to say.
    """

    down: tuple[int, ...]
    up: tuple[int, ...]


Agreed = tuple[Federated, World, FederationOptions, int, Machine]
"""What `Terms.of` makes terms of: every process makes its own."""


class ProcessFederation:
    """A method whose clients run in processes of their own; use it as a context.

    Args:
        method: written for one client.
        split: the clients' data, of which each gets its own.
        excluded: every client's items that are never drawn as training negatives.
        options: who takes part and how the server combines.
        seed: of the run.
        machine: precision and memory; the CPU.
        folder: of the clients' files.
    """

    def __init__(
        self,
        method: Federated,
        split: Split,
        excluded: Ragged,
        options: FederationOptions,
        seed: int,
        machine: Machine,
        folder: Path,
    ) -> None:
        self.agreed: Agreed = method, World(split.num_users, split.num_items), options, seed, machine
        self.terms = Terms.of(*self.agreed)
        self.server = AggregationServer(self.terms)
        self.own = [own_data(split, excluded, client) for client in range(split.num_users)]
        self.files = [folder / f"{client}.safetensors" for client in range(split.num_users)]
        self.processes: list[Process | Here] = []
        self.stack = ExitStack()

    def __enter__(self) -> Self:
        kind = Process if can_travel(self.agreed[0]) else Here
        self.processes = [kind(self.agreed, own, file) for own, file in zip(self.own, self.files, strict=True)]
        for process in self.processes:
            self.stack.callback(process.close)
        return self

    def __exit__(self, *_: object) -> None:
        self.stack.close()

    def restart(self) -> None:
        """End all processes and begin others, which know nothing but the files."""
        self.stack.close()
        self.__enter__()

    def round(self, number: int) -> Lengths:
        """Run round `number` (from 1)."""
        cohort = self.server.choose(number)
        total, post = self.server.begin(), self.terms.post
        work = self.terms.client.work
        after = isinstance(work, Reporting) and work.receives_after
        downloads = [b"" if after else self._download(number, client, for_training=True) for client in cohort]
        answers = self._ask(cohort, "round", [(number, download) for download in downloads])
        for client, answer in zip(cohort.tolist(), answers, strict=True):
            if answer:
                upload = post.read_upload(answer, client)
                total.add(upload)
                self.server.take(upload)
        if self.terms.transform is not None:
            self.terms.transform.on_server(total)
        self.server.finish(number, total, cohort)
        if after:
            downloads = [self._download(number, client) for client in cohort]
            self._ask(cohort, "receive", [(download, True) for download in downloads])
        return Lengths(tuple(map(len, downloads)), tuple(map(len, answers)))

    def look(self, number: int) -> tuple[Tensor, list[Params]]:
        """Send everybody the newest; then [n, m] their scores of all items, and what each holds of its own."""
        everybody = torch.arange(self.terms.world.num_clients)
        self._ask(everybody, "receive", [(self._download(number, client), False) for client in everybody])
        nothing: Sequence[tuple[()]] = [()] * len(everybody)
        return torch.stack(self._ask(everybody, "scores", nothing)), self._ask(everybody, "values", nothing)

    def _download(self, number: int, client: Tensor, *, for_training: bool = False) -> bytes:
        download = self.server.download(number, client[None], for_training=for_training)
        return self.terms.post.write_download(download, 0)

    def _ask(self, clients: Tensor, what: str, given: Sequence[tuple[Any, ...]]) -> list[Any]:
        for client, arguments in zip(clients.tolist(), given, strict=True):
            self.processes[client].send(what, arguments)
        return [self.processes[client].answer() for client in clients.tolist()]


class Process:
    """One client's process."""

    def __init__(self, agreed: Agreed, data: OwnData, file: Path) -> None:
        # One process loads everything and does nothing else; clients are forked from it.
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(["ownview.federation.loaded_once"])
        self.connection, other = context.Pipe()
        self.process = context.Process(target=_live, args=(other, agreed, data, file), daemon=True)
        self.process.start()
        other.close()

    def close(self) -> None:
        """End it."""
        self.connection.close()
        self.process.join(10)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()

    def send(self, what: str, arguments: tuple[Any, ...]) -> None:
        """Ask for something."""
        self.connection.send((what, arguments))

    def answer(self) -> Any:
        """What came of it; raises what was raised there."""
        found = self.connection.recv()
        if isinstance(found, BaseException):
            raise found
        return found


class Here:
    """One client in this process, for methods that were not written in a module: it has its file, and sees bytes."""

    def __init__(self, agreed: Agreed, data: OwnData, file: Path) -> None:
        self.device, self.found = Device(Terms.of(*agreed), data, file), None

    def close(self) -> None:
        """Nothing but the file is left."""

    def send(self, what: str, arguments: tuple[Any, ...]) -> None:
        """Do something."""
        self.found = _DOES[what](self.device, *arguments)

    def answer(self) -> Any:
        """What came of it."""
        return self.found


def can_travel(method: object) -> bool:
    """Whether another process can import what a method is made of."""
    try:
        sent = pickle.dumps(method)
    except (AttributeError, TypeError, pickle.PicklingError):
        return False
    return b"__main__" not in sent and b"ownview_user_method" not in sent


def own_data(split: Split, excluded: Ragged, client: int) -> OwnData:
    """What one client of a split knows."""
    line = split.timeline()
    times = None if line.times is None else line.times.of(client)
    return OwnData(client, split.train.of(client), excluded.of(client), line.items.of(client), times)


def _live(connection: Connection, agreed: Agreed, data: OwnData, file: Path) -> None:
    """A client's process: it does what it is asked for until nobody asks any more."""
    torch.set_num_threads(1)
    device: Device | None = None
    while True:
        try:
            what, arguments = connection.recv()
        except (EOFError, ConnectionError):
            return
        try:
            device = device or Device(Terms.of(*agreed), data, file)
            connection.send(_DOES[what](device, *arguments))
        except OwnviewError as error:
            connection.send(error)
        except Exception as error:
            connection.send(TrainingError(f"client {data.identity}: {type(error).__name__}: {error}"))


_DOES: dict[str, Callable[..., Any]] = {
    "round": Device.round,
    "receive": lambda device, message, took_part: device.receive(message, took_part=took_part),
    "scores": Device.scores,
    "values": Device.values,
}
