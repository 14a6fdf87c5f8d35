"""What differs between systems is tried here by its branches; on Windows and macOS nobody has run it yet."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ownview.base import platforms
from ownview.base.errors import OutputError
from ownview.base.lock import at_work, sole_worker
from ownview.data.datasets.storage import cache_dir
from tests.base import lacking
from tests.faults.conftest import write_world


@pytest.fixture(params=["folders are locked", "files are locked"])
def system(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "files are locked":
        pytest.importorskip("filelock")
        monkeypatch.setattr(platforms, "fcntl", None)
    return str(request.param)


@pytest.mark.usefixtures("system")
def test_one_at_a_time_and_others_can_ask(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    assert not at_work(folder)
    folder.mkdir()
    assert not at_work(folder)
    with sole_worker(folder):
        assert at_work(folder)
        with pytest.raises(OutputError, match="another process is at work there"), sole_worker(folder, patience=0):
            pass
    assert not at_work(folder)
    with sole_worker(folder):
        assert list(folder.iterdir()) == [], "nothing lies in the folder that a copy would carry along"


def test_caches_are_where_the_system_keeps_them(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    platformdirs = pytest.importorskip("platformdirs")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_dir() == tmp_path / "ownview"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_dir() == Path.home() / ".cache" / "ownview"
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr(platformdirs, "user_cache_path", lambda: tmp_path / "Caches")
    assert cache_dir() == tmp_path / "Caches" / "ownview"


def test_without_a_clock_that_interrupts_a_round_ends_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    from ownview.runs.training.signals import Signals

    monkeypatch.delattr(signal, "SIGALRM")
    with Signals() as signals, signals.round():
        assert not platforms.interrupts()


def test_a_start_ends_where_all_is_lacking_that_windows_lacks(tmp_path: Path) -> None:
    pytest.importorskip("filelock")
    world = write_world(tmp_path / "world.csv")
    words = ("start", world, "--method", "popularity", "--method", "fedease", "--out", tmp_path / "start")
    ended = subprocess.run(
        [sys.executable, lacking.__file__, *map(str, words)], capture_output=True, text=True, check=False, timeout=300,
        cwd=tmp_path, env={**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")},
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    assert "Of 100 people" in " ".join(ended.stdout.split())
    assert (tmp_path / "start" / "lists.csv").is_file()
