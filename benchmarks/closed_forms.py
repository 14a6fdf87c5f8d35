"""EASE^R and iALS by other packages and by ours: CPU-seconds of fitting alone and of the process, and its memory."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from benchmarks.beside.cpu_seconds import peak_megabytes
from ownview.baselines.parts.central import Central
from ownview.baselines.parts.packages import one_thread, package, training_matrix
from ownview.config.settings import Value
from ownview.runs.api import experiment_of
from ownview.runs.training.setup import ExperimentSetup

_PASSES, _SIZE = 16, 64
"""Of iALS, everywhere."""


def _own(name: str, rounds: int = 1, **settings: Value) -> Callable[[ExperimentSetup], Callable[[], object]]:
    def ready(setup: ExperimentSetup) -> Callable[[], object]:
        experiment, model = experiment_of(name, setup.data, settings)
        if isinstance(model, Central):
            model.require_packages()
        at_work = setup.trainer(experiment, model)
        return lambda: [at_work.round(number) for number in range(1, rounds + 1)]

    return ready


def _irspack(name: str, **settings: Any) -> Callable[[ExperimentSetup], Callable[[], object]]:
    def ready(setup: ExperimentSetup) -> Callable[[], object]:
        made = getattr(package("irspack", "this benchmark"), name)(training_matrix(setup.split), **settings)
        if name == "DenseSLIMRecommender":
            learn: Callable[[], object] = made.learn
            return learn

        def passes() -> None:
            made.start_learning()
            for _ in range(_PASSES):
                made.run_epoch()

        return passes

    return ready


def _implicit(setup: ExperimentSetup) -> Callable[[], object]:
    als, matrix = package("implicit.als", "this benchmark"), training_matrix(setup.split)
    made = als.AlternatingLeastSquares(_SIZE, iterations=_PASSES, num_threads=1)
    return lambda: made.fit(matrix, show_progress=False)


FORMS: dict[str, Callable[[ExperimentSetup], Callable[[], object]]] = {
    "EASE^R, irspack": _irspack("DenseSLIMRecommender", reg=200.0),
    "EASE^R, ours": _own("ease"),
    "EASE^R, summed over clients (FedEASE without time)": _own(
        "fedease", nearness=float("inf"), recency=float("inf"), regularization=200.0
    ),
    "FedEASE": _own("fedease"),
    "iALS, irspack": _irspack(
        "IALSRecommender", n_components=_SIZE, alpha0=1.0, reg=0.003, train_epochs=_PASSES, n_threads=1
    ),
    "iALS, implicit": _implicit,
    "iALS, ours": _own("ials"),
    "FedIALS": _own("fedials", _PASSES, embedding_size=_SIZE),
}


def closed_form(form: str, data: str, data_dir: Path | None) -> dict[str, Any]:
    """Fit on the training part of the honest protocol; meant for a fresh process, on one core."""
    torch.set_num_threads(1)
    with one_thread():
        setup = ExperimentSetup.of(experiment_of("ease", data)[0], data_dir=data_dir)
        fit = FORMS[form](setup)
        before, start = peak_megabytes(), time.process_time()
        fit()
        fitted = time.process_time()
    return {"fit": round(fitted - start, 2), "whole": round(fitted, 2), "megabytes": peak_megabytes(), "before": before}
