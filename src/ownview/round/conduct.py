"""THE round: choose, ask, take, lift masks, finish, tell. Written once, for clients wherever they are.

`conduct` knows a server and a `Fleet`: some clients that answer. `round.local_fleet` has them in this process, a block
at a time; `round.alone` asks one after the other, by bytes; `cluster.workers` has them added up by Ray's workers; and
`deploy.device_fleet` asks places over a network. A new kind of client is one more `Fleet`.

A step that looks at uploads between their arrival and the sum is an `UploadRule`. A client that does not answer,
answers late, answers wrongly or is left out by a rule is one case: `Round.leave_out`. It is neither in the sum nor in
the number of participants, and its values go back to those before the round.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import cached_property

import torch
from torch import Tensor

from ownview.base.counts import counts
from ownview.base.errors import SettingError, TrainingError
from ownview.engine.clock import Clock, clock_on
from ownview.federation.server import AggregationServer
from ownview.messages.download import Download
from ownview.messages.robust import robust_rule, settled
from ownview.messages.rules import made_by
from ownview.messages.sums import MeanPartial, SumPartial
from ownview.messages.traffic import Traffic
from ownview.messages.upload import Upload
from ownview.privacy.masking.exchange import MaskStep
from ownview.privacy.whole_steps import BOUND
from ownview.round.groups import Groups
from ownview.seam.client import Reporting
from ownview.seam.roles import PERSONAL
from ownview.seam.server import SUMS, Rule
from ownview.seam.training import Params

Uploads = Generator[Upload, None, None]
"""Of a round, as they come; closed when the round ends without the rest."""

LATE = "late"
"""Why clients are left out that have not answered when a rule stops."""

SMALL = 1e-3
"""Values below this in size are reported as nearly zero."""


class Round:
    """State of one round.

    Args:
        server: of the federation.
        number: from 1.
        cohort: [C] identities of the clients that were chosen, ascending.
        rules: that look at its uploads.
    """

    def __init__(
        self, server: AggregationServer, number: int, cohort: Tensor, rules: Sequence[UploadRule] = ()
    ) -> None:
        self.server, self.terms, self.number, self.cohort, self.rules = server, server.terms, number, cohort, rules
        self.clock: Clock = clock_on(self.terms.machine.device)
        self.first = server.download(number, cohort[:0])
        """What the server has for everybody."""
        self.traffic = Traffic(self.terms.codec, self.first)
        self.total: MeanPartial | SumPartial = server.begin(number)
        self.masks: Groups | None = None
        """Where uploads are masked and the masks are put on, or sums are made by groups."""
        self.inboxes: Mapping[int, bytes] = {}
        """Where uploads are masked: by client, what the others have sealed for it."""
        self.left_out: dict[int, str] = {}
        """By client, why it does not count."""
        self.loss: float | None = None
        self.made: Params | None = None
        """What the server's own rule has made of single uploads, by name; None where it needs none."""
        self.stale: dict[int, int] = {}
        """By client, how many rounds ago it received what it worked on; clients of this round are left out."""
        self.simulated: float | None = None
        """Seconds since the first round began, on simulated devices; None where there are none."""

    @property
    def counted(self) -> Tensor:
        """[K] identities of the cohort that still count, ascending."""
        if not self.left_out:
            return self.cohort
        out = torch.tensor(sorted(self.left_out), dtype=self.cohort.dtype, device=self.cohort.device)
        return self.cohort[~torch.isin(self.cohort, out)]

    @cached_property
    def receives_after(self) -> bool:
        """Whether clients receive after the round instead of before."""
        work = self.terms.client.work
        return isinstance(work, Reporting) and work.receives_after

    def download(self, clients: Tensor) -> Download:
        """What the server sends to some clients before they work."""
        return self.server.download(self.number, clients, for_training=True)

    def leave_out(self, clients: Iterable[int], why: str) -> None:
        """Leave clients out of the round; the first reason is kept."""
        for client in clients:
            self.left_out.setdefault(client, why)

    def keep(self, upload: Upload, which: Tensor, why: str) -> Upload:
        """The clients of a stack for which `which` [B] says so; the others are left out."""
        if bool(which.all()):
            return upload
        self.leave_out(upload.clients[~which].tolist(), why)
        return upload.chosen(which)

    def refusals(self, upload: Upload) -> dict[int, str]:
        """By client, why an upload is refused that no honest client can have made."""
        return self.terms.refusals(upload, self.number, self._opened)

    @cached_property
    def personal(self) -> Params:
        """By name, the server's tables where clients send whole tables."""
        whole = {name for name, param in self.terms.client.params.items() if param.role is PERSONAL}
        return {name: value for name, value in self.first.values.items() if name in whole}

    @cached_property
    def _opened(self) -> Params:
        return self.terms.opened(self.first)

    def take(self, upload: Upload) -> None:
        """Add uploads to the sum, and store what the server keeps by client."""
        if not len(upload.clients):
            return
        if self.masks is None:
            self.total.add(upload)
        else:
            self.masks.take(upload)
        self.server.take(upload)


