"""Every client in a process of its own, with its values in a file of its own; only messages as bytes are exchanged.

Slow next to a simulation in one process, and equal to it: it shows that a client can live alone and that the server
needs nothing but messages.
"""

from __future__ import annotations

import multiprocessing
import pickle
from collections.abc import Mapping, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Self

import torch
from torch import Tensor

from ownview.base.errors import MessageError, OwnviewError, SettingError, TrainingError
from ownview.data.ragged import Ragged
from ownview.data.splitting.splits import Split
from ownview.engine.machine import Machine
from ownview.federation.options import FederationOptions
from ownview.federation.server import AggregationServer
from ownview.federation.terms import Terms
from ownview.privacy.masking.exchange import MaskStep
from ownview.round.conduct import Fleet, Round, RoundReport, UploadRule, Uploads, conduct, report
from ownview.round.device import Device, own_data
from ownview.round.residents import OwnData
from ownview.seam.method import Federated
from ownview.seam.training import Params, World

Agreed = tuple[Federated, World, FederationOptions, int, Machine]
"""What `Terms.of` makes terms of: every process makes its own."""

SILENT = "does not answer"
"""Why clients are left out whose process has ended."""


class ProcessFederation(Fleet):
    """A method whose clients run in processes of their own; use it as a context.

    Args:
        agreed: method, world, options of the federation, seed and machine, which must be a CPU.
        split: the clients' data, of which each gets its own.
        excluded: every client's items that are never drawn as training negatives.
        folder: of the clients' files.
        together: run all clients in this process, each with its own file and messages as bytes: no processes to start,
            but memory that they share by mistake goes unnoticed.
        rules: that look at uploads before they are added up.
    """

    def __init__(
        self,
        agreed: Agreed,
        split: Split,
        excluded: Ragged,
        folder: Path,
        *,
        together: bool = False,
        rules: Sequence[UploadRule] = (),
    ) -> None:
        self.agreed, self.together, self.rules = agreed, together, rules
        self.terms = Terms.of(*self.agreed)
        if self.terms.masked is not None and self.terms.masked.masks.signed:
            raise SettingError(
                f"federation setting privacy={self.terms.options.privacy!r}: processes of one client have no list of "
                "signers; expected a deployment, or no masks=signed"
            )
        self.server = AggregationServer(self.terms)
        self.own = [own_data(split, excluded, client) for client in range(split.num_users)]
        self.files = [folder / f"{client}.safetensors" for client in range(split.num_users)]
        self.processes: list[Process | SameProcess] = []

    def __enter__(self) -> Self:
        kind = Process if can_travel(self.agreed[0]) and not self.together else SameProcess
        self.processes = [kind(self.agreed, own, file) for own, file in zip(self.own, self.files, strict=True)]
        return self

    def __exit__(self, *_: object) -> None:
        for process in self.processes:
            process.close()

    def restart(self) -> None:
        """Restart all processes; only the files survive."""
        self.__exit__()
        self.__enter__()

    def round(self, number: int) -> RoundReport:
        """Run round `number` (from 1); the report counts the bytes that were exchanged."""
        return report(conduct(self.server, self, number, self.rules))

    def about_masks(self, going: Round, step: MaskStep, messages: Mapping[int, bytes]) -> Mapping[int, bytes]:
        """Send a step of the exchange of masks to clients; answers by client."""
        return self._ask("about_masks", {one: (step, going.number, data) for one, data in messages.items()})

    def ask(self, going: Round) -> Uploads:
        """Send every client its download; yield parsed uploads in the order of identities."""
        clients = going.counted.tolist()
        sent = {one: b"" if going.receives_after else self._download(going, one) for one in clients}
        inboxes = going.inboxes
        answers = self._ask("round", {one: (going.number, sent[one], inboxes.get(one, b"")) for one in clients})
        going.leave_out((one for one in clients if one not in answers), SILENT)
        for client, answer in answers.items():
            going.traffic.weighed(1, len(sent[client]), len(answer))
            try:
                upload = self.terms.codec.read_upload(answer, client) if answer else None
            except MessageError as error:
                going.leave_out([client], f"client {client}: answered wrongly: {error}")
                continue
            if upload is not None:
                yield upload

    def tell(self, going: Round) -> None:
        """Clients that were left out restore their values; the others receive, where a method sends after a round."""
        self._ask("undo", dict.fromkeys(going.left_out, (going.number,)))
        if going.receives_after:
            downloads = {int(one): self._newest(going.number, one) for one in going.counted}
            self._ask("receive", {one: (download, True) for one, download in downloads.items()})
            going.traffic.weighed(0, sum(map(len, downloads.values())), 0)

    def look(self, number: int) -> tuple[Tensor, list[Params]]:
        """Send all clients the newest download; then [n, m] their scores of all items, and their private values."""
        clients = torch.arange(self.terms.world.num_clients)
        self._ask("receive", {int(client): (self._newest(number, client), False) for client in clients})
        nothing: Mapping[int, tuple[()]] = dict.fromkeys(clients.tolist(), ())
        return torch.stack([*self._ask("scores", nothing).values()]), [*self._ask("values", nothing).values()]

    def _download(self, going: Round, client: int) -> bytes:
        return self.terms.codec.write_download(going.download(torch.tensor([client])), 0)

    def _newest(self, number: int, client: Tensor) -> bytes:
        return self.terms.codec.write_download(self.server.download(number, client[None]), 0)

    def _ask(self, what: str, given: Mapping[int, tuple[Any, ...]]) -> dict[int, Any]:
        """Answers by client; clients whose process has ended are left out."""
        asked = [client for client, arguments in given.items() if self.processes[client].send(what, arguments)]
        found = {client: self.processes[client].answer() for client in asked}
        return {client: answer for client, (there, answer) in found.items() if there}


