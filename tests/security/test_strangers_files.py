"""A stranger's file or folder names a Python file: no command runs it, unless the user named it or trusts it.

What was possible: a file had to be trusted where an experiment's or a suite's `method` named it. A blend's `parts`, the
record that `bench --record` takes up and whatever else named a file were not looked at. So `run --config`, `run
--resume`, `fit --like`, `recommend`, `page`, `export`, `bench --list` and `bench --record` ran it without a word: nine
of the commands below. Now the one place where a file is loaded denies. Every command must end with one line and code
2, and leave no trace of `evil.py`; with --trust it runs.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import ownview as ov
from ownview.base.trust import UntrustedError, afresh, named_by_user
from ownview.cli.main import entry
from ownview.runs.batch import BatchError, run_each
from ownview.runs.experiment import Experiment
from tests.faults.conftest import write_world
from tests.outcome import Outcome

MARKER = "evil-was-here"
EVIL = """
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from ownview import FedEASE

Path({marker!r}).touch()


@dataclass(frozen=True)
class Evil(FedEASE):
    name: ClassVar[str] = "evil"
"""


def _rewrite(file: Path, *pairs: tuple[str, str]) -> None:
    text = file.read_text(encoding="utf-8")
    for old, new in pairs:
        assert old in text, (file, old)
        text = text.replace(old, new)
    file.write_text(text, encoding="utf-8")


def _done(folder: Path, *arguments: str | Path) -> None:
    """Carry out a command that must succeed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setattr(sys, "argv", ["ownview", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            entry()
    assert ended.value.code == 0, arguments


@pytest.fixture(scope="module")
def _sent(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Everything a stranger might send, all of it naming evil.py, which would leave a marker."""
    here = tmp_path_factory.mktemp("sent")
    write_world(here / "world.csv")
    evil = here / "evil.py"
    evil.write_text(EVIL.format(marker=str(here / MARKER)), encoding="utf-8")
    data = ("--data", "world.csv")
    _done(here, "run", evil, *data, "--out", "plain")
    _done(here, "run", "fedease", *data, "--out", "honest")
    _done(here, "run", "blend", *data, "--set", f"parts={evil},fedease", "--out", "mixed")
    _done(here, "start", "world.csv", "--method", "fedease", "--out", "started")
    for finished in ("plain", "mixed"):
        begun = here / f"begun-{finished}"
        shutil.copytree(here / finished, begun)
        (begun / "result.json").unlink()
    _rewrite(here / "started/model/experiment.toml", ('method = "fedease"', f'method = "{evil}"'))
    _write_experiments(here, evil)
    _write_suites(here, evil)
    _done(here, "bench", "recorded.toml", "--record", "record", "--out", "benched", "--jobs", "1")
    file = here / "record/recorded.json"
    record = json.loads(file.read_text(encoding="utf-8"))
    record["runs"][0]["run"] = "of-another-version"
    record["runs"][0]["experiment"]["method"] = str(evil)
    file.write_text(json.dumps(record), encoding="utf-8")
    return evil


def _write_experiments(here: Path, evil: Path) -> None:
    given = f"data = '{here}/world.csv'\nrounds = 1\n"
    blend = f"method = 'blend'\n{given}[settings]\nparts = "
    texts = {
        "plain": f"method = '{evil}'\n{given}",
        "relative": f"method = 'evil.py'\n{given}",
        "parts": f"{blend}['fedease', '{evil}']\n",
        "nested": f"{blend}['fedease', 'blend parts=evil.py/fedease']\n",
    }
    for name, text in texts.items():
        (here / f"{name}.toml").write_text(text, encoding="utf-8")


def _write_suites(here: Path, evil: Path) -> None:
    books, small = ("rounds = 1\ndata = ['goodbooks']\n", f"rounds = 1\ndata = ['{here}/world.csv']\n")
    clean, dirty = "[[rows]]\nmethod = 'fedease'\n", f"[[rows]]\nmethod = '{evil}'\n"
    texts = {
        "suite": books + dirty,
        "suite-layer": f"{books}{clean}[rows.data.goodbooks]\nmethod = '{evil}'\n",
        "suite-parts": f"{books}[[rows]]\nmethod = 'blend'\nsettings = {{ parts = ['fedease', '{evil}'] }}\n",
        "suite-small": small + clean + dirty,
        "recorded": small + clean,
    }
    for name, text in texts.items():
        (here / f"{name}.toml").write_text(text, encoding="utf-8")


@pytest.fixture
def theirs(_sent: Path, own_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """evil.py in the stranger's folder, which is where commands are given."""
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.chdir(_sent.parent)
    _clear()
    _sent.with_name(MARKER).unlink(missing_ok=True)
    yield _sent
    _clear()
    sys.modules.pop("ownview_user_method_evil", None)


def _clear() -> None:
    """Remove what commands have written."""
    for place in Path().glob("new*"):
        shutil.rmtree(place) if place.is_dir() else place.unlink()


RUNS_IT = [
    ("run", "--config", "plain.toml", "--out", "new"),
    ("run", "--config", "relative.toml", "--out", "new"),
    ("run", "--config", "parts.toml", "--out", "new"),
    ("run", "--resume", "begun-plain"),
    ("run", "--resume", "begun-mixed"),
    ("fit", "--like", "plain", "--out", "new"),
    ("fit", "--like", "mixed", "--out", "new"),
    ("fit", "--resume", "begun-plain"),
    ("recommend", "plain", "--user", "u1"),
    ("recommend", "mixed", "--user", "u1"),
    ("recommend", "mixed", "--all", "-o", "new.csv"),
    ("page", "plain", "-o", "new.html"),
    ("export", "plain", "-o", "new"),
    ("attack", "plain", "--rounds", "1", "--clients", "3", "--audit-seeds", "0"),
    ("blend", "plain", "honest", "--out", "new"),
    ("bench", "suite.toml", "--list"),
    ("bench", "suite-layer.toml", "--list"),
    ("bench", "suite-parts.toml", "--list"),
    ("bench", "suite-small.toml", "--jobs", "1", "--out", "new"),
    ("bench", "suite-small.toml", "--jobs", "2", "--out", "new"),
    ("bench", "recorded.toml", "--record", "record", "--out", "benched", "--jobs", "1"),
    ("start", "world.csv", "--method", "fedease", "--out", "started"),
]
"""Commands that need the file for what they are asked: with --trust they run it."""

REFUSED_AFTERWARDS = [("page", "mixed", "-o", "new.html"), ("export", "mixed", "-o", "new")]
"""Commands that look at the file, and can make nothing of it."""

REFUSED_ANYWAY = [
    ("run", "--config", "nested.toml", "--out", "new"),
    ("attack", "mixed"),
    ("compare", "fedease", "--data", "world.csv", "--resume", "begun-mixed"),
]
"""Commands that end with code 2 for another reason, with --trust as well."""

LOOKS_ONLY = [
    ("report", "plain", "mixed", "honest", "-o", "new.html"),
    ("watch", "--once", "plain"),
    ("ls", "runs", "--folder", "."),
    ("run", "--resume", "plain"),
    ("run", "fedease", "--data", "world.csv", "--out", "new-run"),
    ("compare", "fedease", "--data", "world.csv", "--out", "new-runs"),
    ("tune", "fedmf", "--data", "world.csv", "--trials", "1", "--rounds", "1", "--out", "new-tuning"),
]
"""Commands that have no need of it, and run nothing."""


def _refused(outcome: Outcome) -> str:
    assert outcome.code == 2, outcome
    assert re.fullmatch(r"ownview: \S[^\n\x00-\x1f\x7f-\x9f]*\S\n", outcome.err), outcome.err
    return outcome.err


def test_no_command_runs_what_a_stranger_names(theirs: Path, ownview: Callable[..., Outcome]) -> None:
    marker = theirs.with_name(MARKER)
    for command in RUNS_IT + REFUSED_AFTERWARDS:
        line = _refused(ownview(*command))
        assert not marker.exists(), command
        assert f"{theirs}: a Python file that you did not name yourself" in line, (command, line)
        assert "--trust" in line
    for command in REFUSED_ANYWAY:
        _refused(ownview(*command))
        assert not marker.exists(), command
    for command in LOOKS_ONLY:
        outcome = ownview(*command)
        assert outcome.code == 0, (command, outcome)
        assert not marker.exists(), command


def test_the_path_must_be_the_one_that_was_named(theirs: Path, ownview: Callable[..., Outcome]) -> None:
    """A file of the user's own, on the same command line, opens no door to another one."""
    own = Path("new.py")
    own.write_text(EVIL.format(marker="new-marker"), encoding="utf-8")
    _refused(ownview("run", own, "--config", "plain.toml", "--out", "new"))
    assert not theirs.with_name(MARKER).exists()
    assert ownview("run", theirs, "--config", "plain.toml", "--out", "new").code == 0
    assert theirs.with_name(MARKER).exists()


def test_processes_take_over_what_the_command_line_named(theirs: Path, ownview: Callable[..., Outcome]) -> None:
    marker, given = theirs.with_name(MARKER), ("--data", "world.csv", "--jobs", "2", "--out", "new")
    assert ownview("compare", theirs, "fedease", *given).code == 0
    assert marker.exists()


def test_processes_run_nothing_that_was_not_named(theirs: Path) -> None:
    tasks = [
        (Experiment(method=str(theirs), data=str(theirs.with_name("world.csv")), rounds=1), Path(f"new/{k}"))
        for k in range(2)
    ]
    with afresh():
        with pytest.raises(BatchError, match="did not name yourself"):
            run_each(tasks, jobs=2, memory="auto", data_dir=None)
        assert not theirs.with_name(MARKER).exists()
        named_by_user(theirs)
        assert run_each(tasks, jobs=2, memory="auto", data_dir=None) == set()
    assert theirs.with_name(MARKER).exists()


def test_in_python_a_call_names_a_file_and_a_loaded_file_does_not(theirs: Path) -> None:
    marker = theirs.with_name(MARKER)
    calls: list[Callable[[], object]] = [
        lambda: Experiment.load(Path("plain.toml")),
        lambda: Experiment.from_toml(Path("parts.toml").read_text()).rounds_needed,
        lambda: ov.open_run("plain").recommend("u1"),
        lambda: ov.open_run("mixed").recommend("u1"),
        lambda: ov.resume("begun-plain"),
        lambda: ov.resume("begun-mixed"),
        lambda: ov.fit(like="plain"),
        lambda: ov.fit(like="mixed"),
        lambda: ov.attack(Path("plain")),
        lambda: ov.page("mixed", "new.html"),
        lambda: ov.export("mixed", "new"),
        lambda: ov.run(Experiment.from_toml(Path("parts.toml").read_text()).model(), "world.csv"),
    ]
    with afresh():
        for call in calls:
            with pytest.raises(UntrustedError, match=r"ownview\.trust\(FILE\)"):
                call()
            assert not marker.exists()
        ov.run(str(theirs), "world.csv", rounds=1)
        assert marker.exists()


def test_with_trust_every_command_runs_it(theirs: Path, ownview: Callable[..., Outcome]) -> None:
    marker = theirs.with_name(MARKER)
    for command in RUNS_IT:
        _clear()
        outcome = ownview(*command, "--trust")
        assert outcome.code == 0, (command, outcome)
        assert marker.exists(), command
        marker.unlink()
