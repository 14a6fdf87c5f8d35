"""Masks of a place's users: their half of a round's exchange.

Secrets of masks are in a place's memory alone. A place that is killed in mid-round has lost them: its users drop out of
the sum, and the others' shares take off what is left of their masks. A coordinator that is killed begins the round
again, with other keys; who has shown shares by then is out of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from ownview.base.errors import MessageError
from ownview.base.files import write_text
from ownview.deploy.envelopes.envelope import Envelope
from ownview.messages.upload import Upload
from ownview.privacy.masking.cohort import Cohort
from ownview.privacy.masking.exchange import MaskStep, OwnMasks, require_not_shown
from ownview.privacy.masking.messages import Left
from ownview.privacy.masking.signatures import Trust


class PlaceMasks:
    """The half of a place's users, for one attempt at a round after the other; the same message, the same answer.

    A place shows shares for one set of arrived clients in a round, and that it did is on its disk before they leave:
    after that it takes part in no other attempt at this round or an earlier one.

    Args:
        file: that the last round shares were shown for is kept in.
        trust: what the place signs with and whose signatures it believes, read when a round begins.
    """

    def __init__(self, file: Path, trust: Callable[[], Trust]) -> None:
        self.file, self.trust = file, trust
        self.shown = int(file.read_text(encoding="ascii")) if file.is_file() else 0
        self.clients: dict[int, OwnMasks] = {}
        self.answered: dict[str, list[bytes]] = {}

    def answer(
        self, asked: Envelope, identities: Sequence[int], digest: str, cohort: Cohort, *, signed: bool = False
    ) -> list[bytes]:
        """One of the steps, for each of these users."""
        if digest not in self.answered:
            if len(asked.parts) != len(identities):
                raise MessageError(f"{len(asked.parts)} messages about masks for {len(identities)} users")
            require_not_shown(asked.round, self.shown)
            pairs = list(zip(identities, asked.parts, strict=True))
            step = MaskStep[asked.kind.name]
            if step is MaskStep.KEYS:
                trust = self.trust() if signed else None
                self.clients, self.answered = {one: OwnMasks(one, cohort, trust=trust) for one in identities}, {}
            elif step is (MaskStep.AGREE if signed else MaskStep.SHOW):
                self._require_one_set(asked.round, asked.parts)
            found = [self._of(one).answer(step, asked.round, message) for one, message in pairs]
            if step is MaskStep.SHOW:
                write_text(self.file, str(asked.round), private=True)
                self.shown = asked.round
            self.answered[digest] = found
        return self.answered[digest]

    def _require_one_set(self, number: int, messages: Sequence[bytes]) -> None:
        """Refuse to show shares unless all users receive the same set of arrived clients."""
        sets = {frozenset(Left.unpack(left).arrived.items()) for left in messages}
        if len(sets) > 1:
            raise MessageError(f"round {number}: users of one place received {len(sets)} sets of arrived clients")

    def put_on(self, inboxes: Mapping[int, bytes]) -> Callable[[Upload], Upload]:
        """Puts masks on one user's upload."""

        def masked(upload: Upload) -> Upload:
            client = int(upload.clients[0])
            return self._of(client).put_on(upload, inboxes[client])

        return masked

    def _of(self, client: int) -> OwnMasks:
        if client not in self.clients:
            raise MessageError(f"client {client}: asked about masks before it had keys")
        return self.clients[client]
