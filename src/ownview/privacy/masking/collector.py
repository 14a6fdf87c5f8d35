"""The server's half of a masked sum, for one round: it relays messages, and learns the sum and nothing else.

It follows the protocol. What it holds is public keys, sealed boxes until they are delivered, checks, who sent what, and
in the end the seeds of clients whose numbers arrived and the keys of those whose did not. It adds masked numbers up as
they come (`messages.sums`) and takes off `masks_left` when shares have come.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from ownview.base.errors import MessageError, TrainingError
from ownview.privacy.masking.cohort import Cohort, ring
from ownview.privacy.masking.device import MASKS, place_of, seed_check, share_checks
from ownview.privacy.masking.messages import (
    Agreed,
    Agreements,
    Introduction,
    Keys,
    Left,
    SealedShares,
    Shares,
)
from ownview.privacy.masking.primitives import KeyPair, Words, stream
from ownview.privacy.masking.shamir import combined


class MaskingServer:
    """The server in one round; its steps come in order, each with what has arrived by then.

    `masks_left` fills `wrong`: by client, the dealers whose shares it has shown in another form than they were dealt.

    Args:
        number: of the round.
        cohort: sizes that were agreed on; with fewer clients than T at any step nothing is released.
        seed: of the order in which clients stand on the ring.
    """

    def __init__(self, number: int, cohort: Cohort, seed: int) -> None:
        self.round, self.cohort, self.seed = number, cohort, seed
        self.keys: dict[int, Keys] = {}
        self.order: list[int] = []
        self.checks: dict[int, dict[int, tuple[bytes, bytes]]] = {}
        self.arrived: set[int] = set()
        self.wrong: dict[int, set[int]] = {}

    def introduce(self, keys: Sequence[Keys]) -> dict[int, Introduction]:
        """Public keys of all clients -> for each, the participants and their keys."""
        self._require_enough(len(keys), "sent keys")
        self.keys = {one.client: one for one in keys}
        self.order = ring(list(self.keys), self.seed)
        ordered = tuple(self.keys[client] for client in self.order)
        return {client: Introduction(self.round, client, ordered) for client in self.order}

    def deliver(self, sent: Sequence[SealedShares]) -> dict[int, SealedShares]:
        """Sealed shares by sender -> sealed shares by receiver, its own included.

        Who sends shares for others than those who take part has sent none: it must not end the round of all.
        """
        boxes = {one.client: one.boxes for one in sent if one.boxes.keys() == self.keys.keys()}
        self._require_enough(len(boxes), "sent shares")
        self.checks = {client: {who: (one.seed, one.key) for who, one in own.items()} for client, own in boxes.items()}
        return {
            client: SealedShares(self.round, client, {other: own[client] for other, own in boxes.items()})
            for client in boxes
        }

    def take(self, client: int) -> None:
        """Note that a client's masked numbers have arrived; they are added up elsewhere."""
        if client not in self.checks or client in self.arrived:
            raise MessageError(f"client {client}: masked numbers came twice, or without shares")
        self.arrived.add(client)

    def left(self) -> dict[int, Left]:
        """The request for shares to every client whose numbers have arrived."""
        self._require_enough(len(self.arrived), "sent masked numbers")
        why = self.cohort.refusal(self.order, self.arrived)
        if why is not None:
            raise TrainingError(f"round {self.round}: {why}; nothing is released")
        there = {client: client in self.arrived for client in self.checks}
        return {client: Left(self.round, client, there) for client in sorted(self.arrived)}

    def agreed(self, signed: Sequence[Agreed]) -> dict[int, Agreements]:
        """(signed masks) Signatures of the set that is left -> the signatures that each client gets."""
        self._require_enough(len({one.client for one in signed} & self.arrived), "signed who is left")
        signatures = {one.client: one.signature for one in signed if one.client in self.arrived}
        return {client: Agreements(self.round, client, signatures) for client in signatures}

    def masks_left(self, shown: Sequence[Shares], count: int) -> Words:
        """[count] the masks left in the sum of all masked numbers, to be subtracted."""
        self._require_enough(len({one.client for one in shown} & self.arrived), "showed shares")
        total = np.zeros(count, dtype=np.uint32)
        for client in sorted(self.arrived):
            seed = self._secret(client, 0, {one.client: one.seeds for one in shown}, self._is_seed)
            total += stream(seed, count)
        for client in sorted(self.checks.keys() - self.arrived):
            key = KeyPair(self._secret(client, 1, {one.client: one.keys for one in shown}, self._is_key))
            for other in (one for one in self.cohort.of(client, self.order) if one in self.arrived):
                mask = stream(key.agreed(self.keys[other].masking, MASKS), count)
                # It stands in the sum with the sign that the other gave it.
                (np.add if other < client else np.subtract)(total, mask, out=total)
        return total

    def _secret(
        self, client: int, kind: int, shown: Mapping[int, Mapping[int, bytes]], fits: Callable[[int, bytes], bool]
    ) -> bytes:
        """A client's seed (kind 0) or key (1), from the first T shares; if it does not fit, from T that were dealt."""
        found = {other: one[client] for other, one in shown.items() if other in self.arrived and client in one}
        secret = self._from(found)
        if secret is not None and fits(client, secret):
            return secret
        wrong = {other for other, share in found.items() if not self._is_dealt(client, other, kind, share)}
        for other in wrong:
            self.wrong.setdefault(other, set()).add(client)
        secret = self._from({other: share for other, share in found.items() if other not in wrong})
        if secret is None:
            blamed = f"; wrong ones came from clients {', '.join(map(str, sorted(wrong)))}" if wrong else ""
            raise TrainingError(
                f"round {self.round}: {len(found) - len(wrong)} shares of client {client}, and "
                f"{self.cohort.survivors} are needed{blamed}; nothing is released"
            )
        if not fits(client, secret):
            raise TrainingError(
                f"round {self.round}: client {client} has dealt shares that are not of its "
                f"{('seed', 'key')[kind]}; nothing is released"
            )
        return secret

    def _from(self, found: Mapping[int, bytes]) -> bytes | None:
        """The secret that the first T shares give; None if there are fewer."""
        if len(found) < self.cohort.survivors:
            return None
        try:
            return combined({place_of(who): found[who] for who in list(found)[: self.cohort.survivors]})
        except MessageError:
            return b""  # no client's secret

    def _is_dealt(self, dealer: int, holder: int, kind: int, share: bytes) -> bool:
        known = self.checks[dealer][holder][kind]
        return share_checks(self.round, dealer, holder, share, share)[kind] == known

    def _is_seed(self, client: int, secret: bytes) -> bool:
        return seed_check(self.round, client, secret) == self.keys[client].seed

    def _is_key(self, client: int, secret: bytes) -> bool:
        return bool(secret) and KeyPair(secret).public == self.keys[client].masking

    def _require_enough(self, found: int, did: str) -> None:
        if found < self.cohort.survivors:
            raise TrainingError(
                f"round {self.round}: {found} clients {did}, and {self.cohort.survivors} are needed; nothing is "
                "released"
            )
