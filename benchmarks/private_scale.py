"""How many users a budget needs: FedEASE at several epsilon on generated worlds of growing size, whose truth is known.

python -m benchmarks.private_scale --users 1000 10000 100000 1000000

Accuracy is HR@10 of the next item among all items, of at most `ASKED` users, as a share of the one without noise. The
truth is the chain that the world was drawn from: no model can reach more.
"""

from __future__ import annotations

import argparse
import gc
import json
import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from ownview.data.interactions import Interactions
from ownview.data.splitting.splits import Split, leave_one_out
from ownview.engine.machine import Machine
from ownview.federation.options import FederationOptions
from ownview.methods.fedease import FedEASE
from ownview.registry import enough_rounds
from ownview.round.federation import Federation
from ownview.round.scorers import scorer_of

ASKED = 4000
"""Users that are asked; the standard error of HR@10 is then at most 0.008."""
ITEMS, GROUPS, LENGTH, HOMES = 1000, 40, 20, 3
STAY, TRIES = 0.8, 8

Ids = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Chains:
    """Users who walk among groups of items.

    A user has `HOMES` groups. Every step it stays in its group with chance `STAY`, else goes to one of its homes, and
    takes an item of the group that it has not had, by popularity (1 / rank^0.8). An item that was drawn `TRIES` times
    in vain is left out.

    Args:
        items: [n, LENGTH + 2] of every user in order; -1 where one was left out.
        homes: [n, HOMES] groups.
        last: [n] group before the last item.
        group: [m] of every item.
        popularity: [m].
    """

    items: Ids
    homes: Ids
    last: Ids
    group: Ids
    popularity: npt.NDArray[np.float64]

    @classmethod
    def drawn(cls, users: int, seed: int) -> Chains:
        """A world of so many users."""
        random = np.random.default_rng(seed)
        popularity = np.arange(1, ITEMS + 1, dtype=np.float64) ** np.float64(-0.8)
        group = random.integers(0, GROUPS, ITEMS)
        homes = random.integers(0, GROUPS, (users, HOMES))
        items = np.full((users, LENGTH + 2), -1, dtype=np.int64)
        now, last = homes[:, 0].copy(), homes[:, 0].copy()
        for step in range(LENGTH + 2):
            last = now.copy()
            moves = random.random(users) > STAY
            now = np.where(moves, homes[np.arange(users), random.integers(0, HOMES, users)], now)
            for one in range(GROUPS):
                _take(items, step, np.flatnonzero(now == one), np.flatnonzero(group == one), popularity, random)
        return cls(items, homes, last, group, popularity)

    def split(self) -> Split:
        """The last item is asked for, the one before it is left out."""
        there = self.items >= 0
        users, steps = np.nonzero(there)
        data = Interactions.from_rows("chains", users, self.items[there], timestamp=steps)
        return leave_one_out(data, ties="hash", untimed="random", seed=0)

    def truth(self, users: Ids) -> Tensor:
        """[B, m] the chance of every item to be the next of some users, but for items they have had."""
        chance = np.zeros((len(users), GROUPS))
        np.add.at(chance, (np.arange(len(users))[:, None], self.homes[users]), (1 - STAY) / HOMES)
        chance[np.arange(len(users)), self.last[users]] += STAY
        left = np.tile(self.popularity, (len(users), 1))
        for row, user in enumerate(users):
            had = self.items[user, :-1]
            left[row, had[had >= 0]] = 0
        whole = np.zeros((len(users), GROUPS))
        for one in range(GROUPS):
            whole[:, one] = left[:, self.group == one].sum(1)
        return torch.from_numpy(left / whole[:, self.group].clip(1e-12) * chance[:, self.group])


def _take(
    items: Ids, step: int, who: Ids, members: Ids, popularity: npt.NDArray[np.float64], random: np.random.Generator
) -> None:
    """Users of one group take an item of it each."""
    shares = np.cumsum(popularity[members]) / popularity[members].sum()
    for _ in range(TRIES):
        found = members[np.minimum(np.searchsorted(shares, random.random(len(who))), len(members) - 1)]
        had = (items[who] == found[:, None]).any(1)
        items[who[~had], step] = found[~had]
        who = who[had]


def hit_rate(scores: Tensor, answers: Tensor) -> float:
    """HR@10; ties count as half of them better."""
    own = scores.gather(1, answers[:, None])
    better = (scores > own).sum(1) + ((scores == own).sum(1) - 1) / 2
    return float((better < 10).double().mean())


def _scored(split: Split, privacy: str, seed: int, users: Tensor, answers: Tensor) -> float:
    machine = Machine(torch.device("cpu"), torch.float32, block_clients=4096)
    options, method = FederationOptions(privacy=privacy), FedEASE()
    one = Federation(method, split, split.training_items(), options, seed, machine)
    for number in range(1, (enough_rounds(method, accounted=privacy != "none") or 1) + 1):
        one.round(number)
    found = []
    for part, right in zip(torch.split(users, 500), torch.split(answers, 500), strict=True):
        scores = scorer_of(one).scores(part, None).clone()
        for row, user in enumerate(part.tolist()):
            known = split.train.of(user)
            scores[row, known[known != right[row]]] = -math.inf
        found.append(scores)
    return hit_rate(torch.cat(found), answers)


def measured(users: int, epsilons: list[str], draws: int) -> Iterator[dict[str, float | str]]:
    """One line for every epsilon: HR@10, and what share it is of that without noise."""
    world = Chains.drawn(users, seed=users)
    split = world.split()
    places = np.sort(np.random.default_rng(0).permutation(users)[:ASKED])
    # Positions of users and items are those of the split, which sorts them as their numbers are.
    names = split.data.items
    asked, answers = torch.from_numpy(places), torch.tensor([split.test.answers(one)[0] for one in places])
    best = hit_rate(world.truth(places)[:, torch.tensor(names.astype(np.int64))], answers)
    without = 0.0
    for epsilon in ["none", *epsilons]:
        privacy = "none" if epsilon == "none" else f"central:epsilon={epsilon}"
        seeds = range(1 if epsilon == "none" else draws)
        hits = float(np.mean([_scored(split, privacy, seed, asked, answers) for seed in seeds]))
        without = hits if epsilon == "none" else without
        yield {"users": users, "epsilon": epsilon, "HR@10": hits, "share": hits / without, "truth": best}
        gc.collect()


def main() -> None:
    """Print a line of JSON for every size and epsilon."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--users", nargs="+", type=int, default=[1000, 3000, 10_000, 30_000, 100_000])
    parser.add_argument("--epsilon", nargs="+", default=["1", "8"])
    parser.add_argument("--draws", type=int, default=3)
    given = parser.parse_args()
    for users in given.users:
        for line in measured(users, given.epsilon, given.draws):
            print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