class Process:
    """One client's process."""

    def __init__(self, agreed: Agreed, data: OwnData, file: Path) -> None:
        # One process loads everything and does nothing else; clients are forked from it.
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(["ownview.round.loaded_once"])
        self.connection, other = context.Pipe()
        self.process = context.Process(target=_live, args=(other, agreed, data, file), daemon=True)
        self.process.start()
        other.close()

    def close(self) -> None:
        """End the process."""
        self.connection.close()
        self.process.join(10)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()

    def send(self, what: str, arguments: tuple[Any, ...]) -> bool:
        """Send a request; False if the process has ended."""
        try:
            self.connection.send((what, arguments))
        except ConnectionError:
            return False
        return True

    def answer(self) -> tuple[bool, Any]:
        """(True, the answer), or (False, None) if the process has ended; raises what the client raised."""
        try:
            found = self.connection.recv()
        except (EOFError, ConnectionError):
            return False, None
        if isinstance(found, BaseException):
            raise found
        return True, found


class SameProcess:
    """A client in this process, for methods that another cannot import: it too has a file and sees only bytes."""

    def __init__(self, agreed: Agreed, data: OwnData, file: Path) -> None:
        self.device, self.found = Device(Terms.of(*agreed), data, file), None

    def close(self) -> None:
        """Drop the client; its file stays."""

    def send(self, what: str, arguments: tuple[Any, ...]) -> bool:
        """Handle a request at once."""
        self.found = getattr(self.device, what)(*arguments)
        return True

    def answer(self) -> tuple[bool, Any]:
        """(True, the answer to the last request)."""
        return True, self.found


def can_travel(method: object) -> bool:
    """Whether another process can import what a method is made of."""
    try:
        sent = pickle.dumps(method)
    except (AttributeError, TypeError, pickle.PicklingError):
        return False
    return b"__main__" not in sent and b"ownview_user_method" not in sent


def _live(connection: Connection, agreed: Agreed, data: OwnData, file: Path) -> None:
    """A client's process: answers requests until its pipe is closed."""
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
