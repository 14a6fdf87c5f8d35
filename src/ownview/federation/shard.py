"""The part of a round that some clients do: all of them in one process, or those of one worker."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor

from ownview.engine.clock import Clock
from ownview.federation.reporting import reporting
from ownview.federation.terms import Terms
from ownview.federation.work import Work
from ownview.messages.download import Download
from ownview.messages.sums import MeanPartial, SumPartial, require_declared
from ownview.messages.traffic import Traffic
from ownview.messages.upload import Upload
from ownview.privacy.whole_steps import BOUND


@dataclass(frozen=True, eq=False)
class Inbox:
    """Where uploads arrive.

    Args:
        total: adds them up.
        traffic: weighs them.
        take: notes what the server needs of every single one.
        put_on: puts masks on them before they leave; None where none are.
    """

    total: MeanPartial | SumPartial
    traffic: Traffic
    take: Callable[[Upload], None]
    put_on: Callable[[Upload], Upload] | None = None


class Shard:
    """Some clients, and what they do in a round.

    Args:
        terms: what they have agreed on with the server.
        work: of the clients.
    """

    def __init__(self, terms: Terms, work: Work) -> None:
        self.terms, self.work = terms, work

    def round(
        self, first: Download, cohort: Tensor, download_for: Callable[[Tensor], Download], inbox: Inbox, clock: Clock
    ) -> float | None:
        """Clients that take part receive, work, keep what is theirs, and send.

        Args:
            first: what the server has for everybody, of the round.
            cohort: [C] positions here of the clients that take part.
            download_for: positions of some of them -> what the server sends these.
            inbox: where uploads arrive.
            clock: told where the time goes.

        Returns:
            their mean loss, None where there is none.
        """
        work = self.work
        work.home.clients.begin(first, cohort)
        for wave in work.waves(work.blocks(cohort)):
            drawn = work.draw(first.round, wave)
            clock.lap("sample")
            downloads = [download_for(block) for block in wave]
            uploads = work.do_all(drawn, downloads)
            clock.lap("train")
            for block, download, upload in zip(wave, downloads, uploads, strict=True):
                self._send(upload, download, inbox)
                inbox.traffic.downloaded(download, len(block))
            clock.lap("server")
        return work.loss(first.round)

    def _send(self, upload: Upload, download: Download, inbox: Inbox) -> None:
        """Clients upload what came of a download, and the server takes what arrives."""
        if isinstance(inbox.total, SumPartial):
            require_declared(upload, reporting(self.terms.client).sends)
        for part in self.terms.in_parts(upload):
            sent = self.terms.sent(part, download.round, download.values.get(BOUND))
            if inbox.put_on is not None:
                sent = inbox.put_on(sent)
            inbox.traffic.uploaded(sent)
            inbox.total.add(sent)
            inbox.take(sent)
