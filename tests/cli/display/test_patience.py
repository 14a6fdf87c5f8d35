"""A command that is slow to load says so, and one that is not says nothing."""

from __future__ import annotations

import time

import pytest

from ownview.cli.display import patience
from ownview.cli.display.patience import loading, tell, until_due


@pytest.fixture(autouse=True)
def _nothing_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "_written", [])


def test_a_line_at_first_and_one_more_now_and_then(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OWNVIEW_PROGRESS", raising=False)
    with loading("ownview", first=0.01, every=0.01):
        while capsys.readouterr().err.count("ownview: loading\n") < 1:
            time.sleep(0.01)
        while "ownview: loading\n" not in capsys.readouterr().err:
            time.sleep(0.01)
    capsys.readouterr()
    time.sleep(0.05)
    assert capsys.readouterr().err == "", "nothing is told once it is over"


def test_what_loads_at_once_says_nothing(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OWNVIEW_PROGRESS", raising=False)
    with loading("ownview", first=60.0):
        pass
    assert capsys.readouterr().err == ""


def test_progress_that_is_off_says_nothing(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OWNVIEW_PROGRESS", "off")
    with loading("ownview", first=0.001, every=0.001):
        time.sleep(0.05)
    assert capsys.readouterr().err == ""


def test_the_next_line_is_due_by_the_last_one_whatever_it_was_about(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 100.0
    monkeypatch.setattr("ownview.cli.display.patience.time.monotonic", lambda: now)
    assert (until_due(8.0), until_due(8.0, 2.0)) == (8.0, 2.0)
    tell("loading")
    now = 105.0
    assert (until_due(8.0), until_due(8.0, 2.0)) == (3.0, 3.0)
    now = 120.0
    assert until_due(8.0) == 0.1, "what is late comes at once"
    assert capsys.readouterr().err == "loading\n"
