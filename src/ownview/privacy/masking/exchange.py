"""The exchange of messages of a masked round: the server's half, and one client's."""

from __future__ import annotations

import hashlib
import secrets
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from enum import Enum
from typing import TypeVar

import torch

from ownview.base.errors import MessageError
from ownview.base.randomness import derive
from ownview.messages.sums import Partial
from ownview.messages.upload import MODULUS, Upload
from ownview.privacy.masking.cohort import Cohort
from ownview.privacy.masking.collector import MaskingServer
from ownview.privacy.masking.device import MaskingClient
from ownview.privacy.masking.messages import Agreed, Agreements, Introduction, Keys, Left, SealedShares, Shares
from ownview.privacy.masking.primitives import Entropy, usable
from ownview.privacy.masking.signatures import Trust, signed_keys

SHOWN = "shares were shown for round"
"""The words by which a coordinator knows that a place is out of a round for good."""

_Up = TypeVar("_Up", Keys, SealedShares, Agreed, Shares)


class MaskStep(Enum):
    """Steps of the exchange, in order; every answer names its client."""

    KEYS = Keys
    SHARES = SealedShares
    AGREE = Agreed
    """(signed masks)"""
    SHOW = Shares


class Exchange:
    """The server's half: bytes from clients in, bytes to clients out; its steps come in order.

    `up` and `down` count the bytes of every client's messages about masks.

    Args:
        cohort: sizes that were agreed on.
        number: of the round.
        seed: of the order in which clients stand on the ring.
    """

    def __init__(self, cohort: Cohort, number: int, seed: int) -> None:
        self.cohort = cohort
        self.server = MaskingServer(number, cohort, derive(seed, "ring", number))
        self.up: Counter[int] = Counter()
        self.down: Counter[int] = Counter()

    def introduce(self, keys: Iterable[bytes]) -> dict[int, bytes]:
        """Public keys -> for each client, the participants and their keys."""
        sound = [one for one in self._read(Keys, keys) if not unsound(one)]  # all others would refuse
        introductions = self.server.introduce(sound)
        return self._sent({client: one.pack() for client, one in introductions.items()})

    def deliver(self, shares: Iterable[bytes]) -> dict[int, bytes]:
        """Sealed shares by sender -> sealed shares by receiver."""
        inboxes = self.server.deliver(self._read(SealedShares, shares))
        return self._sent({client: one.pack() for client, one in inboxes.items()})

    def take(self, upload: Upload) -> None:
        """Note whose masked numbers have arrived."""
        for client in upload.clients.tolist():
            self.server.take(client)

    def left(self) -> dict[int, bytes]:
        """By client that is left: the request for shares."""
        return self._sent({client: one.pack() for client, one in self.server.left().items()})

    def agreed(self, signed: Iterable[bytes]) -> dict[int, bytes]:
        """(signed masks) Signatures of the set that is left -> the signatures that each client gets."""
        agreements = self.server.agreed(self._read(Agreed, signed))
        return self._sent({client: one.pack() for client, one in agreements.items()})

    def lift(self, total: Partial, shown: Iterable[bytes]) -> None:
        """Take the masks off the sum of all whole numbers."""
        found = self._read(Shares, shown)
        if total.words is None:
            raise TypeError("there is no sum of whole numbers to take masks off")
        masks = torch.from_numpy(self.server.masks_left(found, len(total.words)).astype("int64"))
        total.words.sub_(masks.to(total.words.device)).remainder_(MODULUS)

    def _read(self, kind: type[_Up], messages: Iterable[bytes]) -> list[_Up]:
        found = []
        for data in messages:
            one = kind.unpack(data)
            if one.round != self.server.round:
                raise MessageError(f"a message about masks of round {one.round}; this is round {self.server.round}")
            self.up[one.client] += len(data)
            found.append(one)
        return found

    def _sent(self, messages: dict[int, bytes]) -> dict[int, bytes]:
        self.down.update({client: len(data) for client, data in messages.items()})
        return messages


