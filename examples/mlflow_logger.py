"""A logger for MLflow. MLflow is no dependency of Ownview: `pip install mlflow`, then

    python examples/mlflow_logger.py

A logger is anything with these three methods; `ownview.TensorBoard("folder")` is one that comes along.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

import ownview as ov

HEADLINE = ("HR@10", "NDCG@10")


class MLflow:
    """Parameters, a point a round, and test figures, as one MLflow run.

    Args:
        experiment: what MLflow files the run under.
    """

    def __init__(self, experiment: str = "ownview") -> None:
        self.mlflow: Any = importlib.import_module("mlflow")
        self.mlflow.set_experiment(experiment)

    def begin(self, experiment: Mapping[str, Any]) -> None:
        self.mlflow.start_run(run_name=f"{experiment['method']} on {experiment['data']}")
        words = ("method", "data", "rounds", "seed")
        settings = {f"settings.{name}": value for name, value in experiment["settings"].items()}
        self.mlflow.log_params({name: experiment[name] for name in words} | settings)

    def round(self, line: Mapping[str, Any]) -> None:
        # MLflow's names of metrics have no @; a round that was not measured has no validation.
        found = line.get("validation", {})
        measured = {f"validation/{name}".replace("@", "_"): found[name] for name in HEADLINE if name in found}
        loss = {} if line["loss"] is None else {"loss": line["loss"]}
        self.mlflow.log_metrics(measured | loss, step=line["round"])

    def end(self, result: Mapping[str, Any]) -> None:
        test = result.get("test", {})  # a model fitted on everything has none
        self.mlflow.log_metrics({f"test/{name}".replace("@", "_"): test[name] for name in HEADLINE if name in test})
        self.mlflow.set_tag("protocol", result["protocol"])
        self.mlflow.end_run()


if __name__ == "__main__":
    print(ov.run("pfedrec", "goodbooks", rounds=5, loggers=[MLflow()]))
