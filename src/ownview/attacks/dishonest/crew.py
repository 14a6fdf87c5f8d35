"""Who lies, what for, and by what means; and the fake histories that liars claim.

Liars take the place of some users. They know what everybody knows (method, settings, seed, what the server sends), how
popular items are, and how long honest uploads are.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

from ownview.base.randomness import generator
from ownview.data.ragged import Ragged
from ownview.data.splitting.splits import Split
from ownview.data.timeline import Timeline

PROMOTE, DEMOTE, DEGRADE, BACKDOOR = "promote", "demote", "degrade", "backdoor"
GOALS = (PROMOTE, DEMOTE, DEGRADE, BACKDOOR)
BOOSTED, BOUNDED, PLAUSIBLE = "boosted", "norm-bounded", "plausible"
MEANS = (BOOSTED, BOUNDED, PLAUSIBLE)
COUNTED_BOOSTED, COUNTED_BOUNDED = "counted-boosted", "counted-norm-bounded"
COUNTED = (COUNTED_BOOSTED, COUNTED_BOUNDED)
"""The first two for sums over pairs, which also say that the target was taken: what a limit by takers has to hold."""
PIECK_IPE, PIECK_UEA, FEDRECATTACK, PIPATTACK = "pieck-ipe", "pieck-uea", "fedrecattack", "pipattack"
SPATTACK_OD, SPATTACK_OS, SPATTACK_LD, SPATTACK_LS = "spattack-o-d", "spattack-o-s", "spattack-l-d", "spattack-l-s"
"""Attacks of the literature; see `attacks.dishonest.published`."""
_POPULAR = 300
"""Items that fake histories are made of."""
_TRIGGER = 0.1
"""Share of people who have the item that opens a backdoor, as near as there is one."""
_TAKERS = 8
"""People who have the item that is promoted, as near as there is one."""


@dataclass(frozen=True, eq=False)
class Crew:
    """Some liars.

    Args:
        split: of everybody, before some turn dishonest.
        goal: promote an item that few have, demote the most popular one, degrade all lists, or promote among those
            alone who have another item (backdoor).
        means: boosted uploads; uploads of honest length in the worst direction; honest work on a fake history; or an
            attack of the literature.
        count: of liars.
        seed: of who they are and what they claim.
    """

    split: Split
    goal: str
    means: str
    count: int
    seed: int = 0

    @cached_property
    def takers(self) -> Tensor:
        """[m] people who have an item in training."""
        return torch.bincount(self.split.training_items().values, minlength=self.split.num_items)

    @cached_property
    def members(self) -> Tensor:
        """[count] positions of the liars, ascending; one that had the target gives its history up like any other."""
        drawn = torch.randperm(self.split.num_users, generator=generator(self.seed, "liars"))
        return drawn[: self.count].sort().values

    @cached_property
    def trigger(self) -> int:
        """The item that opens a backdoor."""
        apart = (self.takers - _TRIGGER * self.split.num_users).abs()
        apart[self.target] = self.split.num_users
        return int(apart.argmin())

    @property
    def sources(self) -> Tensor:
        """Items of the people whose lists are meant."""
        return torch.tensor([self.trigger]) if self.goal == BACKDOOR else self.popular

    @cached_property
    def popular(self) -> Tensor:
        """The most popular items but the target, most popular first."""
        order = self.takers.argsort(descending=True, stable=True)
        return order[order != self.target][:_POPULAR]

    @cached_property
    def target(self) -> int:
        """The item that it is about: to be demoted, the most popular; else one that about eight people have."""
        if self.goal == DEMOTE:
            return int(self.takers.argmax())
        known = self.takers.clone()
        known[known == 0] = 10**9
        return int((known - _TAKERS).abs().argmin())

    def infiltrated(self) -> Split:
        """The split with fake histories in the place of the liars' own."""
        split, length = self.split, max(2, int(self.split.train.lengths.median()))
        fakes = {user: self._fake(user, length) for user in self.members.tolist()}
        times = split.timeline.times
        clocks = {user: _spread(times.of(user), length) for user in fakes} if times is not None else {}
        line = Timeline(
            _with(split.timeline.items, fakes), None if times is None else _with(times, clocks), split.timeline.now
        )
        return replace(split, train=_with(split.train, fakes), timeline=line)

    def _fake(self, user: int, length: int) -> Tensor:
        """[l] items, oldest first: popular ones with the target among them (behind the trigger), without it, or any."""
        random = generator(self.seed, "fake history", user)
        source = torch.arange(self.split.num_items) if self.goal == DEGRADE else self.popular
        source = source[source != self.trigger] if self.goal == BACKDOOR else source
        drawn = source[torch.randperm(len(source), generator=random)[:length]]
        if self.goal in (PROMOTE, BACKDOOR):
            drawn[len(drawn) // 2] = self.target
        if self.goal == BACKDOOR:
            drawn[len(drawn) // 2 - 1] = self.trigger
        return drawn


def _with(lists: Ragged, new: dict[int, Tensor]) -> Ragged:
    """The lists with those of some users exchanged."""
    each = [new.get(user, lists.of(user)) for user in range(len(lists))]
    lengths = torch.tensor([0, *map(len, each)])
    return Ragged(lengths.cumsum(0), torch.cat(each))


def _spread(times: Tensor, length: int) -> Tensor:
    """[l] moments from a user's first to the last."""
    first, last = (int(times.min()), int(times.max())) if len(times) else (0, 0)
    return torch.linspace(first, last, length, dtype=torch.float64).long()
