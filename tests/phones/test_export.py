"""The folder for a telephone: whole, checked, without what few people had; refusals in one line."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

from ownview.base.errors import SettingError
from ownview.federation.options import FederationOptions
from ownview.pages import scorer
from ownview.phones import export as phones
from ownview.phones.checking import Runtime
from ownview.releases.release_ledger import Ledger
from ownview.runs.experiment import Experiment
from ownview.runs.run import Run, run
from tests.outcome import Outcome
from tests.pages.worlds import ITEMS, KINDS, finished, write_world

SHAPE: dict[str, Any] = {"embedding_size": 8, "length": 6}
MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    **KINDS,
    "network": ("fedsasrec", SHAPE),
    "central network": ("sasrec", SHAPE),
    "network of distances and cosines": ("fedsasrec", {**SHAPE, "relative": True, "temperature": 0.2}),
    "blend": ("blend", {"parts": ("fedease", "fedsasrec embedding_size=8 length=6", "fedials embedding_size=5")}),
}


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("phones")


@pytest.fixture(scope="session")
def run_of(folder: Path) -> Callable[[str], Run]:
    """A run by the kind of form that its model has."""

    def one(kind: str) -> Run:
        method, settings = MODELS[kind]
        return finished(folder, method, **settings)

    return one


@pytest.mark.parametrize("kind", MODELS)
def test_every_kind_of_model_recommends_in_the_runtime_what_it_does_in_python(
    kind: str, run_of: Callable[[str], Run], tmp_path: Path
) -> None:
    done = phones.export_onnx(run_of(kind), tmp_path / "out", min_people=1)
    names = {"model.onnx", "items.csv", "model.json", "MODEL_CARD.md"}
    assert {file.name for file in done.path.iterdir()} == names
    found = re.search(r"differ by (\S+) of their range at most, (\S+) % of lists of ten are the same", done.runtime)
    assert found is not None
    difference, lists = map(float, found.groups())
    assert difference < 1e-5
    assert lists >= 80  # another processor may swap two items whose scores are rounding apart
    about = json.loads((done.path / "model.json").read_text(encoding="utf-8"))
    assert about["form"]["opset"] == 17
    assert ("after_pause" in about["form"]["inputs"]) == (kind == "blend")
    for name, expected in about["sha256"].items():
        assert hashlib.sha256((done.path / name).read_bytes()).hexdigest() == expected
    card = (done.path / "MODEL_CARD.md").read_text(encoding="utf-8")
    assert "input `history`" in card
    assert "scorer.py" not in card
    assert done.runtime in card
    if "network" in kind:
        assert any("for a network, whose weights may hold traces" in one for one in done.exposure.sentences())


def test_the_file_and_the_scorer_of_the_other_export_agree(run_of: Callable[[str], Run], tmp_path: Path) -> None:
    from ownview.pages.export import export

    mine = export(run_of("whole"), tmp_path / "arrays", min_people=2).path
    file = phones.export_onnx(run_of("whole"), tmp_path / "onnx", min_people=2).path / "model.onnx"
    assert (tmp_path / "onnx" / "items.csv").read_bytes() == (mine / "items.csv").read_bytes()
    model, runtime = scorer.Model(mine), Runtime(file)
    for history in ([3], [8, 2, 30], [5, 5, 9]):
        best = [model.place[item] for item, _, _ in model.recommend([model.items[place][0] for place in history])]
        assert runtime.asked(history)[1] == best


def test_what_few_people_had_is_in_no_part_of_a_blend(run_of: Callable[[str], Run], tmp_path: Path) -> None:
    done = phones.export_onnx(run_of("blend"), tmp_path / "out", min_people=4)
    left = (done.path / "items.csv").read_text(encoding="utf-8").count("\n") - 1
    assert left < ITEMS
    assert len(Runtime(done.path / "model.onnx").asked([0])[0]) == left
    said = done.exposure.sentences()
    assert said[0].startswith(f"left out: {ITEMS - left} items that fewer than 4 people had")
    assert "No attack was tried on the network in it" in said[0]


def test_under_a_budget_nothing_that_was_measured_on_people_is_written(folder: Path, tmp_path: Path) -> None:
    world = folder / "world.tsv"
    if not world.is_file():
        write_world(world)
    private = FederationOptions(privacy="central:epsilon=8,delta=1e-3")
    experiment = Experiment(method="fedease", data=str(world), rounds=1, federation=private)
    alone = run(experiment, out=tmp_path / "alone")
    done = phones.export_onnx(alone, tmp_path / "out")
    about = json.loads((done.path / "model.json").read_text(encoding="utf-8"))
    assert set(about["agreement"]) == {"sentence", "runtime"}
    assert "measured on people's histories, and stays with the run" in about["agreement"]["sentence"]
    assert {"seed", "fingerprint"}.isdisjoint({*about, *about["data"]})
    assert (done.path / "items.csv").read_text(encoding="utf-8").count("\n") == ITEMS + 1
    assert len(Ledger().entries()) == 1
    settings = {"embedding_size": 4, "local_epochs": 1}
    part = run(replace(experiment, method="fedmf", settings=settings), out=tmp_path / "part")
    parts = (f"fedmf embedding_size=4 local_epochs=1 @{part.folder.path}", "fedease")
    blended = run(Experiment(method="blend", data=str(world), settings={"parts": parts}), out=tmp_path / "blend")
    with pytest.raises(SettingError, match="was made under a budget, which does not cover the blend's weights"):
        phones.export_onnx(blended, tmp_path / "both")
    assert not (tmp_path / "both").exists()


def test_the_command_says_how_near_the_runtime_came(
    run_of: Callable[[str], Run], tmp_path: Path, ownview: Callable[..., Outcome]
) -> None:
    ridge = run_of("ridge").folder.path
    done = ownview("export", ridge, "--onnx", "-o", tmp_path / "out", "--min-people", "1")
    assert done.code == 0, done.err
    assert "scores of 25 histories differ by" in done.out
    both = ownview("export", ridge, "--onnx", "--new-items", "items.csv", "-o", tmp_path / "other")
    assert (both.code, both.err.count("\n")) == (2, 1)
    assert "--new-items" in both.err


def test_without_the_packages_one_line_says_what_to_install(run_of: Callable[[str], Run], tmp_path: Path) -> None:
    program = "import sys; sys.modules['onnxruntime'] = None\nfrom ownview.cli.main import entry\nentry()"
    line = ["export", str(run_of("whole").folder.path), "--onnx", "-o", str(tmp_path / "out")]
    done = subprocess.run([sys.executable, "-c", program, *line], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert 'pip install -e ".[onnx]"' in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "out").exists()


def test_a_file_that_is_not_the_model_is_not_written(
    run_of: Callable[[str], Run], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest = phones.as_onnx

    def wrong(form: Any, m: int, method: str) -> bytes:
        from ownview.seam.portable import Linear

        assert isinstance(form, Linear)
        return honest(replace(form, terms=(replace(form.terms[0], fades=0.5),)), m, method)

    monkeypatch.setattr(phones, "as_onnx", wrong)
    with pytest.raises(SettingError, match="too far from Python; nothing was written"):
        phones.export_onnx(run_of("whole"), tmp_path / "out", min_people=1)
    assert not (tmp_path / "out").exists()
