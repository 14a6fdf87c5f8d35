"""The server's view: messages as bytes and the sums it works out. A curious server keeps to the protocol and notes."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from ownview.attacks.evidence import Evidence, read
from ownview.data.ragged import Ragged
from ownview.data.splitting.splits import Split
from ownview.engine.machine import Machine
from ownview.federation.options import FederationOptions
from ownview.federation.server import AggregationServer
from ownview.federation.terms import Terms
from ownview.messages.sums import MeanPartial, SumPartial
from ownview.messages.upload import Upload
from ownview.privacy.budget import budget
from ownview.privacy.masking.cohort import FEWEST
from ownview.privacy.masking.groups import FEWEST_GROUPS
from ownview.privacy.masks import MaskedSums, Masks, masked_sums
from ownview.privacy.whole_steps import BOUND
from ownview.round.federation import Federation
from ownview.seam.client import Reporting
from ownview.seam.method import Federated
from ownview.seam.training import Params


@dataclass(frozen=True, eq=False)
class Scene:
    """A federation that can be set up again and again, as it was before its first round.

    Args:
        method: that is attacked.
        split: the clients' data.
        excluded: every client's items that are never drawn as training negatives.
        options: who takes part, how the server combines, and what protects uploads.
        seed: of the run.
        machine: where it runs.
    """

    method: Federated
    split: Split
    excluded: Ragged
    options: FederationOptions
    seed: int
    machine: Machine

    def federation(self) -> Federation:
        """All clients and the server, before the first round."""
        return Federation(self.method, self.split, self.excluded, self.options, self.seed, self.machine)


class CuriousServer(AggregationServer):
    """Does what the method's server does, and notes what it sees of some clients.

    Args:
        terms: of the federation.
        noted: [V] identities of the clients whose messages it notes.
        cohort: who takes part in every round; the federation's own choice where None.
        idle_in: the round whose sums it only notes, because their result is not used; 0 for none.
    """

    def __init__(self, terms: Terms, noted: Tensor, cohort: Tensor | None = None, idle_in: int = 0) -> None:
        super().__init__(terms)
        self.noted, self.cohort, self.idle_in = frozenset(noted.tolist()), cohort, idle_in
        self.number = 0
        self.evidence: list[Evidence] = []
        self.sums: list[Params] = []
        self.parts: list[Params] = []
        """Of masked sums in groups, every group's sum in the order they were opened."""
        self.latest: dict[int, Params] = {}

    def choose(self, number: int, present: Tensor | None = None) -> Tensor:
        """Who takes part."""
        self.number = number
        chosen = super().choose(number, present)
        return chosen if self.cohort is None else self.cohort.to(chosen.device)

    def see(self, upload: Upload) -> None:
        """Note the messages of some clients, as bytes."""
        for place, client in enumerate(upload.clients.tolist()):
            if client in self.noted:
                self._note(upload.one(place), client)

    def _note(self, upload: Upload, client: int) -> None:
        message = self.terms.codec.write_upload(upload, self.number)
        if not message:
            return
        offered = self.download(self.number, upload.clients, for_training=True)
        found = read(message, client, self.terms, offered, self.latest.get(client, {}))
        self.latest[client] = dict(found.tables)
        self.evidence.append(found)

    def see_sum(self, total: MeanPartial | SumPartial) -> None:
        """Note a group's sum: it is of fewer people than the round's."""
        masked, words = self.terms.masked, total.words
        if masked is not None and words is not None:
            named = masked.named(words[None], self.number, self.shared.get(BOUND))
            self.parts.append({name: named[name][0].detach().cpu().clone() for name in total.sums})

    def finish(self, number: int, total: MeanPartial | SumPartial, cohort: Tensor, made: Params | None = None) -> None:
        """Combine what has arrived: to solve for the next download may take far longer than all else of a round."""
        if number == self.idle_in:
            self.protect(number, total)
        else:
            super().finish(number, total, cohort, made)

    def protect(self, number: int, total: MeanPartial | SumPartial) -> None:
        """Note the sums as the server uses them, with whatever protects them."""
        super().protect(number, total)
        named = ((name, value) for name, value in total.pack().items() if name.startswith("sum."))
        self.sums.append({name.removeprefix("sum."): value.detach().cpu().clone() for name, value in named})


