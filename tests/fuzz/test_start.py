"""Spoilt files given to `ownview start`: lists and pages, or one line; no traceback."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest

from tests.faults.conftest import write_world
from tests.fuzz.harm import spoilt_bytes
from tests.fuzz.test_fuzz import fault, outcome

METHODS = ("popularity", "markov", "fedease", "ease", "fednext")


def faults(seeds: range, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """By seed: a method, the file's wounds, and for every eleventh file that rows which cannot be read are left out."""
    monkeypatch.setenv("OWNVIEW_PROGRESS", "off")
    sound, lines = write_world(tmp_path / "world.csv").read_bytes(), []
    for seed in seeds:
        place = tmp_path / str(seed)
        place.mkdir()
        monkeypatch.chdir(place)
        Path("mine.csv").write_bytes(spoilt_bytes(sound, random.Random(seed)))
        words = ["start", "mine.csv", "--method", METHODS[seed % 5], "--out", "s", *["--tolerant"][: seed % 11 == 0]]
        found = fault(*outcome(words))
        lines += [] if found is None else [f"seed {seed}: ownview {' '.join(words)}: {found}"]
        monkeypatch.chdir(tmp_path)
        shutil.rmtree(place)
    return lines


def test_no_traceback(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert faults(range(20), tmp_path, monkeypatch) == []


@pytest.mark.slow
@pytest.mark.parametrize("start", range(20, 10_020, 500))
def test_no_traceback_in_ten_thousand(start: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert faults(range(start, start + 500), tmp_path, monkeypatch) == []
