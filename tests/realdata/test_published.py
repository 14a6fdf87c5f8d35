"""On the papers' data: what the methods reach. The long runs are marked slow."""

from __future__ import annotations

from pathlib import Path

import pytest

import ownview as ov
from ownview.data import load

pytestmark = pytest.mark.realdata


def _run(
    method: ov.Method | ov.Popularity, protocol: str, rounds: int, data_dir: Path, data: str = "ml-100k"
) -> ov.Run:
    return ov.run(method, load(data, data_dir=data_dir), protocol=protocol, rounds=rounds)


def test_popularity_is_where_it_was_measured_independently(real_data_dir: Path) -> None:
    """Full ranking, leave-one-out by time: 0.082 / 0.039; the exact value moves with tie-breaking."""
    metrics = _run(ov.Popularity(), "honest", 1, real_data_dir).metrics
    assert 0.07 <= metrics["HR@10"] <= 0.09
    assert 0.034 <= metrics["NDCG@10"] <= 0.044


def test_local_only_shows_the_leak_within_a_few_rounds(real_data_dir: Path) -> None:
    """Trained alone, a client cannot know other items; above chance under `paper`, at chance under `honest`."""
    method = ov.LocalOnly(embedding_size=8, local_epochs=3, learning_rate=0.1)
    paper = _run(method, "paper", 5, real_data_dir).metrics
    honest = _run(method, "honest", 5, real_data_dir).metrics
    assert paper["HR@10"] > 0.2
    assert honest["HR@10"] < 0.02
    assert abs(honest["AUC"] - 0.5) < 0.05


@pytest.mark.slow
def test_pfedrec_reproduces_its_paper(real_data_dir: Path) -> None:
    """The paper: 0.716 / 0.434 on ml-100k."""
    metrics = _run(ov.PFedRec(), "paper", 100, real_data_dir).metrics
    assert 0.70 <= metrics["HR@10"] <= 0.75
    assert 0.42 <= metrics["NDCG@10"] <= 0.46
    honest = _run(ov.PFedRec(), "honest", 100, real_data_dir).metrics
    assert 0.10 <= honest["HR@10"] <= 0.13


@pytest.mark.slow
def test_fedmf_and_local_only_reproduce_their_figures(real_data_dir: Path) -> None:
    assert 0.45 <= _run(ov.FedMF(), "paper", 100, real_data_dir).metrics["HR@10"] <= 0.54
    assert _run(ov.LocalOnly(), "paper", 100, real_data_dir).metrics["HR@10"] > 0.85
    assert _run(ov.LocalOnly(), "honest", 100, real_data_dir).metrics["HR@10"] < 0.02
