"""What a model is worth to a person who never took part, beside what it is worth to those who did.

    python -m benchmarks.newcomers --data ml-100k goodbooks --methods popularity fedease fednext
    python -m benchmarks.newcomers --data ml-100k --methods pfedrec fedmf:tuned --rounds 30 --measure-every 5

Under `honest` everybody takes part. Under `new-users` a fifth of the users is left out of training altogether and is
then asked the same, given the same history; five folds leave everybody out once. HR@10 of both is over the same users,
and its share is what a history alone is worth. The interval is by a bootstrap over users.

Runs lie under --out; those that have finished are not run again.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ownview.config.presets.loading import preset
from ownview.evaluation.named_protocols import HONEST, NEW_USERS
from ownview.evaluation.protocol import Protocol
from ownview.runs.experiment import Experiment
from ownview.runs.files.folder import RunFolder
from ownview.runs.run import open_run, resume, run

_FOLDS = round(1 / NEW_USERS.newcomers)
_RESAMPLED = 2000
_METRIC = "HR@10"

Values = npt.NDArray[np.float64]


def main() -> None:
    """Run what is missing, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="+", default=["ml-100k", "goodbooks"])
    parser.add_argument(
        "--methods", nargs="+", default=["popularity", "fedease", "fednext"], help="NAME or NAME:PRESET"
    )
    parser.add_argument("--rounds", type=int, default=30, help="at most, where validation chooses the round")
    parser.add_argument("--measure-every", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("runs/newcomers"))
    asked = parser.parse_args()
    print(f"| data | method | {_METRIC} having taken part | {_METRIC} from history alone | share | 95 % interval |")
    print("| --- | --- | --- | --- | --- | --- |")
    for data in asked.data:
        for method in asked.methods:
            experiment = replace(
                _experiment(method, data), rounds=asked.rounds, measure_every=asked.measure_every, device="auto"
            )
            inside, outside = measured(experiment, asked.out / data / method.replace(":", "-"))
            low, high = interval(inside, outside)
            share = outside.mean() / inside.mean()
            print(
                f"| {data} | {method} | {inside.mean():.4f} | {outside.mean():.4f} | {share:.3f} | "
                f"{low:.3f} to {high:.3f} |",
                flush=True,
            )


def measured(experiment: Experiment, out: Path) -> tuple[Values, Values]:
    """[n] of every user, having taken part and from history alone, in the same order."""
    inside = _by_user(experiment, HONEST, out / "honest")
    outside: dict[str, float] = {}
    for fold in range(_FOLDS):
        protocol = NEW_USERS if fold == 0 else replace(NEW_USERS, name=f"new-users-{fold}", fold=fold)
        outside |= _by_user(experiment, protocol, out / f"fold{fold}")
    # An item of one person alone cannot be asked for; both sides leave that person out.
    both = [user for user in inside if user in outside]
    return np.array([inside[user] for user in both]), np.array([outside[user] for user in both])


def interval(inside: Values, outside: Values) -> tuple[float, float]:
    """Of the ratio of the means, over users drawn anew."""
    random = np.random.default_rng(0)
    drawn = random.integers(len(inside), size=(_RESAMPLED, len(inside)))
    low, high = np.quantile(outside[drawn].mean(1) / inside[drawn].mean(1), [0.025, 0.975])
    return float(low), float(high)


def _experiment(method: str, data: str) -> Experiment:
    name, _, chosen = method.partition(":")
    base = Experiment.from_dict(preset(name, chosen, data).experiment()) if chosen else Experiment(method=name)
    return replace(base, data=data)


def _by_user(experiment: Experiment, protocol: Protocol, folder: Path) -> dict[str, float]:
    if not folder.exists():
        run(replace(experiment, protocol=protocol), out=folder)
    elif not RunFolder.open(folder).finished:
        resume(folder)
    users = open_run(folder).folder.read_users()
    return dict(zip(users["user"], map(float, users[_METRIC]), strict=True))


if __name__ == "__main__":
    main()
