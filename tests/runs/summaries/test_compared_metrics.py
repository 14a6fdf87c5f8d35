"""A metric that one protocol lacks is compared under the others."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import ownview as ov
from ownview.runs.experiment import Experiment
from ownview.runs.run import run
from ownview.runs.table import compared, measured


def test_a_metric_is_compared_under_every_protocol_whose_runs_have_it(tmp_path: Path) -> None:
    short = replace(ov.HONEST, name="short", cutoffs=(5, 10))
    runs = {
        (method, protocol.name): [run(Experiment(method, protocol=protocol), out=tmp_path / f"{method}-{number}")]
        for method in ("popularity", "markov")
        for number, protocol in enumerate((ov.HONEST, short))
    }
    metrics = ["HR@10", "NDCG@20"]
    assert measured(runs, metrics) == {"honest": metrics, "short": ["HR@10"]}
    columns = {(protocol, metric) for _, protocol, metric in compared(runs, metrics)}
    assert columns == {("honest", "HR@10"), ("honest", "NDCG@20"), ("short", "HR@10")}
