"""Why some seeds of PLGC around FedMF end low on ml-100k: whose initial values decide, and what they do to the table.

python -m benchmarks.plgc_seeds --users 300 --rounds 40

Some of the users, the settings of `python -m reproduction run plgc`, protocol paper. Of every seed: which share of the
rows' movement in three rounds is the same for all rows; HR@10 on test after the last round; and HR@10 where the
network, or the user vector, begins with the values of the first seed.
"""

from __future__ import annotations

import argparse

import numpy as np
import torch

from ownview.data.datasets.catalog import load
from ownview.data.interactions import Interactions
from ownview.evaluation.metrics import means
from ownview.round.federation import Federation
from ownview.runs.experiment import Experiment
from ownview.runs.training.setup import ExperimentSetup
from ownview.runs.training.trainer import Trainer

SETTINGS = {
    "embedding_size": 32, "batch_size": 2048, "optimizer": "sgd", "learning_rate": 0.1, "local_epochs": 1,
    "table_rate_factor": 5.0, "initial_scale": 0.01, "round_decay": 0.89,
}  # fmt: skip
EARLY = 3
"""Rounds after which the movement of rows is looked at."""


class Trial:
    """One seed on some users.

    Args:
        data: of the users.
        seed: of the run.
        rounds: of training.
        plgc: settings of the plug-in besides its defaults.
    """

    def __init__(self, data: Interactions, seed: int, rounds: int, **plgc: object) -> None:
        plugins = [{"name": "plgc", "settings": plgc}]
        values = {"method": "fedmf", "settings": SETTINGS, "plugins": plugins, "data": "ml-100k", "protocol": "paper"}
        self.asked = Experiment.from_dict({**values, "rounds": rounds, "seed": seed, "device": "cpu"})
        self.setup = ExperimentSetup.of(self.asked, data=data)
        self.trainer: Trainer = self.setup.trainer(self.asked, self.asked.model())

    @property
    def federation(self) -> Federation:
        """The clients and their server."""
        assert self.trainer.federation is not None
        return self.trainer.federation

    def begin_with(self, other: Trial, names: str) -> Trial:
        """Let private values whose names begin so start as the other's do."""
        for name, value in self.federation.clients.own.items():
            if name.startswith(names):
                value.copy_(other.federation.clients.own[name])
        return self

    def together(self) -> float:
        """Train a little; which share of the squares of the rows' movement lies along the mean movement."""
        clients = torch.arange(self.setup.split.num_users)
        begun = self.federation.predicting(clients[:1], None)[0]["items"][0].clone()
        for number in range(1, EARLY + 1):
            self.trainer.round(number)
        moved = self.federation.predicting(clients, None)[0]["items"] - begun
        moved = moved[moved.abs().sum(-1) > 0]
        along = moved.mean(0) / moved.mean(0).norm()
        return float((moved @ along).square().sum() / moved.square().sum())

    def reached(self) -> float:
        """Train to the end; HR@10 on test."""
        for number in range(1, self.asked.rounds + 1):
            self.trainer.round(number)
        ranker = self.setup.rankers[1]
        return float(means(ranker.rank(self.trainer.asked(ranker.question)), self.asked.protocol.cutoffs)["HR@10"])


def some_users(number: int) -> Interactions:
    """Of ml-100k, the same ones every time."""
    data = load("ml-100k")
    chosen = np.random.default_rng(0).permutation(data.num_users)[:number]
    return data.select(np.isin(data.user, chosen))


def main() -> None:
    """Print a table."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--users", type=int, default=300)
    options.add_argument("--rounds", type=int, default=40)
    options.add_argument("--seeds", type=int, nargs="+", default=[2, 0, 1, 4, 11])
    asked = options.parse_args()
    data, rounds, first = some_users(asked.users), asked.rounds, asked.seeds[0]
    heads = ("movement together", "HR@10", f"network of {first}", f"user vector of {first}", "beta 0.01", "without eRR")
    print(f"{asked.users} users, {rounds} rounds\n| seed | {' | '.join(heads)} |\n|{' --- |' * (len(heads) + 1)}")
    for seed in asked.seeds:
        exchanged = [
            Trial(data, seed, rounds).begin_with(Trial(data, first, rounds), part).reached() for part in ("pr", "user")
        ]  # of the projector and the predictor, and of the user vector
        values = [
            Trial(data, seed, rounds).together(),
            Trial(data, seed, rounds).reached(),
            *exchanged,
            Trial(data, seed, rounds, beta=0.01).reached(),
            Trial(data, seed, rounds, redundancy="none").reached(),
        ]
        print(f"| {seed} | {' | '.join(f'{value:.2f}' for value in values)} |", flush=True)


if __name__ == "__main__":
    main()
