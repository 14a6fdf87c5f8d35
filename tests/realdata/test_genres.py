"""Films by titles, years and genres: ml-100k as a public wheel holds it, which this project may not contain."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.outcome import Outcome

from ownview.config.settings import Value
from ownview.evaluation.named_protocols import protocol
from ownview.runs.experiment import Experiment
from ownview.runs.run import run

WHEEL, INSIDE = "recbole==1.2.1", "recbole/dataset_example/ml-100k/ml-100k"


@pytest.fixture(scope="module")
def films(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel's ml-100k.inter, .item and .user."""
    folder = tmp_path_factory.mktemp("films")
    asked = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--retries", "0", "--timeout", "10",
             "--only-binary", ":all:", "-d", str(folder), WHEEL]  # fmt: skip
    done = subprocess.run(asked, capture_output=True, text=True, timeout=300, check=False)
    if done.returncode:
        pytest.skip(f"{WHEEL} cannot be downloaded here: {done.stderr.strip().splitlines()[-1:]}")
    with zipfile.ZipFile(next(folder.glob("*.whl"))) as wheel:
        for kind in ("inter", "item", "user"):
            (folder / f"ml-100k.{kind}").write_bytes(wheel.read(f"{INSIDE}.{kind}"))
    return folder


@pytest.mark.slow
def test_genres_tell_new_films_apart(films: Path, ownview: Callable[..., Outcome], tmp_path: Path) -> None:
    files = (
        str(films / "ml-100k.inter"),
        "--items",
        str(films / "ml-100k.item"),
        "--users",
        str(films / "ml-100k.user"),
    )
    done = ownview("data", "import", *files, "--name", "ml-100k-genres", "--data-dir", str(tmp_path))
    assert done.code == 0, done.err
    assert "ml-100k-genres: 943 users, 1,682 items, 100,000 rows" in done.out

    def measured(method: str, **settings: Value) -> float:
        experiment = Experiment(
            method, data="ml-100k-genres", protocol=protocol("new-items"), settings=settings, device="cpu"
        )
        return run(experiment, data_dir=tmp_path).metrics["NDCG@10"]

    forever = float("inf")
    chance, text = measured("random-order"), measured("text", recency=forever)
    carried = measured("fedease", nearness=forever, recency=forever, regularization=10.0)
    assert 1.5 * chance < text < carried, (chance, text, carried)
