"""What diversity and popularity control of `ownview serve` cost in hits, and what they give.

    python -m benchmarks.reranking                 # goodbooks, FedEASE, the latest item of everybody held out

A list of ten for everybody's known history, scored by the run's portable form and re-ranked as the server does it. The
validation item is left out of it, as `honest` has it no candidate: without weights the figures are the run's own.
HR@10 and NDCG@10 on the held-out item; makers: different ones in a list; rare: share of listed items that belong to the
least popular ones with a third of all interactions together; items: different ones over all lists; change: interval of
the difference in HR@10 from plain scores, over people. Weights are not chosen here: the table has all of them.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from ownview.evaluation.statistics import difference_interval, mean_interval
from ownview.runs.experiment import Experiment
from ownview.runs.run import Run, run
from ownview.serve.listing import recommended
from ownview.serve.model import ServedModel
from ownview.serve.served_run import write_served

WEIGHTS = ((0.0, 0.0), (0.1, 0.0), (0.2, 0.0), (0.3, 0.0), (0.5, 0.0), (0.0, 0.1), (0.0, 0.2), (0.0, 0.3), (0.0, 0.5))
"""Of diversity and popularity."""


def measured(model: ServedModel, finished: Run, diversity: float, popularity: float) -> tuple[Any, dict[str, float]]:
    """Hits [n] and figures of one pair of weights."""
    before, question = (one.question for one in finished.loaded().setup.rankers)
    data = finished.loaded().split.data
    hits, gains, makers, rare, every = [], [], [], [], set()
    assert model.group is not None
    for place in question.users.tolist():
        asked = {
            "user": str(data.users[place]), "k": 10, "again": False, "in_stock": False, "explain": False,
            "diversity": diversity, "popularity": popularity,
            "exclude": [str(data.items[item]) for item in before.answers(place)],
        }  # fmt: skip
        listed = [model.place[one["item"]] for one in recommended(model, asked, None)["recommendations"]]
        right = question.answers(place)
        ranks = [rank for rank, item in enumerate(listed) if item in right]
        hits.append(float(bool(ranks)))
        gains.append(1 / np.log2(ranks[0] + 2) if ranks else 0.0)
        makers.append(len({max(model.columns["creator"][item], key=len, default="") for item in listed}))
        rare.append(float((model.group[listed] == model.group.max()).mean()))
        every |= {*listed}
    low, high = mean_interval(np.array(hits))
    figures = {
        "HR@10": np.mean(hits), "low": low, "high": high, "NDCG@10": np.mean(gains), "makers": np.mean(makers),
        "rare": np.mean(rare), "items": len(every),
    }  # fmt: skip
    return np.array(hits), {name: round(float(value), 4) for name, value in figures.items()}


def main() -> None:
    """Print one JSON object a pair of weights."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--method", default="fedease")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as own:
        finished = run(Experiment(method=given.method, data="goodbooks"), out=Path(own) / "run")
        write_served(Path(own) / "run", Path(own) / "served")
        model, plain = ServedModel(Path(own) / "served"), None
        for diversity, popularity in WEIGHTS:
            hits, figures = measured(model, finished, diversity, popularity)
            plain = hits if plain is None else plain
            low, high = difference_interval(hits - plain)
            change = [round(low, 4), round(high, 4)]
            print(
                json.dumps({"diversity": diversity, "popularity": popularity, **figures, "change": change}), flush=True
            )


if __name__ == "__main__":
    main()
