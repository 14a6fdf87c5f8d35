"""Clients of one machine that is not the server: bytes come in, bytes go out. A device is the same with one client."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from ownview.data.interactions import IdArray
from ownview.data.ragged import Ragged
from ownview.data.timeline import Timeline
from ownview.federation.facts import OwnFacts
from ownview.federation.scoring import ClientScorer
from ownview.federation.terms import Terms
from ownview.federation.timelines import Timelines
from ownview.messages.download import Download
from ownview.messages.upload import Upload
from ownview.privacy.entropy import NoiseKey
from ownview.privacy.whole_steps import BOUND
from ownview.seam.client import Reporting
from ownview.seam.training import Params


@dataclass(frozen=True, eq=False)
class OwnData:
    """What k clients know of the world.

    Args:
        identities: [k] stable, which key their randomness.
        train: their training items, in source order.
        excluded: items of each that are never drawn as training negatives, distinct and ascending.
        timeline: their training items, oldest first, and their times.
        users: [k] whose clients they are, for errors.
        facts: their ratings and facts about users; None for nothing.
    """

    identities: Tensor
    train: Ragged
    excluded: Ragged
    timeline: Timeline
    users: IdArray
    facts: OwnFacts | None = None


class Residents:
    """Clients with their data and their values.

    Args:
        terms: what they have agreed on with the server.
        data: their own.
    """

    def __init__(self, terms: Terms, data: OwnData) -> None:
        self.terms, self.data = terms, data
        timelines = Timelines(data.timeline, terms.world.num_items, terms.machine.dtype)
        self.work = terms.work(data.identities, data.train, timelines, data.excluded, data.users, data.facts)
        self.clients = self.work.home.clients

    def round(
        self,
        number: int,
        message: bytes,
        here: Tensor,
        noise: NoiseKey | None = None,
        put_on: Callable[[Upload], Upload] | None = None,
    ) -> list[bytes]:
        """One round: read the download, work, store private values, and write uploads.

        Args:
            number: of the round.
            message: from the server; empty for methods whose clients receive after the round.
            here: [B] positions of the clients that take part, ascending.
            noise: what noise is drawn from; None for the terms' own, as in a simulation.
            put_on: puts masks on one client's upload; None where none are.

        Returns:
            one message to the server a participant; empty where it has nothing to send.
        """
        download = opened(self.terms, message, number)
        if message:
            self.clients.begin(download, here)
        sent: dict[int, bytes] = {}
        for block in self.work.blocks(here[self.data.train.lengths[here] > 0]):
            upload = self.work.do(self.work.samples(number, block), download)
            for k, identity in enumerate(upload.clients.tolist()):
                leaving = self.terms.sent(upload.one(k), number, download.values.get(BOUND), noise)
                masked = leaving if put_on is None else put_on(leaving)
                sent[identity] = self.terms.codec.write_upload(masked, number)
        self.work.loss(number)
        return [sent.get(identity, b"") for identity in self.data.identities[here].tolist()]

    def settle(self, message: bytes, here: Tensor) -> None:
        """Participants run `after_round` on the server's new values, where the method has it."""
        self.work.after_round(opened(self.terms, message, 0), here)

    @property
    def settles(self) -> bool:
        """Whether the method has work after a round."""
        work = self.terms.client.work
        return isinstance(work, Reporting) and work.after_round is not None

    def scores(self, message: bytes, here: Tensor) -> Tensor:
        """[B, m] scores of all items for clients [B], with the latest download."""
        download = opened(self.terms, message, 0)
        return ClientScorer(self.work, lambda clients, names: download).scores(here, None)

    def values(self, place: int) -> Params:
        """Private values of one client, by name."""
        found = {name: value[place] for name, value in self.clients.own.items()}
        own = (name for name in self.clients.tables if self.terms.client.params[name].own)
        return found | {name: self.clients.whole(name, torch.tensor([place]))[0] for name in own}

    def pack(self) -> dict[str, Tensor]:
        """A copy of all that clients hold, by name."""
        return {name: value.clone() for name, value in self.clients.pack().items()}

    def unpack(self, packed: Mapping[str, Tensor]) -> None:
        """Restore what `pack` returned; clients that joined since then begin with initial values."""
        fresh = self.clients.pack()
        self.clients.unpack({name: _grown(name, packed, fresh) for name in fresh})


def opened(terms: Terms, message: bytes, number: int) -> Download:
    """The parsed download, or initial values before the first."""
    if message:
        return terms.codec.read_download(message)
    params = terms.client.params
    return Download(number, {name: terms.drawn(name) for name in params if params[name].from_server})


def _grown(name: str, packed: Mapping[str, Tensor], fresh: Mapping[str, Tensor]) -> Tensor:
    """One packed value, extended by the initial values of clients that joined since."""
    kind, _, part = name.rpartition(".")
    if name.startswith("own.") or part in ("counts", "base_of"):
        return torch.cat([packed[name], fresh[name][len(packed[name]) :]])
    numbers = packed.get(f"{kind}.numbers", torch.zeros(1))
    joined = len(packed[f"{kind}.base_of"]) < len(fresh[f"{kind}.base_of"])
    if joined and part in ("numbers", "bases") and 0 not in numbers.tolist():
        # Everybody who was there stood on a table of a later round; who came stands on the initial one.
        return torch.cat([fresh[name], packed[name]])
    return packed[name]
