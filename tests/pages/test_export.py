"""The folder for a device: whole, checked, and its scorer equals Python with numpy alone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from ownview.base.display.amounts import readable
from ownview.base.errors import OutputError
from ownview.base.files import write_folder
from ownview.pages import scorer
from ownview.pages.export import Exported, export
from ownview.pages.run_model import RunModel
from ownview.runs.run import Run
from tests.outcome import Outcome
from tests.pages.worlds import HOSTILE, ITEMS, KINDS, histories

ASKED = """
import json, sys
sys.path.insert(0, sys.argv[1])
import scorer
found = [scorer.Model().scores(history).tolist() for history in json.load(sys.stdin)]
others = sorted({"torch", "scipy", "polars", "safetensors", "ownview"} & {name.split(".")[0] for name in sys.modules})
print(json.dumps({"scores": found, "others": others}))
"""


@pytest.fixture(scope="session")
def exported(run_of: Callable[[str], Run], tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Exported]:
    folder, done = tmp_path_factory.mktemp("exported"), dict[str, Exported]()

    def one(kind: str) -> Exported:
        if kind not in done:
            done[kind] = export(run_of(kind), folder / kind, min_people=1)
        return done[kind]

    return one


def test_the_scorer_is_short() -> None:
    assert len(Path(scorer.__file__).read_text(encoding="utf-8").splitlines()) < 125


@pytest.mark.parametrize("kind", KINDS)
def test_the_scorer_equals_python_and_needs_numpy_alone(
    kind: str, run_of: Callable[[str], Run], exported: Callable[[str], Exported]
) -> None:
    asked = [*histories(20), [], [3, 4, 3]]
    done = subprocess.run(
        [sys.executable, "-I", "-B", "-c", ASKED, str(exported(kind).path)],
        input=json.dumps(asked), capture_output=True, text=True, check=True,
    )  # fmt: skip
    answer = json.loads(done.stdout)
    assert answer["others"] == []
    form = RunModel.of(run_of(kind)).form
    expected = torch.stack([form.scores(torch.tensor(one, dtype=torch.long)) for one in asked])
    np.testing.assert_allclose(np.array(answer["scores"]), expected.numpy(), rtol=1e-5, atol=1e-5)


def test_the_folder_says_what_it_is(run_of: Callable[[str], Run], exported: Callable[[str], Exported]) -> None:
    done = exported("whole")
    assert {file.name for file in done.path.iterdir()} == {
        "model.safetensors", "items.csv", "model.json", "scorer.py", "MODEL_CARD.md",
    }  # fmt: skip
    assert done.bytes == sum(file.stat().st_size for file in done.path.iterdir())
    about = json.loads((done.path / "model.json").read_text(encoding="utf-8"))
    run = run_of("whole")
    assert about["form"] == {
        "kind": "linear", "bias": False, "terms": [{"weights": "whole", "fades": 4.0, "most": None}],
    }  # fmt: skip
    assert about["figures"]["HR@10"]["value"] == run.metrics["HR@10"]
    assert (about["protocol"], about["method"]["name"]) == ("honest", "fedease")
    assert about["privacy"]["leaves_a_device"] == ["pairs of its items, once"]
    assert about["agreement"]["top_ten_overlap"] == done.fidelity.overlap > 0.99
    card = (done.path / "MODEL_CARD.md").read_text(encoding="utf-8")
    for said in ("## Data", "## Figures", "## Privacy", "## Licence", "pairs of its items, once", "not known"):
        assert said in card
    trained = json.loads((exported("logistic").path / "model.json").read_text(encoding="utf-8"))
    assert trained["privacy"]["leaves_a_device"][0] == "what training changed in items"
    for said in (card, about["privacy"]["sentence"]):
        assert "simulated: all rows lay in one file, and no device sent anything" in said
        assert "devices sent" not in said
    central = (exported("rows").path / "MODEL_CARD.md").read_text(encoding="utf-8")
    assert "Not federated" in central


def test_a_model_without_a_test_figure_says_so(run_of: Callable[[str], Run], tmp_path: Path) -> None:
    run, origin = run_of("rows"), {"run": "/a/place", "protocol": "honest", "test": {"HR@10": 0.25, "NDCG@10": 0.125}}
    measured = ("test", "interval_95", "users_ranked")
    plain = {name: value for name, value in run.result.items() if name not in measured}
    fitted = replace(run, result={**plain, "no_test_figure": "nothing was held out", "settings_from": origin})
    card = (export(fitted, tmp_path / "made").path / "MODEL_CARD.md").read_text(encoding="utf-8")
    assert "There is none: nothing was held out." in card
    assert "reached HR@10 0.2500 and NDCG@10 0.1250" in card
    assert "/a/place" not in card + (tmp_path / "made" / "model.json").read_text(encoding="utf-8")


def test_ids_and_titles_come_back_and_cannot_steer_a_terminal(exported: Callable[[str], Exported]) -> None:
    folder = exported("whole").path
    model = scorer.Model(folder)
    assert len(model.items) == ITEMS
    assert set(HOSTILE) <= set(model.place)
    shown = model.recommend([HOSTILE[0], "Title 20"], k=5)
    assert len(shown) == 5
    assert not {HOSTILE[0], "Title 20"} & {item for item, _, _ in shown}
    done = subprocess.run(
        [sys.executable, "-I", "-B", folder / "scorer.py", HOSTILE[1], "Title 8"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert len(done.stdout.splitlines()) == 10
    assert "\x1b" not in done.stdout


@pytest.mark.parametrize(
    ("history", "message"), [([], "no ids; expected ids"), (["Title 8", "zz"], "no item has the id 'zz'; expected ids")]
)
def test_a_history_that_tells_nothing_is_refused(
    exported: Callable[[str], Exported], history: list[str], message: str
) -> None:
    program = exported("whole").path / "scorer.py"
    done = subprocess.run(
        [sys.executable, "-I", "-B", program, *history], capture_output=True, text=True, check=False
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"scorer.py: {message}")


def test_a_damaged_file_is_noticed(exported: Callable[[str], Exported], tmp_path: Path) -> None:
    for file in exported("whole").path.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    content = bytearray((tmp_path / "model.safetensors").read_bytes())
    content[-1] ^= 1
    (tmp_path / "model.safetensors").write_bytes(content)
    with pytest.raises(ValueError, match=r"model\.safetensors: is damaged"):
        scorer.Model(tmp_path)


def test_an_existing_folder_is_left_alone(
    run_of: Callable[[str], Run], tmp_path: Path, ownview: Callable[..., Outcome]
) -> None:
    there = tmp_path / "there"
    there.mkdir()
    outcome = ownview("export", run_of("whole").folder.path, "-o", there)
    assert outcome.code == 2
    assert outcome.err.strip() == f"ownview: {there}: already exists; choose another --out"
    assert list(there.iterdir()) == []


def test_a_folder_is_whole_or_not_there(tmp_path: Path) -> None:
    def fail(folder: Path) -> None:
        (folder / "half").write_text("half")
        raise OSError(28, "No space left on device")

    with pytest.raises(OutputError, match="No space left on device"):
        write_folder(tmp_path / "deep" / "made", fail)
    assert list((tmp_path / "deep").iterdir()) == []


def test_rights_follow_the_umask(run_of: Callable[[str], Run], tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        made = export(run_of("rows"), tmp_path / "made").path
    finally:
        os.umask(before)
    assert {file.stat().st_mode & 0o777 for file in made.iterdir()} == {0o600}
    assert made.stat().st_mode & 0o777 == 0o700


def test_the_command_says_where_and_how_alike(
    run_of: Callable[[str], Run], tmp_path: Path, ownview: Callable[..., Outcome]
) -> None:
    outcome = ownview("export", run_of("ridge").folder.path, "-o", tmp_path / "made", "--min-people", "1")
    assert outcome.code == 0
    size = readable(sum(file.stat().st_size for file in (tmp_path / "made").iterdir()))
    assert f"{tmp_path / 'made'}: {size}\n" in outcome.out
    assert "100.0 % of its ten recommendations are those of the full model" in outcome.out
