"""The examples run as they stand, and what the README says of them is what they are."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from examples.biased_mf import BiasedMF
from examples.pairwise_mf import PairwiseMF

import ownview as ov
from ownview.evaluation.named_protocols import protocol
from ownview.testing import CHECKS
from tests.apart import PATIENCE

ROOT = Path(__file__).resolve().parents[1]


def test_the_quick_start_runs() -> None:
    done = subprocess.run(
        [sys.executable, "examples/quickstart.py"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
        timeout=PATIENCE,
    )
    lines = done.stdout.splitlines()
    assert lines[0] == "1200 readers, 2000 books, 92756 ratings"
    assert lines[1].startswith("protocol honest, seed 0, round ")
    assert [line[:3] for line in lines[-6:-1]] == ["1. ", "2. ", "3. ", "4. ", "5. "]


def test_the_readme_shows_the_quick_start_word_for_word() -> None:
    source = (ROOT / "examples" / "quickstart.py").read_text(encoding="utf-8")
    shown = source.split('"""\n\n', 1)[1]
    assert shown in (ROOT / "README.md").read_text(encoding="utf-8")
    assert len([line for line in shown.splitlines() if line.strip()]) <= 20


def test_the_notebook_runs_and_is_committed_without_output() -> None:
    notebook = json.loads((ROOT / "examples" / "books.ipynb").read_text(encoding="utf-8"))
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in cells)
    names: dict[str, Any] = {}
    for cell in cells:
        exec("".join(cell["source"]), names)
    assert names["run"].metrics["HR@10"] > names["popular"].metrics["HR@10"]
    assert names["lists"].height == 5
    assert names["lists"]["fedease"].n_unique() == 5


@pytest.mark.parametrize("method", [BiasedMF(), PairwiseMF()], ids=lambda method: method.name)
def test_a_method_of_ones_own_conforms(method: ov.Method) -> None:
    for check in ("loop equals vector", "touched equals dense", "resumes exactly", "learns"):
        CHECKS[check](method)


def test_a_newcomers_method_is_short() -> None:
    """An item bias and a loss over pairs, without a look at the engine."""
    source = (ROOT / "examples" / "pairwise_mf.py").read_text(encoding="utf-8")
    assert len(source.splitlines()) <= 45
    assert "import ownview as ov" in source
    assert "ownview.engine" not in source


def test_a_method_without_a_registered_name_runs_resumes_and_recommends(tmp_path: Path) -> None:
    data = ov.load("goodbooks")
    run = ov.run(BiasedMF(embedding_size=4, local_epochs=1), data, rounds=2, out=tmp_path / "run")
    assert len(run.recommend(data.users[0], k=3)) == 3
    again = ov.resume(tmp_path / "run", model=BiasedMF(embedding_size=4, local_epochs=1), data=data)
    assert again.metrics == run.metrics
    assert [one.item for one in again.recommend(data.users[0], k=3)] == [
        one.item for one in run.recommend(data.users[0], k=3)
    ]


@pytest.mark.parametrize(
    ("name", "differs"),
    [
        ("paper_chosen_on_test", {"selection"}),
        ("paper_fedrap", {"selection", "same_candidates"}),
        ("paper_without_leak", {"negatives_avoid"}),
    ],
)
def test_a_protocol_file_changes_what_it_says_and_nothing_else(name: str, differs: set[str]) -> None:
    found, paper = protocol(str(ROOT / "examples" / f"{name}.toml")).values(), ov.PAPER.values()
    assert {key for key, value in found.items() if value != paper[key]} == {*differs, "name"}


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("node") is None, reason="the readers need node")
def test_fifty_readers_send_one_message_each_and_the_sum_is_exact(tmp_path: Path) -> None:
    pytest.importorskip("cryptography.hazmat.primitives.hpke")
    pytest.importorskip("starlette")
    line: list[str | Path] = [sys.executable, ROOT / "examples" / "browser_demo.py", tmp_path / "demo"]
    subprocess.run(line, cwd=ROOT, check=True, capture_output=True, timeout=PATIENCE)
    (page,) = (tmp_path / "demo").glob("*.html")
    text = page.read_text(encoding="utf-8")
    assert "<h1>42 readers contributed</h1>" in text
    assert "The sum is exactly that of their histories" in text
