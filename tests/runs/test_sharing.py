"""A method of one's own travels: by file, by package, in its run folder; and a run can be verified."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import ownview as ov
from ownview.base import entry_points
from ownview.base.errors import OwnviewError, SettingError
from ownview.registry import METHODS, MODELS, find_model
from tests.apart import PATIENCE
from tests.outcome import Outcome

Command = Callable[..., Outcome]
METHOD = (Path(__file__).parents[2] / "examples" / "pairwise_mf.py").read_text(encoding="utf-8")
PLUGIN = '''
from dataclasses import dataclass, replace
from typing import ClassVar
import ownview as ov

@dataclass(frozen=True)
class Halved(ov.Plugin):
    """Fewer negatives."""
    name: ClassVar[str] = "halved"
    summary: ClassVar[str] = "as many negatives as it says"
    paper: ClassVar[str] = "none"
    count: int = ov.setting(1, "negatives", low=1)
    def changed(self, client, world):
        return replace(client, work=replace(client.work, negatives=self.count))
'''
BASELINE = '''
from dataclasses import dataclass
from typing import ClassVar
import torch
import ownview as ov

@dataclass(frozen=True)
class Reversed(ov.OneShot):
    """The least popular first."""
    name: ClassVar[str] = "reversed"
    summary: ClassVar[str] = "the least popular first"
    paper: ClassVar[str] = "none"
    def fit(self, split, excluded, seed):
        return {"counts": torch.bincount(split.train.values, minlength=split.num_items).float()}
    def scores(self, values, asked):
        return -values["counts"].expand(len(asked.users), -1)
'''


def test_plugins_and_baselines_come_by_file(tmp_path: Path, ownview: Command) -> None:
    (tmp_path / "halved.py").write_text(PLUGIN)
    (tmp_path / "reversed.py").write_text(BASELINE)
    short = ["--rounds", "1", "--set", "local_epochs=1", "--json"]
    done = ownview(
        "run", "fedmf", "--plugin", tmp_path / "halved.py", "--set", "halved.count=2", *short, "--out", tmp_path / "a"
    )
    assert json.loads(done.out)["method"] == "fedmf + halved"
    experiment = ov.open_run(tmp_path / "a").experiment
    assert dict(experiment.plugins) == {str((tmp_path / "halved.py").resolve()): {"count": 2}}
    done = ownview("run", tmp_path / "reversed.py", "--json", "--out", tmp_path / "b")
    assert json.loads(done.out)["test"]["HR@10"] < 0.02
    assert (tmp_path / "b" / "source" / "reversed.py").read_text() == BASELINE


class _Offered:
    """An entry point of a package."""

    dist = None

    def __init__(self, value: object) -> None:
        self.value, self.made = str(value), value

    def load(self) -> object:
        if isinstance(self.made, Exception):
            raise self.made
        return self.made


def test_packages_bring_methods_and_data_by_entry_points(monkeypatch: pytest.MonkeyPatch) -> None:
    from examples.fedprox import FedProx

    data = ov.load("goodbooks")
    offered = {
        entry_points.METHODS: {"fedprox": _Offered(FedProx), "broken": _Offered(ImportError("no such thing")),
                               "fedmf": _Offered(FedProx), "other": _Offered(FedProx), "none": _Offered(3)},
        entry_points.DATASETS: {"my-books": _Offered(lambda: data), "no-books": _Offered(lambda: 3)},
    }  # fmt: skip
    monkeypatch.setattr(entry_points, "named", lambda group: offered.get(group, {}))
    assert find_model("fedprox") is FedProx
    assert find_model("fedmf") is ov.FedMF, "names of Ownview are never replaced"
    run = ov.run("fedprox", "my-books", settings={"local_epochs": 1}, rounds=1)
    assert run.result["data"] == "my-books"
    for name, reason in (("broken", "cannot be imported"), ("other", "offers 'fedprox'"), ("none", "no subclass")):
        with pytest.raises(SettingError, match=reason):
            find_model(name)
    with pytest.raises(OwnviewError, match="made int; expected Interactions"):
        ov.load("no-books")
    MODELS.pop("fedprox"), METHODS.pop("fedprox")


def test_a_new_package_installs_and_conforms(tmp_path: Path, ownview: Command) -> None:
    assert ownview("new", "method", "my-method", "--out", tmp_path / "mine").code == 0
    environment = tmp_path / "site"
    made = subprocess.run(
        [sys.executable, "-m", "pip", "install", "--no-deps", "--no-build-isolation", "--no-index", "--target",
         str(environment), str(tmp_path / "mine")],
        capture_output=True, text=True, timeout=PATIENCE, check=False,
    )  # fmt: skip
    if "hatchling" in made.stderr and made.returncode:
        pytest.skip("hatchling is not installed here")
    assert made.returncode == 0, made.stderr
    code = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from ownview.registry import find_model\nfrom ownview.testing import CHECKS\n"
        "method = find_model('my-method')()\nassert type(method).__module__ == 'my_method'\n"
        "for name in ('loop equals vector', 'resumes exactly', 'learns'): CHECKS[name](method)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(environment)], capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert done.returncode == 0, done.stderr
    for wrong, reason in ((("method", "fedmf"), "a method of that name"), (("method", "My"), "small letters"),
                          (("thing", "x"), "expected method")):  # fmt: skip
        assert reason in ownview("new", *wrong).err


def test_a_run_travels_with_its_method_and_is_verified(tmp_path: Path, ownview: Command) -> None:
    """Moved to another folder, without the original file: verified, run again, equal; a changed copy is named."""
    here, there = tmp_path / "here", tmp_path / "there" / "copy"
    here.mkdir()
    (here / "mine.py").write_text(METHOD)
    short = ["--rounds", "2", "--set", "local_epochs=1", "--set", "embedding_size=4"]
    assert ownview("run", here / "mine.py", *short, "--out", here / "run").code == 0
    shutil.copytree(here / "run", there)
    shutil.rmtree(here)
    done = ownview("verify", there, "--json")
    assert done.code == 0, done.err
    assert [one["found"] for one in json.loads(done.out)["checks"]] == ["holds"] * 5
    refused = ownview("verify", there, "--again")
    assert refused.code == 2
    assert "did not name yourself" in refused.err
    again = ownview("verify", there, "--again", "--trust", "--json")
    assert again.code == 0, again.err
    assert json.loads(again.out)["checks"][-1]["sentence"] == "run once more, every figure of every user is the same"
    with (there / "source" / "mine.py").open("a") as source:
        source.write("# another\n")
    changed = ownview("verify", there)
    assert changed.code == 1
    assert "source/mine.py has changed" in changed.out
    assert "the run was made with" in changed.out
    assert "not what it says: files, method" in changed.err


def test_figures_that_were_changed_are_named(tmp_path: Path, ownview: Command) -> None:
    ov.run("popularity", out=tmp_path / "run")
    result = json.loads((tmp_path / "run" / "result.json").read_text())
    result["test"]["HR@10"] = 0.5
    (tmp_path / "run" / "result.json").write_text(json.dumps(result))
    done = ownview("verify", tmp_path / "run", "--again", "--json")
    found = {one["what"]: one for one in json.loads(done.out)["checks"]}
    assert done.code == 1
    assert {what for what, one in found.items() if one["found"] == "differs"} == {"files", "figures", "again"}
    assert "HR@10 was 0.5" in found["again"]["sentence"]
