"""Every client alone, in a process of its own, with its values in a file of its own: bytes go to and fro.

Slow next to a simulation in one process, and equal to it: it shows that a client can live alone and that the server
needs nothing but messages.
"""

from __future__ import annotations

import multiprocessing
import pickle
from collections.abc import Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from ownview.base.errors import OwnviewError, TrainingError
from ownview.base.files import write_whole
from ownview.data.ragged import Ragged
from ownview.data.splits import Split
from ownview.engine.machine import Machine
from ownview.federation.options import FederationOptions
from ownview.federation.residents import OwnData, Residents
from ownview.federation.server import AggregationServer
from ownview.federation.terms import Terms
from ownview.seam.client import Reporting
from ownview.seam.method import Federated
from ownview.seam.training import Params, World

_RECEIVED = "received"
_ALONE = torch.zeros(1, dtype=torch.long)
"""The position of the only client."""


class Device:
    """A client on a device of its own.

    Args:
        terms: what it has agreed on with the server.
        data: its own, of one client.
        file: where its values are; it begins anew where there is none.
    """

    def __init__(self, terms: Terms, data: OwnData, file: Path) -> None:
        self.terms, self.file = terms, file
        self.alone = Residents(terms, data)
        self.received: bytes = b""
        if file.exists():
            packed = load_file(file)
            self.received = packed.pop(_RECEIVED).numpy().tobytes()
            self.alone.unpack(packed)

    def round(self, number: int, message: bytes) -> bytes:
        """Open the download of a round, work, keep what is one's own, and close with an upload; see `Residents`."""
        self.received = message or self.received
        answer = self.alone.round(number, message, _ALONE)[0]
        self._save()
        return answer

    def receive(self, message: bytes, took_part: bool) -> None:
        """Take what the server has after a round; who took part works on it where the method has it so."""
        self.received = message
        if took_part:
            self.alone.settle(message, _ALONE)
        self._save()

    def scores(self) -> Tensor:
        """[m] of every item, by what was received last."""
        return self.alone.scores(self.received, _ALONE)[0]

    def values(self) -> Params:
        """What the client holds of its own, by name."""
        return self.alone.values(0)

    def _save(self) -> None:
        packed = {name: value.contiguous() for name, value in self.alone.clients.pack().items()}
        packed[_RECEIVED] = torch.from_numpy(np.frombuffer(self.received, dtype=np.uint8).copy())
        write_whole(self.file, lambda temporary: save_file(packed, temporary))


Agreed = tuple[Federated, World, FederationOptions, int, Machine]
"""What `Terms.of` makes terms of: every process makes its own."""


class ProcessFederation:
    """A method whose clients run in processes of their own; use it as a context.

    Args:
        agreed: method, world, options of the federation, seed and machine, which must be a CPU.
        split: the clients' data, of which each gets its own.
        excluded: every client's items that are never drawn as training negatives.
        folder: of the clients' files.
    """

    def __init__(self, agreed: Agreed, split: Split, excluded: Ragged, folder: Path) -> None:
        self.agreed = agreed
        self.terms = Terms.of(*self.agreed)
        self.server = AggregationServer(self.terms)
        self.own = [own_data(split, excluded, client) for client in range(split.num_users)]
        self.files = [folder / f"{client}.safetensors" for client in range(split.num_users)]
        self.processes: list[Process | Here] = []

    def __enter__(self) -> Self:
        kind = Process if can_travel(self.agreed[0]) else Here
        self.processes = [kind(self.agreed, own, file) for own, file in zip(self.own, self.files, strict=True)]
        return self

    def __exit__(self, *_: object) -> None:
        for process in self.processes:
            process.close()

    def restart(self) -> None:
        """End all processes and begin others, which know nothing but the files."""
        self.__exit__()
        self.__enter__()

    def round(self, number: int) -> tuple[list[int], list[int]]:
        """Run round `number` (from 1).

        Returns:
            bytes of each message to a client, and of each to the server, 0 where a client had nothing to say.
        """
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
        self.server.finish(number, total, cohort)
        if after:
            downloads = [self._download(number, client) for client in cohort]
            self._ask(cohort, "receive", [(download, True) for download in downloads])
        return list(map(len, downloads)), list(map(len, answers))

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
        self.found = getattr(self.device, what)(*arguments)

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
    identity, users = torch.tensor([client]), np.array([client])
    train, never = Ragged.one(split.train.of(client)), Ragged.one(excluded.of(client))
    return OwnData(identity, train, never, split.timeline.of(client), users)


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
            connection.send(getattr(device, what)(*arguments))
        except OwnviewError as error:
            connection.send(error)
        except Exception as error:
            connection.send(TrainingError(f"client {data.users[0]}: {type(error).__name__}: {error}"))
