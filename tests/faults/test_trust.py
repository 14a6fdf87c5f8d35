"""A Python file that a stranger's folder, experiment or suite names is not run unless a person says so."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import ownview as ov
from ownview.base.trust import UntrustedError, afresh
from ownview.cli import trusting
from ownview.runs.experiment import Experiment
from ownview.runs.run import open_run
from tests.outcome import Outcome

METHOD = """
from pathlib import Path

from ownview.methods.fedmf import FedMF

Path("was-run").touch()


class Mine(FedMF):
    name = "mine"
"""
QUICK = ("--rounds", "1", "--set", "embedding_size=4", "--set", "local_epochs=1")


@pytest.fixture
def strange(here: Path, ownview: Callable[..., Outcome]) -> Iterator[Path]:
    """mine.py, and everything that can name it: a run folder, one that has begun, an experiment file, a suite."""
    Path("mine.py").write_text(METHOD)
    assert ownview("run", "mine.py", "--data", "world.csv", *QUICK, "--out", "theirs").code == 0
    Path("was-run").unlink()
    Path("theirs.toml").write_text(f"method = 'mine.py'\ndata = '{here}/world.csv'\nrounds = 1\n")
    Path("suite.toml").write_text("rounds = 1\ndata = ['goodbooks']\n[[rows]]\nmethod = 'mine.py'\n")
    layered = (
        "rounds = 1\ndata = ['goodbooks']\n[[rows]]\nmethod = 'fedmf'\n[rows.data.goodbooks]\nmethod = 'mine.py'\n"
    )
    Path("layered.toml").write_text(layered)
    Path("begun/experiment.toml").write_text(
        Path("begun/experiment.toml").read_text().replace('"fedmf"', f'"{here}/mine.py"')
    )
    yield here / "mine.py"
    sys.modules.pop("ownview_user_method_mine", None)


NAMING = [
    ("recommend", "theirs", "--user", "u1"),
    ("run", "--resume", "begun"),
    ("run", "--config", "theirs.toml", "--out", "other"),
    ("bench", "suite.toml", "--list"),
    ("bench", "layered.toml", "--list"),
    ("bench", "suite.toml"),
]


@pytest.mark.parametrize("arguments", NAMING, ids=" ".join)
def test_without_a_person_it_is_refused_with_path_and_hash(
    arguments: tuple[str, ...], strange: Path, refused: Callable[..., str]
) -> None:
    line = refused(*arguments)
    assert f"{strange}: a Python file that you did not name yourself" in line
    assert hashlib.sha256(strange.read_bytes()).hexdigest() in line
    assert "--trust" in line
    assert not Path("was-run").exists()


@pytest.mark.parametrize("arguments", [NAMING[0], NAMING[2], NAMING[3]], ids=" ".join)
def test_with_trust_it_runs(arguments: tuple[str, ...], strange: Path, ownview: Callable[..., Outcome]) -> None:
    assert ownview(*arguments, "--trust").code == 0
    assert Path("was-run").exists()


@pytest.mark.parametrize(("answer", "code"), [("y\n", 0), ("n\n", 2), ("", 2), ("\n", 2)], ids=repr)
def test_a_person_is_asked_and_shown_path_and_hash(
    answer: str, code: int, strange: Path, ownview: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch
) -> None:
    import io

    monkeypatch.setattr(trusting, "interactive", lambda: True)
    monkeypatch.setattr(sys, "stdin", io.StringIO(answer))
    outcome = ownview("recommend", "theirs", "--user", "u1")
    assert outcome.code == code
    assert f"  {strange}\n  SHA-256 {hashlib.sha256(strange.read_bytes()).hexdigest()}\nRun it? [y/N] " in outcome.err
    assert Path("was-run").exists() == (code == 0)


def test_looking_at_a_folder_runs_nothing_and_asks_nothing(strange: Path, ownview: Callable[..., Outcome]) -> None:
    assert ownview("report", "theirs").code == 0
    assert ownview("ls", "runs", "--folder", ".").code == 0
    assert not Path("was-run").exists()


def test_what_a_person_names_on_the_command_line_is_meant(strange: Path, ownview: Callable[..., Outcome]) -> None:
    given = ("--data", "world.csv", *QUICK)
    assert ownview("compare", "mine.py", "popularity", *given, "--out", "both").code == 0
    assert ownview("compare", "mine.py", "popularity", *given, "--resume", "both").code == 0
    assert ownview("run", strange, "--resume", "theirs").code == 0


def test_in_python_a_file_has_to_be_trusted_as_it_is(strange: Path) -> None:
    with afresh():
        theirs = open_run(Path("theirs"))
        with pytest.raises(UntrustedError, match=r"ownview\.trust\(FILE\)"):
            theirs.recommend("u1")
        ov.trust(strange)
        assert theirs.recommend("u1")
        strange.write_text(METHOD + "\n# more")
        with pytest.raises(UntrustedError):
            Experiment.load(Path("theirs.toml"))


def test_what_is_run_is_what_was_trusted_and_no_compiled_file_beside_it(strange: Path) -> None:
    """A compiled file whose time and size fit would be taken by an import instead of the source."""
    import importlib.util
    import os
    import py_compile

    evil = METHOD.replace("was-run", "was-evl")
    source = strange.stat()
    strange.write_text(evil)
    os.utime(strange, ns=(source.st_atime_ns, source.st_mtime_ns))
    py_compile.compile(str(strange), importlib.util.cache_from_source(str(strange)), doraise=True)
    strange.write_text(METHOD)
    os.utime(strange, ns=(source.st_atime_ns, source.st_mtime_ns))
    with afresh():
        ov.trust(strange)
        Experiment.load(Path("theirs.toml"))
    assert not Path("was-evl").exists()
    assert Path("was-run").exists()
