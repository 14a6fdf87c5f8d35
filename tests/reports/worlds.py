"""A small world with names that would break a careless page, and runs on it."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

from ownview.data.sittings import DAY
from ownview.evaluation.named_protocols import HONEST, NEXT_SITTING, PAPER, at_cut
from ownview.evaluation.protocol import Protocol
from ownview.runs.experiment import Experiment
from ownview.runs.run import run

USERS, ITEMS = 30, 120
WATCHED = ("u1", "u2")
HOSTILE = "</script><script>document.title='broken'</script>"
"""An item's id, and hence its title."""

_SMALL = {"embedding_size": 4, "local_epochs": 3}


def write_world(path: Path) -> Path:
    """Every user has the item with the hostile name, so that it stands in every list or history."""
    chance = random.Random(3)
    rows = ["user,item,rating,timestamp"]
    for user in range(USERS):
        chosen = {*range(4 * user, 4 * user + 4), *chance.sample(range(ITEMS), 8)}
        rows += [f"u{user},i{item},3,{chance.randint(1, 5000)}" for item in sorted(chosen)]
        rows.append(f"u{user},{HOSTILE},5,0")
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return path


def make_runs(folder: Path) -> Path:
    """Every method the report has a picture for, both protocols; FedMF with two seeds."""
    world = str(write_world(folder / "world.csv"))
    made = folder / "runs"

    def one(name: str, method: str, protocol: Protocol, seed: int = 0, **more: Any) -> None:
        settings = more.pop("settings", {} if method == "popularity" else _SMALL)
        experiment = Experiment(
            method=method, data=world, protocol=protocol, seed=seed, rounds=4, settings=settings, **more
        )
        run(experiment, out=made / name)

    for protocol in (HONEST, PAPER):
        one(f"popularity-{protocol.name}", "popularity", protocol)
        for seed in (0, 1):
            one(f"fedmf-{protocol.name}-{seed}", "fedmf", protocol, seed, watch=WATCHED)
        one(f"fedrap-{protocol.name}", "fedrap", protocol, watch=WATCHED)
    one("fedem-paper", "fedem", PAPER, watch=WATCHED)
    one("plgc-paper", "fedmf", PAPER, plugins=(("plgc", {}),), watch=WATCHED)
    one("late-paper", "fedmf", PAPER, plugins=(("late-aggregation", {}),), watch=WATCHED)
    one("fedmf-faster", "fedmf", HONEST, settings={**_SMALL, "learning_rate": 0.1})
    one("chosen-on-test", "popularity", replace(PAPER, name="on-test", selection="test"))
    return made


def make_sittings(folder: Path) -> Path:
    """Users who come back every ten days for four items: runs that are asked for a whole sitting, at two cuts."""
    chance = random.Random(5)
    rows = ["user,item,timestamp"]
    for user in range(USERS):
        for place, item in enumerate(chance.sample(range(ITEMS), 40)):
            rows.append(f"u{user},Title {item},{place // 4 * 10 * DAY + chance.randint(0, DAY // 2)}")
    (folder / "sittings.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    made = folder / "runs"
    for method, settings in (("popularity", {}), ("fedmf", _SMALL)):
        for name, protocol in ((method, NEXT_SITTING), (f"{method}-earlier", at_cut(0.6))):
            experiment = Experiment(
                method=method, data=str(folder / "sittings.csv"), protocol=protocol, rounds=1, settings=settings
            )
            run(experiment, out=made / name)
    return made
