"""What the pages of the classical baselines say of ml-100k."""

from __future__ import annotations

from pathlib import Path

import pytest

from ownview.experiment import Experiment
from ownview.runs.run import run


@pytest.mark.realdata
@pytest.mark.parametrize(
    ("method", "expected"), [("popularity", 0.0758), ("ease", 0.1198), ("ials", 0.1283), ("itemknn", 0.0912)]
)
def test_hit_rate_among_all_items(method: str, expected: float, real_data_dir: Path) -> None:
    """Equal up to one or two users: other processors round otherwise."""
    done = run(Experiment(method=method, data="ml-100k", device="cpu"), data_dir=real_data_dir)
    assert done.metrics["HR@10"] == pytest.approx(expected, abs=0.0025)
