"""Fixtures shared by all tests."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from functools import cache
from itertools import count
from pathlib import Path

import pytest
import torch
from hypothesis import settings
from reproduction.commands.main import entry as reproduction_entry

from ownview.cli.main import entry
from ownview.data import Interactions, load
from tests.outcome import Outcome

# A deadline would measure the machine, not the code; the same examples every time make a failure repeat everywhere.
settings.register_profile("ownview", deadline=None, derandomize=True)
settings.load_profile("ownview")

REAL = ("ml-100k", "ml-1m", "filmtrust", "lastfm-2k-tags", "lastfm-2k-artists", "amazon-instant-video")

_NUMBERS = count()
"""Of ledgers of releases, one a test."""


@pytest.fixture(scope="session")
def real_data_dir() -> Path:
    """The papers' datasets: $OWNVIEW_DATA, or shared/data beside the checkout."""
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    for place in (os.environ.get("OWNVIEW_DATA"), beside):
        if place and all((Path(place) / name / "interactions.csv.gz").is_file() for name in REAL):
            return Path(place)
    pytest.skip("the papers' datasets are not here: set OWNVIEW_DATA to a folder that holds " + ", ".join(REAL))


@pytest.fixture(scope="session")
def real_data(real_data_dir: Path) -> Callable[[str], Interactions]:
    """The papers' datasets by name, each read once."""
    return cache(lambda name: load(name, data_dir=real_data_dir))


@pytest.fixture(scope="session", autouse=True)
def _few_threads() -> None:
    """Several test processes share the cores; one thread each is fastest and keeps sums in one order.

    The variable is for libraries that are loaded later and for processes that tests start.
    """
    os.environ["OMP_NUM_THREADS"] = "1"
    torch.set_num_threads(1)


@pytest.fixture(scope="module", autouse=True)
def _ledger_of_module(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What the models of a module release is counted by itself, and never in the user's own ledger."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OWNVIEW_LEDGER", str(tmp_path_factory.getbasetemp() / f"ledger-{next(_NUMBERS)}"))
        yield


@pytest.fixture(autouse=True)
def _ledger(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Every test begins with an empty ledger of releases; its folder is made by the first write."""
    monkeypatch.setenv("OWNVIEW_LEDGER", str(tmp_path_factory.getbasetemp() / f"ledger-{next(_NUMBERS)}"))


@pytest.fixture
def own_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The test's own folder is the current one; no data and no cache of this machine; lines of 120 columns."""
    monkeypatch.delenv("OWNVIEW_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def ownview(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Outcome]:
    """The command line, run in this process; without lines of progress, which a slow machine has more of."""
    return _caller(entry, monkeypatch, capsys)


@pytest.fixture
def reproduction(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Outcome]:
    """`python -m reproduction`, run in this process, likewise."""
    return _caller(reproduction_entry, monkeypatch, capsys)


def _caller(
    program: Callable[[], None], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., Outcome]:
    monkeypatch.setenv("OWNVIEW_PROGRESS", "off")

    def call(*arguments: str | Path) -> Outcome:
        monkeypatch.setattr(sys, "argv", ["program", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            program()
        code = ended.value.code
        assert isinstance(code, int)
        return Outcome(code, *capsys.readouterr())

    return call
