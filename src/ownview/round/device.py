"""A client on a device of its own, with its values in a file of its own: it receives and sends bytes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from ownview.base.errors import MessageError
from ownview.base.files import write_whole
from ownview.data.ragged import Ragged
from ownview.data.splitting.splits import Split
from ownview.federation.facts import OwnFacts
from ownview.federation.terms import Terms
from ownview.privacy.masking.exchange import MaskStep, OwnMasks
from ownview.round.residents import OwnData, Residents
from ownview.seam.training import Params

_RECEIVED, _SHOWN = "received", "shown"
_ALONE = torch.zeros(1, dtype=torch.long)
"""The position of the only client."""


class Device:
    """A client on a device of its own.

    Args:
        terms: agreed on with the server.
        data: its own, of one client.
        file: of its values; without one it begins with initial values.
    """

    def __init__(self, terms: Terms, data: OwnData, file: Path) -> None:
        self.terms, self.file = terms, file
        self.alone, self.received = Residents(terms, data), b""
        self.before = 0, self.received, self.alone.pack()
        """The last round that it worked in, and what it had before."""
        shown = 0
        if file.exists():
            packed = load_file(file)
            self.received = packed.pop(_RECEIVED).numpy().tobytes()
            shown = int(packed.pop(_SHOWN))
            self.alone.unpack(packed)
        self._masks = None
        if terms.masked is not None:
            self._masks = OwnMasks(int(data.identities[0]), terms.masked.cohort, shown=shown)

    @property
    def masks(self) -> OwnMasks:
        """The client's half of the exchange of masks."""
        if self._masks is None:
            raise MessageError("asked about masks; none were agreed on")
        return self._masks

    def about_masks(self, step: MaskStep, number: int, message: bytes) -> bytes:
        """Answer a step of the exchange of masks; shares are marked as shown in the file before they are sent."""
        said = self.masks.answer(step, number, message)
        if step is MaskStep.SHOW:
            self._save()
        return said

    def round(self, number: int, message: bytes, inbox: bytes = b"") -> bytes:
        """One round: read the download, work, store private values, and write an upload; see `Residents`.

        Args:
            number: of the round.
            message: from the server.
            inbox: (masks) shares that the other clients have sealed for this one.
        """
        self.before = number, self.received, self.alone.pack()
        self.received = message or self.received
        put_on = (lambda upload: self.masks.put_on(upload, inbox)) if inbox else None
        answer = self.alone.round(number, message, _ALONE, put_on=put_on)[0]
        self._save()
        return answer

    def undo(self, number: int) -> None:
        """The client was left out of a round: restore its values of before it, if it has worked in it."""
        worked, received, held = self.before
        if worked == number:
            self.received = received
            self.alone.unpack(held)
            self._save()

    def receive(self, message: bytes, took_part: bool) -> None:
        """Store the newest download; a participant runs `after_round` on it where the method has it."""
        self.received = message
        if took_part:
            self.alone.settle(message, _ALONE)
        self._save()

    def scores(self) -> Tensor:
        """[m] scores of all items, with the latest download."""
        return self.alone.scores(self.received, _ALONE)[0]

    def values(self) -> Params:
        """The client's private values, by name."""
        return self.alone.values(0)

    def _save(self) -> None:
        packed = {name: value.contiguous() for name, value in self.alone.clients.pack().items()}
        packed[_SHOWN] = torch.tensor(0 if self._masks is None else self._masks.shown)
        packed[_RECEIVED] = torch.from_numpy(np.frombuffer(self.received, dtype=np.uint8).copy())
        write_whole(self.file, lambda temporary: save_file(packed, temporary))


def own_data(split: Split, excluded: Ragged, client: int) -> OwnData:
    """The data of one client of a split."""
    identity, users = torch.tensor([client]), np.array([client])
    train, never = Ragged.one(split.train.of(client)), Ragged.one(excluded.of(client))
    facts = OwnFacts.of(split).part(range(client, client + 1))
    return OwnData(identity, train, never, split.timeline.of(client), users, facts)
