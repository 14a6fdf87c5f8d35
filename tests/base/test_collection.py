"""What a command loads is not looked through for garbage, and the collector works again afterwards."""

from __future__ import annotations

import gc
import subprocess
import sys
from collections.abc import Iterator

import pytest

from ownview.base.collection import without_collection

ABSENT = "ownview.there_is_no_such_module"


@pytest.fixture(autouse=True)
def _thawed() -> Iterator[None]:
    before = gc.get_freeze_count()
    yield
    if not before:
        gc.unfreeze()


def test_nothing_is_collected_while_a_module_is_loaded() -> None:
    with without_collection(ABSENT):
        assert not gc.isenabled()
        kept: list[list[int]] = [[]]
    assert gc.isenabled()
    assert not any(one is kept for one in gc.get_objects()), "what was made is not looked at again"


def test_a_module_that_cannot_be_loaded_leaves_the_collector_on() -> None:
    with pytest.raises(ImportError), without_collection(ABSENT):
        raise ImportError(ABSENT)
    assert gc.isenabled()


def test_what_is_loaded_already_changes_nothing() -> None:
    before = gc.get_freeze_count()
    with without_collection("sys"):
        assert gc.isenabled()
    assert gc.get_freeze_count() == before


def test_who_has_turned_the_collector_off_finds_it_so() -> None:
    gc.disable()
    try:
        with without_collection(ABSENT):
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


@pytest.mark.parametrize(
    "loading",
    ["from ownview.cli import main, program; program._loaded(main._PROGRAM, 'ls')", "import ownview.runs.loaded_once"],
)
def test_commands_and_processes_of_runs_are_loaded_so(loading: str) -> None:
    code = f"import gc; {loading}; print(gc.get_freeze_count() > 10_000, gc.isenabled())"
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert output.split() == ["True", "True"]
