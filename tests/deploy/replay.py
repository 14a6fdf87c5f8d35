"""A simulation that does again what places and a coordinator did, by their log of participants."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from torch import Tensor

from ownview.base.errors import DataError
from ownview.base.items.item_table import ItemTable
from ownview.data.interactions import Interactions
from ownview.data.questions import Question
from ownview.data.ragged import Ragged
from ownview.data.splitting.splits import Split
from ownview.data.timeline import Timeline
from ownview.deploy.agreement import PRECISIONS, Agreement
from ownview.deploy.coordination.participants import CountedRound
from ownview.deploy.places.holdings import Holdings
from ownview.engine.machine import Machine
from ownview.federation.server import AggregationServer
from ownview.federation.terms import Terms
from ownview.federation.work import Work
from ownview.round.federation import Federation
from ownview.round.local_fleet import LocalFleet


@dataclass(frozen=True)
class Besides:
    """What users know besides: ratings by user and item, columns about them by name and user."""

    ratings: Mapping[tuple[str, str], float] = field(default_factory=dict)
    users: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def added_to(self, data: Interactions) -> Interactions:
        """The data with it."""
        pairs = zip(data.users[data.user].tolist(), data.items[data.item].tolist(), strict=True)
        rating = np.array([self.ratings[pair] for pair in pairs]) if self.ratings else None
        about = {name: tuple(known.get(one, "") for one in data.users.tolist()) for name, known in self.users.items()}
        return replace(data, rating=rating, about_users=ItemTable(about) if about else None)


class _Logged(LocalFleet):
    """Clients of which those take part that were counted.

    Args:
        terms: what they have agreed on with the server.
        work: of the clients.
        log: who was counted, by round.
    """

    def __init__(self, terms: Terms, work: Work, log: Mapping[int, CountedRound]) -> None:
        super().__init__(terms, work)
        self.log = log

    def choose(self, server: AggregationServer, number: int) -> Tensor:
        """Clients that were counted in a round."""
        return torch.tensor(self.log[number].clients, dtype=torch.long)


class Replay(Federation):
    """All clients in one process, in the rounds of a log.

    Args:
        agreement: of the places.
        holdings: of all users, by identity; users who have none of theirs never came.
        log: who was counted.
        besides: what users know besides.
    """

    def __init__(
        self, agreement: Agreement, holdings: Holdings, log: Sequence[CountedRound], besides: Besides | None = None
    ) -> None:
        self.log: Mapping[int, CountedRound] = {one.round: one for one in log}
        if log and log[0].round > 1:
            raise DataError(
                f"a log of participants that begins with round {log[0].round}; expected one from round 1 on"
            )
        split = split_of(agreement, holdings, besides or Besides())
        machine = Machine(torch.device("cpu"), PRECISIONS[agreement.precision])
        super().__init__(agreement.model, split, split.training_items(), agreement.federation, agreement.seed, machine)

    def _fleet(self, work: Work) -> LocalFleet:
        return _Logged(self.terms, work, self.log)

    def run(self) -> None:
        """All rounds of the log."""
        for number in sorted(self.log):
            if self.log[number].counted:  # else it was lost, and changed nothing
                self.round(number)


def split_of(agreement: Agreement, holdings: Holdings, besides: Besides) -> Split:
    """All users that were agreed on as a simulation has them; who is not in the holdings has nothing."""
    missing = agreement.clients - len(holdings.users)
    no_items = Ragged(torch.zeros(missing + 1, dtype=torch.long), torch.zeros(0, dtype=torch.long))
    timed = holdings.timeline.times is not None
    empty = Timeline(no_items, no_items if timed else None, torch.zeros(missing, dtype=torch.long) if timed else None)
    names = tuple(f"missing {k}" for k in range(missing))
    joined = holdings.joined(Holdings(names, no_items, empty, torch.full((missing,), -1)))
    rows = len(joined.train.values)
    data = Interactions(
        "places",
        np.array(joined.users, dtype=object),
        agreement.item_ids,
        joined.train.offsets.numpy(),
        joined.train.values.numpy(),
        np.arange(rows),
        about=ItemTable(agreement.about) if agreement.about else None,
    )
    data = besides.added_to(data)
    asked = torch.nonzero(joined.held_out >= 0)[:, 0]
    right = Ragged.from_pairs(asked.numpy(), joined.held_out[asked].numpy(), agreement.clients)
    question = Question(right, joined.timeline, joined.excluded)
    return Split(data, joined.train, joined.timeline, question, question, agreement.order)
