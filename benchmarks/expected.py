"""What `ownview start` expects its methods to take, beside what they take here: how good its plans are.

    python -m benchmarks.shop orders.csv && python -m benchmarks.expected orders.csv
    python -m benchmarks.expected orders.csv --method fedease --method ease

Every method runs as in a comparison, one after the other. Speed is measured anew before each, so that what else the
machine does meanwhile counts in both columns.
"""

from __future__ import annotations

import argparse
import math
import tempfile
import time
from pathlib import Path

from ownview.runs.run import run
from ownview.start.costs import Speed
from ownview.start.folder import StartFolder
from ownview.start.steps import Steps
from ownview.start.suited import Allowance, suited


def main() -> None:
    """Print a line a method."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--method", action="append", help="these alone; all that suit the data if not given")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        steps = Steps.of(StartFolder(Path(place) / "start", given.file, {}, None), ())
        steps.selection = suited(steps.split)
        print(f"{'method':<12}{'expected':>10}{'taken':>10}{'CPU':>10}{'ratio':>8}   NDCG@10 on validation", flush=True)
        for one, (experiment, folder) in zip(steps.selection.methods, steps.tasks(), strict=True):
            if given.method and one.method not in given.method:
                continue
            expected = Allowance(math.inf, math.inf, Speed.measured()).cost(one, steps.split).seconds
            wall, cpu = time.perf_counter(), time.process_time()
            made = run(experiment, out=folder)
            taken, worked = time.perf_counter() - wall, time.process_time() - cpu
            figure = made.result["validation"]["NDCG@10"]
            ratio = taken / expected
            print(f"{one.method:<12}{expected:10.1f}{taken:10.1f}{worked:10.1f}{ratio:8.2f}   {figure:.4f}", flush=True)


if __name__ == "__main__":
    main()
