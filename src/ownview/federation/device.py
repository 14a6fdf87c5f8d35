"""One client alone: its data, its values in a file of its own, and messages as bytes. It knows of nobody else."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from ownview.base.files import write_whole
from ownview.data.ragged import Ragged
from ownview.federation.clients import Clients
from ownview.federation.messages import Download
from ownview.federation.scoring import ClientScorer
from ownview.federation.terms import Terms
from ownview.federation.timelines import Timelines
from ownview.seam.training import Params

_RECEIVED = "received"
_ALONE = torch.zeros(1, dtype=torch.long)
"""The position of the only client."""


@dataclass(frozen=True, eq=False)
class OwnData:
    """What one client knows of the world.

    Args:
        identity: its stable identity, which keys its randomness.
        train: [k] its training items, in source order.
        excluded: [e] items that are never drawn as training negatives, distinct and ascending.
        timeline: [k] its training items, oldest first.
        times: [k] their times; None where the data has none.
    """

    identity: int
    train: Tensor
    excluded: Tensor
    timeline: Tensor
    times: Tensor | None


class Device:
    """A client on a device of its own.

    Args:
        terms: what it has agreed on with the server.
        data: its own.
        file: where its values are; it begins anew where there is none.
    """

    def __init__(self, terms: Terms, data: OwnData, file: Path) -> None:
        self.terms, self.file = terms, file
        train, items = _list(data.train), terms.world.num_items
        times = None if data.times is None else _list(data.times)
        timelines = Timelines(_list(data.timeline), times, items, terms.machine.dtype)
        identity = torch.tensor([data.identity])
        self.clients = Clients(terms.client.params, items, identity, terms.seed, terms.machine, train, timelines)
        self.work = terms.work(self.clients, train, _list(data.excluded), np.array([data.identity]))
        self.received: bytes = b""
        if file.exists():
            packed = load_file(file)
            self.received = packed.pop(_RECEIVED).numpy().tobytes()
            self.clients.unpack(packed)

    def round(self, number: int, message: bytes) -> bytes:
        """Open the download of a round, work, keep what is one's own, and close with an upload.

        Args:
            number: of the round.
            message: from the server; empty for methods whose clients receive after the round.

        Returns:
            a message to the server; empty where the client has nothing to say.
        """
        download = self.terms.post.read_download(message) if message else self._nothing(number)
        if message:
            self.received = message
            self.clients.begin(download, _ALONE)
        upload = self.work.do(self.work.samples(number, _ALONE), download)
        self.work.loss(number)
        self._save()
        if not len(upload.clients):
            return b""
        return self.terms.post.write_upload(self.terms.sent(upload, number), number)

    def receive(self, message: bytes, *, took_part: bool) -> None:
        """Take what the server has after a round; who took part works on it where the method has it so."""
        self.received = message
        if took_part:
            self.work.after_round(self.terms.post.read_download(message), _ALONE)
        self._save()

    def scores(self) -> Tensor:
        """[m] of every item, by what was received last."""
        download = self.terms.post.read_download(self.received) if self.received else self._nothing(0)
        return ClientScorer(self.work, lambda clients, names: download).scores(_ALONE, None)[0]

    def values(self) -> Params:
        """What the client holds of its own, by name."""
        found = {name: value[0] for name, value in self.clients.own.items()}
        own = (name for name in self.clients.tables if self.terms.client.params[name].own)
        return found | {name: self.clients.whole(name, _ALONE)[0] for name in own}

    def _nothing(self, number: int) -> Download:
        """What a client has that has received nothing: the initial values, which follow from the seed."""
        params = self.terms.client.params
        return Download(number, {name: self.terms.drawn(name) for name in params if params[name].from_server})

    def _save(self) -> None:
        packed = {name: value.contiguous() for name, value in self.clients.pack().items()}
        packed[_RECEIVED] = torch.from_numpy(np.frombuffer(self.received, dtype=np.uint8).copy())
        write_whole(self.file, lambda temporary: save_file(packed, temporary))


def _list(values: Tensor) -> Ragged:
    """One client's list."""
    return Ragged(torch.tensor([0, len(values)]), values)
