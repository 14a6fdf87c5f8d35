"""The groups of a round of masked sums: each has masks and a sum of its own, opened by itself; see `masking.groups`.

Where no groups were asked for there is one, and what goes wrong in it ends the round. Of several, one in which too few
are left, or whose masks cannot be lifted, is left out like one that is unlike the others; more than half must be left.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor

from ownview.base.errors import MessageError, TrainingError
from ownview.federation.server import AggregationServer
from ownview.messages.sums import MeanPartial, Partial, SumPartial
from ownview.messages.upload import MODULUS, Upload
from ownview.privacy.masked import Masked
from ownview.privacy.masking.cohort import Cohort
from ownview.privacy.masking.exchange import Exchange
from ownview.privacy.masking.groups import Numbers, distances, drawn, farthest

_TOGETHER = 2**22
"""Numbers of all groups that are compared at once."""
_ROUNDED = 1 + 1e-9
"""What the norm of one client within C may have grown to in adding up."""

_Came = TypeVar("_Came")


@dataclass(eq=False)
class Group:
    """Some clients of a round.

    Args:
        name: for people.
        members: identities, ascending.
        total: of what has arrived from them.
        masks: their exchange; None where a simulation leaves masks out.
        arrived: how many uploads it is of.
    """

    name: str
    members: Sequence[int]
    total: MeanPartial | SumPartial
    masks: Exchange | None = None
    arrived: int = 0

    @property
    def exchange(self) -> Exchange:
        """The exchange of masks, which must be there."""
        if self.masks is None:
            raise TypeError("no masks are put on here")
        return self.masks


@dataclass(eq=False)
class Groups:
    """All groups of a round; steps come in order.

    Args:
        masked: what was agreed on.
        server: that draws them, and begins their sums.
        number: of the round.
        lost: by client, why its group does not count.
    """

    masked: Masked
    server: AggregationServer
    number: int
    lost: dict[int, str] = field(default_factory=dict)
    every: list[Group] = field(default_factory=list)
    _of: dict[int, Group] = field(default_factory=dict)

    @property
    def cohort(self) -> Cohort:
        """Sizes of one group: members, survivors, neighbours."""
        return self.masked.cohort

    @property
    def single(self) -> bool:
        """Whether there is one group only."""
        return self.masked.groups == 1

    def draw(self, units: Sequence[Sequence[int]]) -> None:
        """Put the clients of the round into groups, all of them empty accumulators.

        Args:
            units: clients that must be in one group, such as those of one place.
        """
        count = self.masked.groups
        for place, members in enumerate(drawn(units, count, partial(self.server.shuffle, self.number)), 1):
            masks = Exchange(self.cohort, self.number, self.server.ring) if self.masked.masks.real else None
            self.every.append(Group(f"group {place} of {count}", members, self.server.begin(self.number), masks))
        self._of = {client: group for group in self.every for client in group.members}
        for group in [] if self.single else list(self.every):
            if len(group.members) > self.cohort.clients:
                most = f"{self.cohort.clients} of so many groups at most"
                self._lose(group, f"has {len(group.members)} clients, {most}: one place has too many users")

    def introduce(self, keys: Mapping[int, bytes]) -> dict[int, bytes]:
        """Public keys of all clients -> for each, the participants of its group and their keys."""
        return self._merged(lambda group: group.exchange.introduce(_those(group, keys)))

    def deliver(self, shares: Mapping[int, bytes]) -> dict[int, bytes]:
        """Sealed shares by sender -> sealed shares by receiver."""
        return self._merged(lambda group: group.exchange.deliver(_those(group, shares)))

    def take(self, upload: Upload) -> None:
        """Add uploads up, each to the sum of its group; uploads to a lost group are dropped."""
        found: dict[Group, list[int]] = {}
        for place, client in enumerate(upload.clients.tolist()):
            if client in self._of and client not in self.lost:
                found.setdefault(self._of[client], []).append(place)
        for group, places in found.items():
            group.total.add(upload.chosen(torch.tensor(places, device=upload.clients.device)))
            group.arrived += len(places)
            for place in [] if group.masks is None else places:
                group.exchange.take(upload.one(place))

    def left(self) -> dict[int, bytes]:
        """By client that is left: the request for shares."""
        return self._merged(lambda group: group.exchange.left())

    def agreed(self, signed: Mapping[int, bytes]) -> dict[int, bytes]:
        """(signed masks) Signatures of the set that is left -> the signatures that each client gets."""
        return self._merged(lambda group: group.exchange.agreed(_those(group, signed)))

    def lift(self, shown: Mapping[int, bytes]) -> None:
        """Take the masks off every group's sum."""
        self._each(lambda group: group.exchange.lift(group.total, _those(group, shown)))

    def combine(self, total: Partial, bound: Tensor | None) -> None:
        """Compare the groups; then add up those that are alike, or take the median of all.

        Args:
            total: of the round, still empty.
            bound: [] C of an adaptive clip.
        """
        if not self.single:
            self._each(self._require_enough)
            for group in self.every:
                self.server.see_sum(group.total)
            if not self.masked.masks.median:
                self._leave_out_unlike(bound)
        for group in self.every:
            total.merge(group.total.pack())
        if not self.single and self.masked.masks.median and total.words is not None:
            coding, people = self.masked.coding(self.number, bound), sum(group.arrived for group in self.every)
            middle = [np.median(part, axis=0) for part in self._means(bound)]
            whole = torch.from_numpy(np.concatenate(middle) * people * coding.scale).round().long() % MODULUS
            total.words.copy_(whole)

    def enough(self, clients: Collection[int]) -> bool:
        """Whether a step can go on with the answers of these clients."""
        if not self.every:
            return len(clients) >= self.masked.fewest
        there = set(clients)
        sound = sum(len(there.intersection(group.members)) >= self.masked.threshold for group in self.every)
        return sound > self.masked.groups // 2

    def bytes_sent(self) -> tuple[int, int]:
        """Of all messages about masks: down, and up."""
        masks = [group.masks for group in self._of_all() if group.masks is not None]
        return sum(one.down.total() for one in masks), sum(one.up.total() for one in masks)

    @property
    def wrong(self) -> dict[int, set[int]]:
        """By client, the dealers whose shares it has shown in another form than they were dealt."""
        found: dict[int, set[int]] = {}
        for group in self._of_all():
            found |= {} if group.masks is None else group.masks.server.wrong
        return found

    def _leave_out_unlike(self, bound: Tensor | None) -> None:
        apart, coding = distances(self._means(bound)), self.masked.coding(self.number, bound)
        people = np.array([group.arrived for group in self.every], dtype=np.float64)
        limits = farthest(apart, _ROUNDED * coding.bound / coding.scale / people)
        for group, far, most in zip(list(self.every), apart, limits, strict=True):
            if far > most:
                self._lose(group, f"is {far / most:.3g} times as far from the median of all as it may be")

    def _means(self, bound: Tensor | None) -> Iterator[Numbers]:
        """[g, n] the mean contribution of a client, by group; blocks of n coordinates one after the other."""
        coding, words = self.masked.coding(self.number, bound), [group.total.words for group in self.every]
        step = max(1, _TOGETHER // len(words))
        counts = np.array([group.arrived for group in self.every], dtype=np.float64)[:, None]
        for start in range(0, self.masked.layout.size, step):
            some = torch.stack([one[start : start + step] for one in words if one is not None])
            yield coding.values(some).cpu().numpy() / counts

    def _require_enough(self, group: Group) -> None:
        if group.arrived < self.masked.threshold:
            raise TrainingError(f"{group.arrived} clients are left, and {self.masked.threshold} are needed")

    def _merged(self, step: Callable[[Group], Mapping[int, bytes]]) -> dict[int, bytes]:
        return {client: data for answers in self._each(step) for client, data in answers.items()}

    def _each(self, step: Callable[[Group], _Came]) -> list[_Came]:
        """Results of a step, group by group; a group in which it fails is lost."""
        found = []
        for group in list(self.every):
            try:
                found.append(step(group))
            except (MessageError, TrainingError) as error:
                if self.single:
                    raise
                self._lose(group, str(error))
        if len(self.every) <= self.masked.groups // 2:
            why = "; ".join(sorted(set(self.lost.values())))
            raise TrainingError(
                f"round {self.number}: {len(self.every)} of {self.masked.groups} groups are left, and more than half "
                f"are needed; nothing is released ({why})"
            )
        return found

    def _lose(self, group: Group, why: str) -> None:
        self.lost |= dict.fromkeys(group.members, f"{group.name}: {why}")
        self.every.remove(group)

    def _of_all(self) -> list[Group]:
        """All groups, lost ones included."""
        return list({id(group): group for group in self._of.values()}.values())


def lacking(masked: Masked, units: Sequence[Sequence[int]]) -> str:
    """Why no draw of these units leaves enough groups; empty where one does. Sizes are no matter of chance."""
    fewest, most = masked.threshold, masked.cohort.clients
    sizes = [len(one) for one in drawn(units, masked.groups, lambda order: None)]
    if masked.groups == 1 or sum(fewest <= size <= most for size in sizes) > masked.groups // 2:
        return ""
    return (
        f"in {masked.groups} groups they are {', '.join(map(str, sizes))}, users of one place together, and more than "
        f"half of the groups need {fewest} to {most}"
    )


def _those(group: Group, given: Mapping[int, bytes]) -> list[bytes]:
    """The entries of a group's members."""
    return [given[client] for client in group.members if client in given]
