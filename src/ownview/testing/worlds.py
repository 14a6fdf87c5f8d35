"""Small worlds with known answers."""

from __future__ import annotations

import numpy as np
import torch

from ownview.data.interactions import Interactions
from ownview.data.splitting.splits import Split, leave_one_out
from ownview.engine.machine import Machine
from ownview.federation.options import FederationOptions
from ownview.round.federation import Federation
from ownview.seam.method import Federated


def small_world(num_users: int = 23, num_items: int = 60, seed: int = 0) -> Split:
    """Users of very different activity (3 to 40 interactions) with random taste, split by time."""
    random = np.random.default_rng(seed)
    counts = np.concatenate([[3, 40], random.integers(4, 36, size=num_users - 2)])
    users = np.repeat(np.arange(num_users), counts)
    items = np.concatenate([random.choice(num_items, size=count, replace=False) for count in counts])
    times = random.permutation(len(users)).astype(np.int64)
    about = {"title": {item: f"number {item} of kind {item % 7}" for item in range(num_items)}}
    people = {"user": range(num_users), "trade": [f"trade {user % 3}" for user in range(num_users)]}
    data = Interactions.from_rows("small world", users, items, timestamp=times, about=about).with_tables(users=people)
    return leave_one_out(data, ties="hash", untimed="random", seed=seed)


def block_world(groups: int = 3, users: int = 40, items: int = 40, per_user: int = 20, seed: int = 0) -> Split:
    """Groups of users who each like only their own group's items: what to recommend is known.

    Args:
        groups: of users and of items.
        users: in each group.
        items: in each group.
        per_user: interactions of each user, all inside the group.
        seed: of the choice of items.
    """
    random = np.random.default_rng(seed)
    user = np.repeat(np.arange(groups * users), per_user)
    choices = [random.choice(items, size=per_user, replace=False) + items * (u // users) for u in range(groups * users)]
    times = random.permutation(len(user)).astype(np.int64)
    about = {"title": {item: f"number {item} of group {item // items}" for item in range(groups * items)}}
    data = Interactions.from_rows("block world", user, np.concatenate(choices), timestamp=times, about=about)
    return leave_one_out(data, ties="hash", untimed="random", seed=seed)


def federation(
    method: Federated,
    split: Split,
    *,
    options: FederationOptions | None = None,
    seed: int = 0,
    engine: str = "vector",
    dtype: torch.dtype = torch.float64,
    device: str = "cpu",
    dense: bool = False,
    block_clients: int = 128,
) -> Federation:
    """A federation with honest negatives on a small world."""
    place = Machine(torch.device(device), dtype, engine=engine, dense=dense, block_clients=block_clients)
    return Federation(method, split, split.training_items(), options or FederationOptions(), seed, place)
