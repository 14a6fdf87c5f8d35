"""The client's half of a masked sum, for one round: keys, shares, masks, and shares of other clients shown at the end.

A client u adds to its numbers, modulo 2^32, a stream of its own seed b_u, and for every neighbour v a stream of what
the two agreed on, with opposite signs:

    y_u = x_u + S(b_u) + sum_{v: u < v} S(s_uv) - sum_{v: v < u} S(s_uv)

Everybody in the round holds a share of b_u and of the key that its s_uv follow from, and T shares give either back. In
the end each client shows, of a client whose numbers arrived, the share of b_u, and of one that dropped out the share of
the key; never both, and once, so that no masks but those of one sum over T clients can be lifted (Bonawitz et al.
2017).
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from ownview.base.errors import MessageError, TrainingError
from ownview.privacy.masking.cohort import Cohort
from ownview.privacy.masking.messages import (
    Agreed,
    Agreements,
    Introduction,
    Keys,
    Left,
    Sealed,
    SealedShares,
    Shares,
)
from ownview.privacy.masking.primitives import CHECK, SECRET, Entropy, KeyPair, Words, check, opened, sealed, stream
from ownview.privacy.masking.shamir import LAST_PLACE, SHARE, shares
from ownview.privacy.masking.signatures import Trust, signed_keys, signed_story, story

MASKS = b"ownview masks"
_SHARES = b"ownview shares"


class MaskingClient:
    """One client in one round; its steps come in order and once each.

    Args:
        client: its number, which everybody knows it by.
        number: of the round.
        cohort: sizes that were agreed on; later messages of the server are checked against them.
        entropy: of keys, seed and shares; `secrets.token_bytes` on a device.
        trust: its signing key and the public keys it accepts; None without signatures.
    """

    def __init__(self, client: int, number: int, cohort: Cohort, entropy: Entropy, trust: Trust | None = None) -> None:
        self.client, self.round, self.cohort, self._entropy, self.trust = client, number, cohort, entropy, trust
        self._sealing, self._masking = KeyPair(entropy(SECRET)), KeyPair(entropy(SECRET))
        self._seed = entropy(SECRET)
        self._participants: dict[int, Keys] = {}
        self._neighbours: frozenset[int] = frozenset()
        self._boxes: dict[int, bytes] = {}
        self._held: dict[int, tuple[bytes, bytes]] = {}
        self._shown = False
        self._left: Left | None = None

    def keys(self) -> Keys:
        """First step: the client's public keys, and a check of its seed."""
        known = seed_check(self.round, self.client, self._seed)
        plain = Keys(self.round, self.client, self._sealing.public, self._masking.public, known)
        if self.trust is None:
            return plain
        signer = self.trust.signer
        return replace(plain, signer=signer.public, signature=signer.keys(plain.content))

    def shares(self, introduction: Introduction) -> SealedShares:
        """Second step: shares of its secrets, one for everybody, itself included, which only that one can open."""
        self._require(introduction.round, introduction.client)
        if self._boxes:  # never reuse a (key, nonce) pair
            raise MessageError(f"client {self.client}: asked twice for shares of its secrets")
        self._participants = {one.client: one for one in introduction.keys}
        self._require_agreed(introduction)
        order = list(self._participants)
        self._neighbours = frozenset(self.cohort.of(self.client, order))
        places = [place_of(other) for other in order]
        of_seed, of_key = (
            shares(secret, places, self.cohort.survivors, self._entropy)
            for secret in (self._seed, self._masking.private)
        )
        boxes = {}
        for other, seed, key in zip(order, of_seed, of_key, strict=True):
            self._boxes[other] = self._sealing.agreed(self._participants[other].sealing, _SHARES)
            way, about = _addressed(self.round, self.client, other)
            checks = share_checks(self.round, self.client, other, seed, key)
            boxes[other] = Sealed(sealed(self._boxes[other], way, seed + key, about), *checks)
        return SealedShares(self.round, self.client, boxes)

    def masks(self, inbox: SealedShares, count: int) -> Words:
        """Third step: [count] all masks together, to be added to the client's numbers.

        Only neighbours that have sent shares count: the masks of all others could not be lifted.
        """
        self._require(inbox.round, inbox.client)
        if self._held or not self._boxes:
            raise MessageError(f"client {self.client}: shares came twice, or before it knew who takes part")
        if self.client not in inbox.boxes:
            raise MessageError(f"client {self.client}: its own shares are not among those that came")
        if len(inbox.boxes) < self.cohort.survivors:
            raise TrainingError(
                f"client {self.client}: {len(inbox.boxes)} clients have sent shares, and {self.cohort.survivors} are "
                "needed; nothing is sent"
            )
        total = stream(self._seed, count).copy()
        for other, one in inbox.boxes.items():
            self._held[other] = self._opened(other, one)
            if other in self._neighbours:
                mask = stream(self._masking.agreed(self._participants[other].masking, MASKS), count)
                (np.add if self.client < other else np.subtract)(total, mask, out=total)
        return total

    def agree(self, left: Left) -> Agreed:
        """(signed masks) Before the fourth step: the client signs who is left, once in a round."""
        self._require(left.round, left.client)
        if self.trust is None or self._left is not None:
            raise MessageError(f"client {self.client}: asked to sign who is left twice, or where nothing is signed")
        self._require_left(left)
        self._left = left
        return Agreed(self.round, self.client, self.trust.signer.story(self._story(left)))

    def show_agreed(self, agreements: Agreements) -> Shares:
        """(signed masks) Fourth step: shares that remove masks, if T of the clients left have signed the same story."""
        self._require(agreements.round, agreements.client)
        if self._left is None:
            raise MessageError(f"client {self.client}: asked for shares before it signed who is left")
        own_story = self._story(self._left)
        signed = [
            client
            for client, signature in agreements.signatures.items()
            if self._left.arrived.get(client) and signed_story(self._participants[client].signer, signature, own_story)
        ]
        if len(signed) < self.cohort.survivors:
            raise TrainingError(
                f"client {self.client}: {len(signed)} clients have signed what it was told of who is left, and "
                f"{self.cohort.survivors} are needed; no share is shown"
            )
        return self._show(self._left)

    def _story(self, left: Left) -> bytes:
        return story(self.round, [one.content + one.signer for one in self._participants.values()], left.arrived)

    def show(self, left: Left) -> Shares:
        """Fourth step: shares that remove masks; refused where too few clients are left."""
        self._require(left.round, left.client)
        if self.trust is not None:
            raise MessageError(f"client {self.client}: asked for shares without signatures of who is left")
        return self._show(left)

    def _show(self, left: Left) -> Shares:
        self._require_left(left)
        self._shown = True
        return Shares(self.round, self.client, self._of(left.arrived, 0), self._of(left.arrived, 1))

    def _require_left(self, left: Left) -> None:
        if self._shown or set(left.arrived) != set(self._held):
            raise MessageError(f"client {self.client}: asked for shares twice, or for others than it holds")
        there = {other for other, arrived in left.arrived.items() if arrived}
        if self.client not in there:
            raise MessageError(f"client {self.client}: asked for shares as one whose numbers have not arrived")
        why = self.cohort.refusal(list(self._participants), there)
        if why is not None:
            raise TrainingError(f"client {self.client}: {why}; no share is shown")

    def _of(self, arrived: Mapping[int, bool], kind: int) -> dict[int, bytes]:
        """Shares of seeds (0) of clients that are left, or of keys (1) of those that are not."""
        return {other: self._held[other][kind] for other, there in arrived.items() if there != bool(kind)}

    def _opened(self, other: int, one: Sealed) -> tuple[bytes, bytes]:
        """The shares that another client has sealed for this one, verified by their checksums."""
        if other not in self._boxes:
            raise MessageError(f"client {self.client}: shares of {other}, which does not take part")
        way, about = _addressed(self.round, other, self.client)
        try:
            content = opened(self._boxes[other], way, one.box, about)
        except MessageError as error:
            raise MessageError(f"client {self.client}: of client {other}: {error}") from error
        seed, key = content[:SHARE], content[SHARE:]
        if share_checks(self.round, other, self.client, seed, key) != (one.seed, one.key):
            raise MessageError(f"client {self.client}: client {other} has sealed other shares than it gave checks of")
        return seed, key

    def _require_agreed(self, introduction: Introduction) -> None:
        """Check the round's clients against the cohort: invented ones would leave fewer real ones in the sum."""
        here, agreed = len(self._participants), self.cohort
        if here < len(introduction.keys) or max(map(place_of, self._participants), default=0) > LAST_PLACE:
            raise MessageError(f"client {self.client}: an introduction that names a client twice, or one above 2^30")
        if self._participants.get(self.client) != self.keys():
            raise MessageError(f"client {self.client}: an introduction without its own keys")
        self._require_signed(introduction.keys)
        if not agreed.survivors <= here <= agreed.clients:
            raise TrainingError(
                f"client {self.client}: {here} clients take part; from {agreed.survivors} to {agreed.clients} were "
                "agreed on; nothing is sent"
            )

    def _require_signed(self, keys: Sequence[Keys]) -> None:
        if self.trust is None:
            return
        for one in keys:
            if one.signer not in self.trust.known:
                raise MessageError(
                    f"client {self.client}: keys of client {one.client} by a signer that is not known here"
                )
            if not signed_keys(one.signer, one.signature, one.content):
                raise MessageError(f"client {self.client}: keys of client {one.client} have a wrong signature")

    def _require(self, number: int, client: int) -> None:
        if (number, client) != (self.round, self.client):
            raise MessageError(
                f"a message to client {client} in round {number}; this is client {self.client} in round {self.round}"
            )


def place_of(client: int) -> int:
    """Where a client's shares evaluate the polynomial: from 1."""
    return client + 1


def seed_check(number: int, client: int, seed: bytes) -> bytes:
    """Digest by which a client's seed is verified later."""
    return check(seed, struct.pack("<2I", number, client))


def share_checks(number: int, dealer: int, holder: int, seed: bytes, key: bytes) -> tuple[bytes, bytes]:
    """Digests by which a holder's shares of a dealer's seed and key are verified later."""
    about = struct.pack("<3I", number, dealer, holder)
    return check(seed, about + b"s")[:CHECK], check(key, about + b"k")[:CHECK]


def _addressed(number: int, sender: int, receiver: int) -> tuple[int, bytes]:
    """Nonce and associated data of a message of a pair: one key seals one message in each direction."""
    return int(sender > receiver), struct.pack("<3I", number, sender, receiver)
