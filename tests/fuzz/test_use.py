"""Odd words wherever `recommend` and `fit` take some, and histories in spoilt files: one line, no traceback."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

import ownview as ov
from tests.faults.conftest import write_world
from tests.fuzz.harm import spoilt_bytes
from tests.fuzz.test_fuzz import fault, outcome

WORDS = ("", "²", "9" * 400, "\x1b[31m", "\u202e", "n" * 300, "caf\udce9", "/dev/full", ".", "[bold]")
HISTORY = b"title,user,timestamp\ni3,me,100\ni4,me,2009-04-01\ni5,me,300\n"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sound")
    return ov.fit("popularity", str(write_world(folder / "world.csv")), out=folder / "model").folder.path


def test_no_traceback(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OWNVIEW_DATA", raising=False)
    faults = []
    for place, word in enumerate(WORDS):
        spoilt = Path(f"{place}.csv")
        spoilt.write_bytes(spoilt_bytes(HISTORY, random.Random(place)))
        for arguments in (
            ["recommend", str(model), "--history", f"{word}; {word}"],
            ["recommend", str(model), "--history", "i3", "--json", "-k", word],
            ["recommend", str(model), "--new-user", word],
            ["recommend", str(model), "--new-user", str(spoilt)],
            ["recommend", str(model), "--all", "-o", word],
            ["recommend", str(model), "--all", "-o", f"{word}.csv"],
            ["fit", word, "--data", word, "--rounds", "1", "--out", f"m{place}"],
            ["fit", "--like", word],
        ):
            if found := fault(*outcome(arguments)):
                faults.append(f"ownview {' '.join(map(ascii, arguments))}\n{found}")
    assert not faults, "\n\n".join(faults)