UploadRule = Callable[[Iterator[Upload], Round], Iterator[Upload]]
"""Uploads as they come and their round -> uploads that are added up. It may change uploads, hold them back until all
have come, leave clients out (`Round.keep`, `Round.leave_out`), or stop early: who has not answered by then is late."""


class Fleet(ABC):
    """Some clients that answer, wherever they are.

    `inspects`: uploads are trusted when they are yielded, because they were made in this process or checked on arrival.
    """

    inspects = False

    def choose(self, server: AggregationServer, number: int) -> Tensor:
        """[C] identities of the clients that take part in a round, ascending."""
        return server.choose(number)

    def about_masks(self, going: Round, step: MaskStep, messages: Mapping[int, bytes]) -> Mapping[int, bytes]:
        """Send a step of the exchange of masks to clients; answers by client."""
        raise TypeError(f"{type(self).__name__} puts no masks on")

    def units(self, clients: Iterable[int]) -> list[list[int]]:
        """Clients by machine: those of one machine must be in one group. By default every client is its own."""
        return [[client] for client in clients]

    @abstractmethod
    def ask(self, going: Round) -> Uploads:
        """Send `Round.counted` their downloads and yield their uploads; clients that fail are left out.

        Clients that add up among themselves are merged into `Round.total` and yield nothing.
        """

    def check(self, going: Round) -> None:
        """Called between the last upload and combining: raise where the round must not end."""
        return

    @abstractmethod
    def tell(self, going: Round) -> None:
        """End the round: clients that counted receive downloads of after the round, all others go back to before it."""


def conduct(server: AggregationServer, fleet: Fleet, number: int, rules: Sequence[UploadRule] = ()) -> Round:
    """Conduct round `number` (from 1).

    Raises `TrainingError` where too few clients are there to release a masked sum; the server is then as it was.
    """
    going = Round(server, number, fleet.choose(server, number), rules)
    _begin_masks(going, fleet)
    with closing(fleet.ask(going)) as coming:
        uploads: Iterator[Upload] = coming
        for rule in (seen, *(() if fleet.inspects else (honest,)), robust, *rules):
            uploads = rule(uploads, going)
        for upload in uploads:
            going.take(upload)
            del upload  # may be large, and others are made meanwhile
    fleet.check(going)
    _lift_masks(going, fleet)
    server.finish(number, going.total, going.counted, going.made)
    going.clock.lap("server")
    fleet.tell(going)
    going.clock.lap("train")
    return going


def seen(uploads: Iterator[Upload], going: Round) -> Iterator[Upload]:
    """Rule: shows the server uploads as they arrive."""
    for upload in uploads:
        going.server.see(upload)
        yield upload


def robust(uploads: Iterator[Upload], going: Round) -> Iterator[Upload]:
    """Rule: uploads as the setting `robust` or the server's own `Rule` changes them; unchanged without either."""
    own, rule = going.terms.server.combine, robust_rule(going.terms.options.robust)
    if isinstance(own, Rule) and own.needs != SUMS:
        return _by_own_rule(uploads, own, going)
    return uploads if rule is None else settled(uploads, rule, going.terms.weighting, going.personal)


def _by_own_rule(uploads: Iterator[Upload], rule: Rule, going: Round) -> Iterator[Upload]:
    """The change is what the server's rule makes of all uploads; the uploads themselves are not added up."""
    terms, held = going.terms, [one for one in uploads if len(one.clients)]
    if held:
        clients = [client for one in held for client in one.clients.tolist()]
        stale = torch.tensor([going.stale.get(client, 0) for client in clients], device=terms.machine.device)
        values = going.server.shared | going.server.held
        going.made = made_by(rule, held, terms.averaged, terms.world.num_items, values, going.number, stale)
    for one in held:
        yield replace(one, rows={}, whole={n: value for n, value in one.whole.items() if n not in terms.averaged})


