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

from ownview.base.errors import MessageError, OwnviewError, TrainingError
from ownview.base.files import write_whole
from ownview.data.ragged import Ragged
from ownview.data.splits import Split
from ownview.engine.machine import Machine
from ownview.federation.options import FederationOptions
from ownview.federation.residents import OwnData, Residents
from ownview.federation.server import AggregationServer
from ownview.federation.terms import Terms
from ownview.privacy.masking.exchange import Exchange, OwnMasks
from ownview.seam.client import Reporting
from ownview.seam.method import Federated
from ownview.seam.training import Params, World

_RECEIVED, _SHOWN = "received", "shown"
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
        self.alone, self.received = Residents(terms, data), b""
        shown = 0
        if file.exists():
            packed = load_file(file)
            self.received = packed.pop(_RECEIVED).numpy().tobytes()
            shown = int(packed.pop(_SHOWN, torch.tensor(0)))  # files of earlier versions say nothing of it
            self.alone.unpack(packed)
        self._masks = None
        if terms.masked is not None:
            self._masks = OwnMasks(int(data.identities[0]), terms.masked.cohort, shown=shown)

    @property
    def masks(self) -> OwnMasks:
        """What hides its uploads."""
        if self._masks is None:
            raise MessageError("asked about masks; none were agreed on")
        return self._masks

    def keys(self, number: int) -> bytes:
        """Where uploads are masked: the client's public keys of a round."""
        return self.masks.keys(number)

    def shares(self, told: bytes) -> bytes:
        """Shares of its secrets, sealed, for everybody in the round."""
        return self.masks.shares(told)

    def show(self, left: bytes) -> bytes:
        """Shares of everybody's secrets, which lift masks off the sum; that they were shown is kept before."""
        shown = self.masks.show(left)
        self._save()
        return shown

    def round(self, number: int, message: bytes, inbox: bytes = b"") -> bytes:
        """Open the download of a round, work, keep what is one's own, and close with an upload; see `Residents`.

        Args:
            number: of the round.
            message: from the server.
            inbox: where uploads are masked, what everybody has sealed for the client.
        """
        self.received = message or self.received
        put_on = (lambda upload: self.masks.put_on(upload, inbox)) if inbox else None
        answer = self.alone.round(number, message, _ALONE, put_on=put_on)[0]
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
        packed[_SHOWN] = torch.tensor(0 if self._masks is None else self._masks.shown)
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
        together: whether all clients live in this process, each with its file and nothing but bytes to and fro: no
            processes to start, and what they might share unseen is not found out.
    """

    def __init__(self, agreed: Agreed, split: Split, excluded: Ragged, folder: Path, *, together: bool = False) -> None:
        self.agreed, self.together = agreed, together
        self.terms = Terms.of(*self.agreed)
        self.server = AggregationServer(self.terms)
        self.own = [own_data(split, excluded, client) for client in range(split.num_users)]
        self.files = [folder / f"{client}.safetensors" for client in range(split.num_users)]
        self.processes: list[Process | Here] = []
        self.refused: list[str] = []
        """Whose upload was not counted in which round, and why."""

    def __enter__(self) -> Self:
        kind = Process if can_travel(self.agreed[0]) and not self.together else Here
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
            bytes of the messages to each client, and of those from it, what is said about masks among them; 0 where
            a client had nothing to say.
        """
        cohort = self.server.choose(number)
        total, codec, require = self.server.begin(number), self.terms.codec, self.server.bounds_of(number)
        work = self.terms.client.work
        after = isinstance(work, Reporting) and work.receives_after
        downloads = [b"" if after else self._download(number, client, for_training=True) for client in cohort]
        masked = self.terms.masked
        masks = Exchange(masked.cohort, number, self.terms.seed) if masked is not None and masked.masks.real else None
        inboxes = [b""] * len(cohort) if masks is None else self._share_masks(masks, cohort, number)
        answers = self._ask(cohort, "round", [(number, *given) for given in zip(downloads, inboxes, strict=True)])
        refused: list[int] = []
        for client, answer in zip(cohort.tolist(), answers, strict=True):
            if answer:
                upload = codec.read_upload(answer, client)
                try:
                    require(upload)
                except MessageError as error:
                    self.refused.append(f"round {number}: {error}")
                    refused.append(client)
                    continue
                total.add(upload)
                self.server.take(upload)
                if masks is not None:
                    masks.take(upload)
        if masks is not None:
            asked = masks.left()
            left = torch.tensor(list(asked))
            masks.lift(total, self._ask(left, "show", [(one,) for one in asked.values()]))
        self.server.finish(number, total, cohort[~torch.isin(cohort, torch.tensor(refused, dtype=torch.long))])
        if after:
            downloads = [self._download(number, client) for client in cohort]
            self._ask(cohort, "receive", [(download, True) for download in downloads])
        down, up = list(map(len, downloads)), list(map(len, answers))
        if masks is None:
            return down, up
        pairs = ((down, masks.down), (up, masks.up))
        more, again = ([b + said[c] for b, c in zip(each, cohort.tolist(), strict=True)] for each, said in pairs)
        return more, again

    def _share_masks(self, masks: Exchange, cohort: Tensor, number: int) -> list[bytes]:
        """The steps before a round's work: what every client of the cohort gets of the sealed shares."""
        told = masks.introduce(self._ask(cohort, "keys", [(number,)] * len(cohort)))
        shares = self._ask(cohort, "shares", [(told[client],) for client in cohort.tolist()])
        inboxes = masks.deliver(shares)
        return [inboxes[client] for client in cohort.tolist()]

    def look(self, number: int) -> tuple[Tensor, list[Params]]:
        """Send everybody the newest; then [n, m] their scores of all items, and what each holds of its own."""
        everybody = torch.arange(self.terms.world.num_clients)
        self._ask(everybody, "receive", [(self._download(number, client), False) for client in everybody])
        nothing: Sequence[tuple[()]] = [()] * len(everybody)
        return torch.stack(self._ask(everybody, "scores", nothing)), self._ask(everybody, "values", nothing)

    def _download(self, number: int, client: Tensor, *, for_training: bool = False) -> bytes:
        download = self.server.download(number, client[None], for_training=for_training)
        return self.terms.codec.write_download(download, 0)

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