class OwnMasks:
    """One client's half, by messages alone: bytes from the server in, bytes to it out.

    A round may begin anew, with other keys, until the client has shown shares for it: masked numbers alone say nothing.
    After that neither this round nor an earlier one begins again. Two sums of the same numbers, one of them without a
    client, would reveal what that client sent.

    Args:
        client: its identity.
        cohort: what was agreed on.
        entropy: source of its secrets; its output must stay secret.
        shown: the last round that the client has shown shares for; it must be stored with the client.
        trust: its signing key and the public keys it accepts; None without signatures.
    """

    def __init__(
        self,
        client: int,
        cohort: Cohort,
        entropy: Entropy = secrets.token_bytes,
        shown: int = 0,
        trust: Trust | None = None,
    ) -> None:
        self.client, self.cohort, self.entropy, self.shown, self.trust = client, cohort, entropy, shown, trust
        self._masking: MaskingClient | None = None

    def answer(self, step: MaskStep, number: int, message: bytes) -> bytes:
        """The client's answer to a message of a step in round `number`."""
        if step is MaskStep.KEYS:
            return self.keys(number)
        answers = {MaskStep.SHARES: self.shares, MaskStep.AGREE: self.agree, MaskStep.SHOW: self.show}
        return answers[step](message)

    def keys(self, number: int) -> bytes:
        """Public keys of a round, which begins anew."""
        require_not_shown(number, self.shown)
        self._masking = MaskingClient(self.client, number, self.cohort, self.entropy, self.trust)
        return self._masking.keys().pack()

    def shares(self, message: bytes) -> bytes:
        """Shares of the client's secrets, sealed, for everybody in the round."""
        return self._begun().shares(Introduction.unpack(message)).pack()

    def put_on(self, upload: Upload, inbox: bytes) -> Upload:
        """The client's upload, masked; `inbox` has the shares that the other clients sealed for it."""
        if upload.words is None:
            raise TypeError("only whole numbers can be masked")
        masks = self._begun().masks(SealedShares.unpack(inbox), upload.words.shape[1])
        words = upload.words + torch.from_numpy(masks.astype("int64")).to(upload.words.device)
        return replace(upload, words=words.remainder_(MODULUS))

    def agree(self, left: bytes) -> bytes:
        """(signed masks) The client's signature of who is left."""
        return self._begun().agree(Left.unpack(left)).pack()

    def show(self, message: bytes) -> bytes:
        """Shares of all clients' secrets, which remove the masks from the sum; then the round's secrets are deleted.

        Args:
            message: which clients are left; with signed masks, the signatures of that.
        """
        masking = self._begun()
        if masking.trust is None:
            shown = masking.show(Left.unpack(message)).pack()
        else:
            shown = masking.show_agreed(Agreements.unpack(message)).pack()
        self.shown, self._masking = masking.round, None
        return shown

    def _begun(self) -> MaskingClient:
        if self._masking is None:
            raise MessageError(f"client {self.client}: asked about masks before it had keys, or after the round")
        return self._masking


def unsound(keys: Keys) -> str:
    """Why no client could go on with these keys of another; empty where it can."""
    if not (usable(keys.sealing) and usable(keys.masking)):
        return "has public keys that nobody can agree on anything with"
    if keys.signer and not signed_keys(keys.signer, keys.signature, keys.content):
        return "signs its keys wrongly"
    return ""


def require_not_shown(number: int, shown: int) -> None:
    """Refuse to begin a round again that shares were shown for, or an earlier one."""
    if number <= shown:
        raise MessageError(f"round {number}: {SHOWN} {shown}, and no sum of it is made again")


def drawn_from_seed(seed: int, number: int, client: int) -> Entropy:
    """Bytes for a simulated client, not secret: they follow from the seed."""
    drawn = 0

    def entropy(count: int) -> bytes:
        nonlocal drawn
        drawn += 1
        return hashlib.shake_256(f"{seed} {number} {client} {drawn}".encode()).digest(count)

    return entropy
