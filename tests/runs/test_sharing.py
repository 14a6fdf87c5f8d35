"""A method of one's own travels: by file, by package, in its run folder; and a run can be verified."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import venv
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

import ownview as ov
from ownview.base import entry_points
from ownview.base.errors import OwnviewError, SettingError
from ownview.registry import METHODS, MODELS, find_model
from ownview.runs.verifying import DIFFERS, HOLDS, UNKNOWN, came_out_again
from ownview.testing import CHECKS
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


OFFERS = """
[project.entry-points."ownview.plugins"]
halved = "my_method.halved:Halved"
[project.entry-points."ownview.baselines"]
reversed = "my_method.reversed:Reversed"
[project.entry-points."ownview.datasets"]
six-books = "my_method.books:six_books"
"""
BOOKS = """
import ownview as ov

def six_books():
    people, books = zip(*((p, b) for p in range(30) for b in range(6) if (p + b) % 7), strict=True)
    return ov.Interactions.from_rows("six-books", people, books, timestamp=range(len(books)))
"""


class Environment(NamedTuple):
    """A virtual environment of a test's own, and a package beside it."""

    python: Path
    package: Path

    def run(self, *words: str, code: int = 0) -> str:
        """What a process in the package's folder prints; it must end with `code`."""
        done = subprocess.run(
            [self.python, *words], cwd=self.package, capture_output=True, text=True, timeout=PATIENCE, check=False
        )
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + done.stderr


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """`ownview new method my-method`, installed by pip as its README says, with a plug-in, a baseline and data."""
    pytest.importorskip("hatchling", reason="hatchling, which builds the package, is not installed here")
    pytest.importorskip("editables", reason="editables, which builds the package, is not installed here")
    place = tmp_path_factory.mktemp("new")
    package, python = place / "my-method", place / "venv" / "bin" / "python"
    subprocess.run(
        [sys.executable, "-m", "ownview", "new", "method", "my-method"], cwd=place, check=True, timeout=PATIENCE
    )
    for name, text in (("halved", PLUGIN), ("reversed", BASELINE), ("books", BOOKS)):
        (package / "src" / "my_method" / f"{name}.py").write_text(text)
    with (package / "pyproject.toml").open("a") as project:
        project.write(OFFERS)
    venv.create(place / "venv", with_pip=False)
    (site,) = (place / "venv" / "lib").glob("python*/site-packages")
    # What is installed here is there too, packages in editable mode as well (`addsitedir` follows their own paths).
    here = [one for one in sys.path if Path(one).is_dir() and one.endswith("-packages")]
    (site / "here.pth").write_text("\n".join(f"import site; site.addsitedir({one!r})" for one in here))
    offline = ("--no-index", "--no-build-isolation", "--disable-pip-version-check")
    subprocess.run(
        [sys.executable, "-m", "pip", "--python", python, "install", "--quiet", *offline, "-e", ".[test]"],
        cwd=package, check=True, timeout=PATIENCE,
    )  # fmt: skip
    return Environment(python, package)


def test_an_installed_package_brings_methods_plugins_baselines_and_data(environment: Environment) -> None:
    words = (
        "-m",
        "ownview",
        "run",
        "my-method",
        "--plugin",
        "halved",
        "--data",
        "six-books",
        "--rounds",
        "1",
        "--json",
    )
    found = json.loads(
        environment.run(*words, "--out", "one").partition("{")[2].join(("{", "")).rpartition("}")[0] + "}"
    )
    assert (found["method"], found["data"]) == ("my-method + halved", "six-books")
    assert "reversed" in environment.run("-m", "ownview", "run", "reversed", "--data", "six-books", "--out", "two")
    assert "did you mean 'my-method'" in environment.run("-m", "ownview", "run", "my-methd", code=2)


@pytest.mark.slow
def test_a_new_package_passes_its_own_tests(environment: Environment) -> None:
    done = environment.run("-m", "pytest", "-q", "-p", "no:cacheprovider")
    assert f"{len(CHECKS)} passed" in done


def test_a_package_needs_a_name_of_its_own(ownview: Command) -> None:
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
    assert str(tmp_path) not in (here / "run" / "experiment.toml").read_text(), "a path of the machine travels"
    assert ov.open_run(here / "run").experiment.method == str(here / "mine.py")
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
    assert "stated 0.5" in found["again"]["sentence"]


def test_other_rounding_is_told_from_another_result(tmp_path: Path) -> None:
    """Only where the machine or the versions are others, and no further than a figure's digits or its interval."""
    made = ov.run("popularity", out=tmp_path / "run")
    here = made.folder.read_provenance()
    there = {**here, "machine": {**here["machine"], "processor": "another\nkind"}}
    hits = made.result["test"]["HR@10"]

    def found(stated: float, then: dict[str, object]) -> tuple[str, str]:
        one = came_out_again({**made.result, "test": {**made.result["test"], "HR@10": stated}}, then, made)
        return one.found, one.sentence

    assert found(hits, there)[0] == HOLDS
    for then in (here, {**here, "machine": here["machine"], "packages": dict(here["packages"])}):
        assert found(hits + 1e-9, then)[0] == DIFFERS
    close, sentence = found(hits + 1e-9, there)
    assert (close, "\n" in sentence, "processor another kind then" in sentence) == (HOLDS, False, True)
    low, high = made.result["interval_95"]["HR@10"]
    assert found((hits + high) / 2, there)[0] == UNKNOWN
    assert found((hits + high) / 2, here)[0] == DIFFERS
    assert found(high + 1e-3, there)[0] == DIFFERS
    assert found(low - 1e-3, {"machine": "none", "packages": 3})[0] == DIFFERS
    assert found((hits + high) / 2, {"machine": "none", "packages": 3})[0] == UNKNOWN
