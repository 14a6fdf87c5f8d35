"""Scorers for a question: clients with their current values, and the history that they know by then.

Users who never took part get clients too. Such a client receives a new client's download
and fits its private values to its history for a few rounds, without sending anything.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from ownview.data.interactions import IdArray
from ownview.data.questions import Question
from ownview.data.ragged import Ragged
from ownview.data.splitting.splits import distinct
from ownview.data.timeline import Timeline
from ownview.federation.facts import OwnFacts
from ownview.federation.reporting import ReportingWork
from ownview.federation.scoring import ClientScorer
from ownview.federation.terms import Terms, work_of
from ownview.federation.timelines import Timelines
from ownview.federation.work import Work
from ownview.messages.download import Download
from ownview.round.federation import Federation

FOLD_IN = 5
"""Rounds that a client of a newcomer trains at home before it is asked."""


def scorer_of(federation: Federation) -> ClientScorer:
    """The scorer of a federation's clients, prepared by `before_predicting`."""
    return ClientScorer(federation.work, federation.newest)


def asked(federation: Federation, question: Question) -> ClientScorer:
    """The scorer of a question: the users' own clients, or new clients for strangers."""
    known = question.known.to(federation.machine.device)
    if question.strangers is not None:
        return newcomers(federation, known, question.strangers)
    home = federation.work.home
    # Where nothing but training items are known their order is kept, so that what is drawn for them stays the same.
    train = home.train if known.items.same_items(home.train) else known.items
    timelines = Timelines(known, federation.world.num_items, federation.machine.dtype)
    there = replace(home, clients=home.clients.knowing(train, timelines), train=train)
    work, trained = work_of(there), federation.work
    if isinstance(work, ReportingWork) and isinstance(trained, ReportingWork):
        work.prepared = trained.prepared  # what everybody makes of a download is worked out once
    return ClientScorer(work, federation.newest)


def newcomers(federation: Federation, known: Timeline, ids: IdArray) -> ClientScorer:
    """The scorer of users who never took part, from their known items alone."""
    no_clients = torch.arange(0, device=federation.machine.device)
    return folded_in(federation.terms, Download(federation.done, federation.newest(no_clients).values), known, ids)


def folded_in(
    terms: Terms, download: Download, known: Timeline, ids: IdArray, facts: OwnFacts | None = None
) -> ClientScorer:
    """Scores by new clients: a new client's download, fitted at home to what they have and know besides."""
    machine, world = terms.machine, terms.world
    first = torch.arange(world.num_clients, world.num_clients + len(ids))
    timelines = Timelines(known, world.num_items, machine.dtype)
    excluded = _leaving(distinct(known.items.to(torch.device("cpu"))), world.num_items, terms.client.work.negatives)
    work = terms.work(first, known.items, timelines, excluded.to(machine.device), ids, facts)
    _fold_in(work, download, torch.arange(len(ids), device=machine.device))
    return ClientScorer(work, lambda clients, names: download)


def _leaving(histories: Ragged, num_items: int, negatives: int) -> Ragged:
    """Items that new clients never draw as negatives: their histories, or none if too few items remain.

    Such a newcomer is recommended next to nothing, and must not keep others from their lists.
    """
    owner = torch.repeat_interleave(torch.arange(len(histories)), histories.lengths)
    leaves = (num_items - histories.lengths >= negatives)[owner]
    return Ragged.from_pairs(owner[leaves].numpy(), histories.values[leaves].numpy(), len(histories))


def _fold_in(work: Work, download: Download, clients: Tensor) -> None:
    """Fit the clients' private values; a client without history keeps the initial values."""
    some = clients[work.home.train.lengths > 0]
    if work.home.client.phases:
        work.home.clients.begin(download, some)
        for visit in range(FOLD_IN):
            for block in work.blocks(some):
                work.do(work.samples(download.round + visit, block), download)
            work.loss(download.round)
    work.after_round(download, some)
