"""Two clients with times: what is known of them is small enough to work out by hand.

Client 0 had items 0, 1, 2 at days 0, 0 and 3, client 1 items 2 and 0 at days 3 and 3; one more item of each validates
and another tests, which nobody trains on. So item 2 begins a sitting of client 0, and the moment of the round is day 3.
"""

from __future__ import annotations

import numpy as np
import torch

from ownview.data.interactions import Interactions
from ownview.data.splitting.splits import Split, leave_one_out
from ownview.engine.machine import Machine
from ownview.federation.options import FederationOptions
from ownview.round.federation import Federation
from ownview.seam.method import Federated

DAY = 86_400
ITEMS = 5


def two_clients() -> Split:
    user = np.array([0, 0, 0, 0, 0, 1, 1, 1, 1])
    item = np.array([0, 1, 2, 3, 4, 2, 0, 3, 4])
    seconds = np.array([0, 1, 3 * DAY, 3 * DAY + 7, 3 * DAY + 8, 3 * DAY - 9, 3 * DAY - 1, 3 * DAY + 5, 3 * DAY + 6])
    return leave_one_out(
        Interactions.from_rows("two", user, item, timestamp=seconds), ties="hash", untimed="random", seed=0
    )


def at_work(method: Federated, split: Split, engine: str = "vector", **options: object) -> Federation:
    place = Machine(torch.device("cpu"), torch.float64, engine=engine)
    return Federation(method, split, split.training_items(), FederationOptions.of(options), seed=3, machine=place)
