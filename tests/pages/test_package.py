"""The npm package: packed as it would be published, and asked in Node for the lists that Python gives."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ownview.pages.export import export
from ownview.pages.page import page
from ownview.runs.run import Run
from ownview.serve.asking import RECOMMEND, from_body
from ownview.serve.listing import recommended, titled
from ownview.serve.model import ServedModel
from tests.pages.worlds import KINDS, histories
from tests.serve.worlds import fitted

PACKAGE = Path(__file__).resolve().parents[2] / "packages" / "ownview-scorer"
WISHES: list[dict[str, Any]] = [{}, {"again": True, "k": 70}, {"diversity": 0.4, "k": 8}, {"explain": True, "k": 5}]
ASK = """
import { readFileSync } from "node:fs";
import { Recommender } from "PACKAGE";
const { folder, page, cases, typed } = JSON.parse(readFileSync(0, "utf8"));
const read = (name) => Uint8Array.from(readFileSync(`${folder}/${name}`)).buffer;
const model = page ? await Recommender.fromPage(page) : await Recommender.fromFolder(read);
const lists = cases.map(({ history, ...wishes }) => model.recommend(history, wishes));
console.log(JSON.stringify({ lists, found: typed.map((text) => model.items(text, 6)) }));
"""


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A script that asks the package, which was unpacked from what npm packs."""
    if shutil.which("npm") is None or shutil.which("node") is None:
        pytest.skip("needs node and npm")
    base = tmp_path_factory.mktemp("npm")
    copy = base / "repository" / "packages" / PACKAGE.name  # packing writes into the folder
    shutil.copytree(PACKAGE, copy)
    shutil.copytree(
        PACKAGE.parents[1] / "src" / "ownview" / "pages" / "assets", copy.parents[1] / "src/ownview/pages/assets"
    )
    line = ["npm", "pack", "--offline", "--pack-destination", str(base), "--cache", str(base / "cache")]
    subprocess.run(line, cwd=copy, check=True, capture_output=True, timeout=120)
    assert not (copy / "lib").exists()
    with tarfile.open(next(base.glob("*.tgz"))) as file:
        file.extractall(base, filter="data")
    script = base / "ask.mjs"
    script.write_text(ASK.replace("PACKAGE", str(base / "package" / "index.js")), encoding="utf-8")
    return script


def _asked(script: Path, question: dict[str, Any]) -> dict[str, Any]:
    done = subprocess.run(
        ["node", str(script)], input=json.dumps(question), capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


@pytest.mark.parametrize("kind", KINDS)
def test_lists_and_titles_in_node_are_those_of_python(kind: str, packed: Path, tmp_path: Path) -> None:
    folder = tmp_path / "exported"
    export(fitted(tmp_path, kind), folder, min_people=1)
    model = ServedModel(folder)
    known = [[model.items[i][0] for i in history] for history in histories(25)]
    cases = [{"history": [*history, "unknown"], **wishes} for history in known for wishes in WISHES]
    typed = ["title 1", "ecoute str", "he said", "", "6"]
    answer = _asked(packed, {"folder": str(folder), "cases": cases, "typed": typed})
    for case, found in zip(cases, answer["lists"], strict=True):
        expected = recommended(model, from_body(json.dumps(case).encode(), RECOMMEND), None)["recommendations"]
        assert [one["item"] for one in found["recommendations"]] == [one["item"] for one in expected], case
        assert found["unknown"] == ["unknown"]
        for ours, theirs in zip(expected, found["recommendations"], strict=True):
            assert theirs["score"] == pytest.approx(ours["score"], rel=1e-9, abs=1e-9)
            assert [why["item"] for why in theirs.get("because", [])] == [
                why["item"] for why in ours.get("because", [])
            ]
    for text, listed in zip(typed, answer["found"], strict=True):
        assert listed == titled(model, text, 6)["items"], text


def test_the_model_of_a_page_is_read_too(packed: Path, run_of: Callable[[str], Run], tmp_path: Path) -> None:
    made = page(run_of("whole"), tmp_path / "page.html", min_people=1)
    html = made.path.read_text(encoding="utf-8")
    found = re.search(r'<script[^>]*id="model"[^>]*>(.*?)</script>', html, re.DOTALL)
    assert found is not None
    model = json.loads(found[1])
    answer = _asked(packed, {"page": model, "cases": [{"history": model["ids"][:3], "k": 5}], "typed": []})
    assert len(answer["lists"][0]["recommendations"]) == 5


def test_the_package_depends_on_nothing_and_has_the_version_of_the_program() -> None:
    from ownview.base.version import __version__

    about = json.loads((PACKAGE / "package.json").read_text(encoding="utf-8"))
    assert "dependencies" not in about
    assert about["version"] == __version__
