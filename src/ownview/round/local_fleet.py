"""Clients in this process, a vectorised block at a time: the fast way, also for a worker's shard."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import pairwise

import torch
from torch import Tensor

from ownview.engine.clock import Clock
from ownview.federation.reporting import reporting
from ownview.federation.tables.packing import joined, parted
from ownview.federation.terms import Terms
from ownview.federation.work import Work
from ownview.messages.download import Download
from ownview.messages.sums import require_declared
from ownview.messages.traffic import Traffic
from ownview.messages.upload import Upload
from ownview.privacy.masking.exchange import MaskStep, OwnMasks, drawn_from_seed
from ownview.privacy.masking.primitives import SECRET
from ownview.privacy.masking.signatures import Signer, Trust
from ownview.privacy.whole_steps import BOUND
from ownview.round.conduct import LATE, Fleet, Round, Uploads
from ownview.seam.client import Reporting


class LocalFleet(Fleet):
    """All clients of a federation, trusted; a client's position is its identity.

    Args:
        terms: what they have agreed on with the server.
        work: of the clients.
    """

    inspects = True

    def __init__(self, terms: Terms, work: Work) -> None:
        self.terms, self._work = terms, work
        self.masks: dict[int, OwnMasks] = {}
        self.before: Mapping[str, Tensor] = {}

    @property
    def work(self) -> Work:
        """The work of all clients, on their current values."""
        return self._work

    def about_masks(self, going: Round, step: MaskStep, messages: Mapping[int, bytes]) -> Mapping[int, bytes]:
        """Answer for every client, whose secrets follow from the seed, so that runs repeat."""
        if step is MaskStep.KEYS:
            seed, number, agreed = self.terms.seed, going.number, going.masks
            assert agreed is not None
            drawn = {one: drawn_from_seed(seed, number, one) for one in messages}
            trusts: dict[int, Trust] = {}
            if self.terms.masked is not None and self.terms.masked.masks.signed:
                signers = {one: Signer(entropy(SECRET)) for one, entropy in drawn.items()}
                known = frozenset(one.public for one in signers.values())
                trusts = {one: Trust(signer, known) for one, signer in signers.items()}
            self.masks = {
                one: OwnMasks(one, agreed.cohort, entropy, trust=trusts.get(one)) for one, entropy in drawn.items()
            }
        return {one: self.masks[one].answer(step, going.number, data) for one, data in messages.items()}

    def ask(self, going: Round) -> Uploads:
        """Yield uploads block by block."""
        cohort, put_on = going.counted, self._put_on(going) if going.inboxes else None
        if going.rules or (going.masks is not None and not going.masks.single):  # which may leave clients out
            self.before = {name: value.clone() for name, value in self.work.home.clients.pack().items()}
        asked = worked(self.terms, self.work, going.first, cohort, going.download, going.traffic, going.clock, put_on)
        answered = [cohort[:0]]
        try:
            for block, uploads in asked:
                for upload in uploads:
                    answered.append(upload.clients)
                    yield upload
                answered.append(block)  # also those that had nothing to send
        except GeneratorExit:
            going.leave_out(cohort[~torch.isin(cohort, torch.cat(answered))].tolist(), LATE)
            going.loss = self.work.loss(going.number)
            raise
        going.loss = self.work.loss(going.number)

    def _put_on(self, going: Round) -> Callable[[Upload], Upload]:
        """The function that masks uploads; None without masks."""

        def masked(upload: Upload) -> Upload:
            each = [
                self.masks[client].put_on(upload.one(place), going.inboxes[client])
                for place, client in enumerate(upload.clients.tolist())
            ]
            return replace(upload, words=torch.cat([one.words for one in each if one.words is not None]))

        return masked

    def tell(self, going: Round) -> None:
        """Clients that were left out restore their values; the others receive, where a method sends after a round."""
        if self.before and going.left_out:
            clients = self.work.home.clients
            clients.unpack(_exchanged(clients.pack(), self.before, going.left_out, len(clients.identities)))
        self.before = {}
        counted = going.counted
        if going.receives_after and len(counted):
            going.traffic.download = going.server.download(going.number, counted)
            self.receive(going.traffic.download, counted)

    def pack(self) -> dict[str, Tensor]:
        """State for a checkpoint besides server and clients: empty, because all clients answer at once."""
        return {}

    def unpack(self, packed: Mapping[str, Tensor]) -> None:
        """Restore what `pack` returned."""

    def receive(self, download: Download, clients: Tensor) -> None:
        """Clients work on what the server has after a round."""
        self.work.after_round(download, clients)


def worked(
    terms: Terms,
    work: Work,
    first: Download,
    cohort: Tensor,
    download_for: Callable[[Tensor], Download],
    traffic: Traffic,
    clock: Clock,
    put_on: Callable[[Upload], Upload] | None = None,
) -> Iterator[tuple[Tensor, Iterator[Upload]]]:
    """One round of B clients at a time: download, work, store, upload. Yields positions [B] and their uploads.

    Args:
        terms: what they have agreed on with the server.
        work: of the clients.
        first: the download that is the same for all, of the round.
        cohort: [C] positions of the clients that take part.
        download_for: positions -> the download of these clients.
        traffic: weighs messages.
        clock: records seconds by part.
        put_on: masks uploads; None without masks.
    """
    declared = reporting(terms.client).sends if isinstance(terms.client.work, Reporting) else None

    def leaving(upload: Upload, download: Download) -> Iterator[Upload]:
        if declared is not None:
            require_declared(upload, declared)
        for part in terms.in_parts(upload):
            sent = terms.sent(part, download.round, download.values.get(BOUND))
            sent = sent if put_on is None else put_on(sent)
            traffic.uploaded(sent)
            yield sent

    work.home.clients.begin(first, cohort)
    for wave in work.waves(work.blocks(cohort)):
        drawn = work.draw(first.round, wave)
        clock.lap("sample")
        downloads = [download_for(block) for block in wave]
        uploads = work.do_all(drawn, downloads)
        clock.lap("train")
        for block, download, upload in zip(wave, downloads, uploads, strict=True):
            yield block, leaving(upload, download)
            traffic.downloaded(download, len(block))
        clock.lap("server")


def _exchanged(
    now: Mapping[str, Tensor], before: Mapping[str, Tensor], back: Mapping[int, str], count: int
) -> dict[str, Tensor]:
    """The clients' packed values, with those of clients that go back replaced by earlier ones."""
    edges = sorted({0, count, *(edge for one in back for edge in (one, one + 1))})
    runs = [range(first, last) for first, last in pairwise(edges)]
    return joined([parted(before if run.start in back else now, run) for run in runs])
