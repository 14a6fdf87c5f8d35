"""A round of masked sums as a server sees it, for attacks on it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from ownview.privacy.masking.cohort import Cohort
from ownview.privacy.masking.collector import MaskingServer
from ownview.privacy.masking.device import MaskingClient
from ownview.privacy.masking.exchange import drawn_from_seed
from ownview.privacy.masking.messages import SealedShares
from ownview.privacy.masking.primitives import Words

COUNT = 20
NUMBER = 3


@dataclass
class Round:
    """Up to the masked numbers, of everybody.

    Args:
        cohort: what was agreed on.
        kinds: by client, what it is, where it is no honest one.
    """

    cohort: Cohort
    kinds: Mapping[int, type[MaskingClient]] = field(default_factory=dict)
    inboxes: dict[int, SealedShares] = field(init=False)

    def __post_init__(self) -> None:
        clients, random = range(self.cohort.clients), np.random.default_rng(1)
        self.numbers = {one: random.integers(0, 2**32, COUNT, dtype=np.uint32) for one in clients}
        self.devices = {
            one: self.kinds.get(one, MaskingClient)(one, NUMBER, self.cohort, drawn_from_seed(9, NUMBER, one))
            for one in clients
        }
        self.server = MaskingServer(NUMBER, self.cohort, seed=2)
        introductions = self.server.introduce([one.keys() for one in self.devices.values()])
        self.inboxes = self.server.deliver([self.devices[one].shares(introductions[one]) for one in clients])
        self.masked = {
            one: self.numbers[one] + self.devices[one].masks(self.inboxes[one], COUNT) for one in self.devices
        }

    def arrive(self, clients: Sequence[int]) -> Words:
        """The sum of the masked numbers of some clients, which the server notes as arrived."""
        for one in clients:
            self.server.take(one)
        total: Words = np.sum([self.masked[one] for one in clients], axis=0, dtype=np.uint32)
        return total

    def plain(self, clients: Sequence[int]) -> Words:
        """What the sum is without masks."""
        total: Words = np.sum([self.numbers[one] for one in clients], axis=0, dtype=np.uint32)
        return total
