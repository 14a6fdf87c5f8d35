"""Recommendations at a place, computed from its folder alone: no message is sent."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from ownview.base.errors import DataError, UnknownNameError
from ownview.deploy.agreement import Agreement
from ownview.deploy.generations import Generations
from ownview.deploy.place import worked_by
from ownview.deploy.places.holdings import Holdings, read_holdings
from ownview.deploy.places.home import Home, Members
from ownview.round.residents import OwnData, Residents, opened
from ownview.round.scorers import folded_in


class Advised(NamedTuple):
    """One recommended item."""

    item: str
    title: str
    score: float


class Advice(NamedTuple):
    """What one user is recommended.

    user:  name at the place
    items: best first
    model: what people call the method
    round: after which the shared values are; 0 for the initial ones
    taken_part: whether the user's client has ever worked on a round. One that has not fits itself to the user's
                ratings first, a few rounds long, without sending anything
    """

    user: str
    items: list[Advised]
    model: str
    round: int
    taken_part: bool


def advise(folder: Path, user: str | None, k: int) -> Advice:
    """The best items that a user of a place has not rated.

    A resident place may be at work on the same folder: it is only looked at.

    Args:
        folder: of the place.
        user: by the name in its ratings; None where there is one alone.
        k: how many.
    """
    home = Home(folder)
    agreement = home.agreement()
    if agreement is None:
        raise DataError(
            f"{folder}: has not met a coordinator yet, and knows no items; expected one `ownview client run`"
        )
    members = home.members()
    holdings = read_holdings(home.ratings, replace(agreement, hold_out=False), members.users, home.users)
    place = _place_of(folder, user, holdings)
    newest = home.newest()
    state = Generations(home.state, looking=True).newest
    part = place < len(members.identities) and bool(worked_by(state, len(members.identities))[place])
    if part and state is not None:
        residents = _residents(agreement, members, holdings)
        residents.unpack(state.values)
        scores = residents.scores(newest.download, torch.tensor([place]))[0]
    else:
        scores = _first_time(agreement, newest.download, holdings, place)
    scores = scores.clone()
    scores[holdings.train.of(place)] = -torch.inf
    best = scores.sort(descending=True, stable=True)
    items = [
        Advised(agreement.items[item], agreement.title(item), score)
        for score, item in zip(best.values[:k].tolist(), best.indices[:k].tolist(), strict=True)
        if score != -torch.inf
    ]
    return Advice(holdings.users[place], items, agreement.label, newest.round, part)


def _place_of(folder: Path, user: str | None, holdings: Holdings) -> int:
    if user is None and len(holdings.users) == 1:
        return 0
    if user is None:
        raise DataError(f"{folder}: has {len(holdings.users)} users; expected --user with the name of one")
    if user not in holdings.users:
        raise UnknownNameError(f"user of {folder}", user, holdings.users)
    return holdings.users.index(user)


def _residents(agreement: Agreement, members: Members, holdings: Holdings) -> Residents:
    mine = holdings.first(len(members.identities))
    identities = torch.tensor(members.identities, dtype=torch.long)
    users = np.array(mine.users, dtype=object)
    own = OwnData(identities, mine.train, mine.excluded, mine.timeline, users, mine.facts)
    return Residents(agreement.terms(), own)


def _first_time(agreement: Agreement, download: bytes, holdings: Holdings, place: int) -> Tensor:
    """[m] by a client that has never taken part: it fits itself to its history at home."""
    terms = agreement.terms()
    line = holdings.timeline.of(place)
    ids = np.array([holdings.users[place]], dtype=object)
    facts = holdings.facts.part(range(place, place + 1))
    found = folded_in(terms, opened(terms, download, 0), line, ids, facts)
    return found.scores(torch.zeros(1, dtype=torch.long), None)[0]
