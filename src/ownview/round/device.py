"""A client on a device of its own, with its values in a file of its own: it sees bytes, and sends bytes."""

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
        terms: what it has agreed on with the server.
        data: its own, of one client.
        file: where its values are; it begins anew where there is none.
    """

    def __init__(self, terms: Terms, data: OwnData, file: Path) -> None:
        self.terms, self.file = terms, file
        self.alone, self.received = Residents(terms, data), b""
        self.before = self.received, self.alone.pack()
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
        """What hides its uploads."""
        if self._masks is None:
            raise MessageError("asked about masks; none were agreed on")
        return self._masks

    def about_masks(self, step: MaskStep, number: int, message: bytes) -> bytes:
        """Where uploads are masked: a step of round `number`; that shares were shown is kept before they leave."""
        said = self.masks.answer(step, number, message)
        if step is MaskStep.SHOW:
            self._save()
        return said

    def round(self, number: int, message: bytes, inbox: bytes = b"") -> bytes:
        """Open the download of a round, work, keep what is one's own, and close with an upload; see `Residents`.

        Args:
            number: of the round.
            message: from the server.
            inbox: where uploads are masked, what everybody has sealed for the client.
        """
        self.before = self.received, self.alone.pack()
        self.received = message or self.received
        put_on = (lambda upload: self.masks.put_on(upload, inbox)) if inbox else None
        answer = self.alone.round(number, message, _ALONE, put_on=put_on)[0]
        self._save()
        return answer

    def undo(self) -> None:
        """The client was left out: what it did in the round ends as if it had not been done."""
        self.received, held = self.before
        self.alone.unpack(held)
        self._save()

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


def own_data(split: Split, excluded: Ragged, client: int) -> OwnData:
    """What one client of a split knows."""
    identity, users = torch.tensor([client]), np.array([client])
    train, never = Ragged.one(split.train.of(client)), Ragged.one(excluded.of(client))
    facts = OwnFacts.of(split).part(range(client, client + 1))
    return OwnData(identity, train, never, split.timeline.of(client), users, facts)