@dataclass(frozen=True, eq=False)
class ServerView:
    """Everything an attack may look at. What clients hold, and which items are theirs, is not here.

    Args:
        num_items: m.
        noisy: whether something protects uploads or sums, by the terms that everybody knows.
        negatives: drawn for every positive, a public setting; 0 where clients report and draw none.
        evidence: messages in the order they came.
    """

    num_items: int
    noisy: bool
    negatives: int
    evidence: tuple[Evidence, ...]

    def by_client(self) -> dict[int, list[Evidence]]:
        """Messages that say something of items, by client, oldest first."""
        found: dict[int, list[Evidence]] = {}
        for one in self.evidence:
            if not one.empty:
                found.setdefault(one.client, []).append(one)
        return found

    def of_round(self, number: int) -> ServerView:
        """Messages of one round alone."""
        return replace(self, evidence=tuple(one for one in self.evidence if one.round == number))

    def first(self) -> list[Evidence]:
        """One upload of every client: its first."""
        return [each[0] for each in self.by_client().values()]


def watch(
    scene: Scene, clients: Tensor, rounds: int, cohort: Tensor | None = None, *, uploads_alone: bool = False
) -> tuple[ServerView, Federation]:
    """Run a federation under a curious server.

    Args:
        scene: that is run.
        clients: [V] whose messages are noted.
        rounds: of training.
        cohort: who takes part; the federation's own choice where None.
        uploads_alone: whether it ends once the uploads of the last round have come, and nothing is made of them.

    Returns:
        what the server saw, and the federation, of which only scoring may look at what clients hold.
    """
    federation = scene.federation()
    if cohort is not None:
        federation.terms = expecting(federation.terms, len(cohort))
    server = CuriousServer(federation.terms, clients, cohort, rounds if uploads_alone else 0)
    federation.server = server
    for number in range(1, rounds + 1):
        federation.round(number)
    return view_of(federation.terms, server), federation


def expecting(terms: Terms, clients: int, *, masks: bool = True) -> Terms:
    """The same terms for rounds of so many clients, where uploads are masked: others need more to release anything.

    Args:
        terms: of a federation.
        clients: of every round.
        masks: whether they are put on; sums are the same without.

    As many groups as were asked for stay, or as many as so few clients can be in.
    """
    if terms.masked is None:
        return terms
    plan, asked, sums = terms.world.protection, budget(terms.options.privacy), masked_sums(terms.options.privacy)
    given = terms.masked.masks
    groups = most if (most := min(given.groups, clients // FEWEST)) >= FEWEST_GROUPS else 1
    plain = Masks(real=given.real and masks, groups=groups, median=given.median and groups > 1)
    if asked is not None and plan is not None:
        privacy = str(replace(asked, masks=plain))
        plan = replace(plan, clients=float(clients), threshold=plain.survivors(clients, privacy), median=plain.median)
    else:
        privacy = str(MaskedSums(terms.masked.clip if sums is None else sums.clip, plain))
    options = replace(terms.options, privacy=privacy, clients=str(clients))
    return replace(terms, options=options, world=replace(terms.world, protection=plan))


def view_of(terms: Terms, server: CuriousServer) -> ServerView:
    """What a curious server has seen."""
    work = terms.client.work
    negatives = 0 if isinstance(work, Reporting) else work.negatives
    noisy = terms.transform is not None
    return ServerView(terms.world.num_items, noisy, negatives, tuple(server.evidence))


def victims(num_clients: int, wanted: int, seed: int) -> Tensor:
    """Up to so many clients, drawn at random, ascending."""
    drawn = torch.randperm(num_clients, generator=torch.Generator().manual_seed(seed))
    return drawn[:wanted].sort().values