def honest(uploads: Iterator[Upload], going: Round) -> Iterator[Upload]:
    """Rule of every round: leave out uploads that no honest client can have made."""
    for upload in uploads:
        wrong = going.refusals(upload)
        for client, why in wrong.items():
            going.leave_out([client], why)
        yield upload.without(wrong) if wrong else upload


def _begin_masks(going: Round, fleet: Fleet) -> None:
    """With masks: keys, groups and shares; clients that do not answer are left out.

    Groups are drawn after keys are known, so that no client can choose its group.
    """
    masked, clients = going.terms.masked, going.cohort.tolist()
    if masked is None:
        return
    if going.rules:
        raise SettingError(f"privacy={going.terms.options.privacy}: masks hide single uploads from every rule")
    if len(clients) < masked.fewest:
        raise TrainingError(
            f"round {going.number}: {len(clients)} clients take part, and {masked.fewest} are needed; nothing is "
            "released"
        )
    if masked.masks.real:
        masks = going.masks = Groups(masked, going.server, going.number)
        keys = fleet.about_masks(going, MaskStep.KEYS, dict.fromkeys(clients, b""))
        masks.draw(fleet.units(keys))
        shares = fleet.about_masks(going, MaskStep.SHARES, masks.introduce(keys))
        going.inboxes = masks.deliver(shares)
        _without_lost(going, masks)
        going.leave_out((one for one in clients if one not in going.inboxes), "did not answer about masks")
    elif masked.groups > 1:
        going.masks = Groups(masked, going.server, going.number)
        going.masks.draw(fleet.units(clients))


def _lift_masks(going: Round, fleet: Fleet) -> None:
    """Remove the masks from every group's sum, by shares of the clients left; then combine the groups."""
    masks, masked = going.masks, going.terms.masked
    if masked is None:
        return
    if masks is None:  # one sum of a simulation that leaves masks out: it releases what it would with them
        if len(going.counted) < masked.threshold:
            raise TrainingError(
                f"round {going.number}: {len(going.counted)} clients are left, and {masked.threshold} are needed; "
                "nothing is released"
            )
        return
    if masked.masks.real:
        asked = masks.left()
        if masked.masks.signed:
            asked = masks.agreed(fleet.about_masks(going, MaskStep.AGREE, asked))
        masks.lift(fleet.about_masks(going, MaskStep.SHOW, asked))
        going.traffic.weighed(0, *masks.bytes_sent())
    masks.combine(going.total, going.server.shared.get(BOUND))
    _without_lost(going, masks)


def _without_lost(going: Round, masks: Groups) -> None:
    for client, why in masks.lost.items():
        going.leave_out([client], why)


@dataclass(frozen=True)
class RoundReport:
    """What happened in a round.

    Args:
        number: of the round.
        clients: how many took part.
        loss: the mean over clients, None without participants or where clients have none.
        seconds: by part.
        bytes_down: of the message to one client, the mean over clients.
        bytes_up: of the message from one client, the mean over clients; see `messages.wire`.
        bytes_dense: of the message to one client if all values were dense.
        sparsity: by received value, after the round: shares of zeros and of values nearly zero.
        left_out: by client, why it does not count.
        simulated: seconds on simulated devices since the first round began; None where there are none.
    """

    number: int
    clients: int
    loss: float | None
    seconds: Mapping[str, float]
    bytes_down: int = 0
    bytes_up: int = 0
    bytes_dense: int = 0
    sparsity: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    left_out: Mapping[int, str] = field(default_factory=dict)
    simulated: float | None = None


def report(done: Round) -> RoundReport:
    """Report of a finished round."""
    traffic, dense = done.traffic, done.terms.codec.dense_download(done.first)
    return RoundReport(
        done.number, len(done.counted), done.loss, done.clock.seconds(), traffic.mean_down, traffic.mean_up, dense,
        sparsity(done.server.shared), done.left_out, done.simulated,
    )  # fmt: skip


def sparsity(shared: Params) -> dict[str, dict[str, float]]:
    """For every received value, the share that is exactly 0 and the share below `SMALL` in size."""
    filled = counts(shared, torch.count_nonzero)
    small = counts(shared, lambda part: (part.abs() < SMALL).sum())
    return {
        name: {
            "zero": 1 - filled[name] / value.numel(),
            f"below_{SMALL:g}": small[name] / value.numel(),
        }
        for name, value in shared.items()
    }
