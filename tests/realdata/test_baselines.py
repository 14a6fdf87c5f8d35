"""What the pages of the classical baselines say of ml-100k."""

from __future__ import annotations

from pathlib import Path

import pytest

from ownview.config.settings import Value
from ownview.runs.experiment import Experiment
from ownview.runs.run import run


@pytest.mark.realdata
@pytest.mark.parametrize(
    ("method", "expected"), [("popularity", 0.0758), ("ease", 0.1198), ("ials", 0.1283), ("itemknn", 0.0912)]
)
def test_hit_rate_among_all_items(method: str, expected: float, real_data_dir: Path) -> None:
    """Equal up to one or two users: other processors round otherwise."""
    done = run(Experiment(method=method, data="ml-100k", device="cpu"), data_dir=real_data_dir)
    assert done.metrics["HR@10"] == pytest.approx(expected, abs=0.0025)


@pytest.mark.realdata
@pytest.mark.parametrize(("data", "tolerance"), [("ml-100k", 1e-6), ("filmtrust", 2e-4)])
def test_fedease_is_ease_in_every_metric(data: str, tolerance: float, real_data_dir: Path) -> None:
    """The server of the one sees a sum, that of the other everything; without time both are the same model.

    The package solves in single precision. On filmtrust many items that few users have tie exactly, and its rounding
    parts them by chance; against the same formula in double precision FedEASE is exact (tests/methods/test_fedease.py).
    """
    without_time: dict[str, Value] = {"regularization": 200.0, "nearness": "inf", "recency": "inf"}
    central, federated = (
        run(Experiment(method=name, settings=settings, data=data, device="cpu"), data_dir=real_data_dir).metrics
        for name, settings in (("ease", {}), ("fedease", without_time))
    )
    assert set(central) == set(federated)
    assert federated == pytest.approx(central, abs=tolerance)
