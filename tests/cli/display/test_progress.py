"""Progress where there is no terminal: lines that tell units and the time left."""

from __future__ import annotations

import pytest

from ownview.cli.display.progress import Lines


def test_a_line_every_ten_seconds_with_units_and_time_left(capsys: pytest.CaptureFixture[str]) -> None:
    now = 0.0
    lines = Lines("comparing, rounds", 40, clock=lambda: now)
    for _ in range(30):
        now += 1.0
        lines.advance("fedmf")
    assert capsys.readouterr().err.splitlines() == [
        "comparing, rounds: 10 of 40 (fedmf), about 30 s left",
        "comparing, rounds: 20 of 40 (fedmf), about 20 s left",
        "comparing, rounds: 30 of 40 (fedmf), about 10 s left",
    ]


def test_work_that_was_begun_before_is_counted_and_not_timed(capsys: pytest.CaptureFixture[str]) -> None:
    now = 0.0
    lines = Lines("resuming, rounds", 50, clock=lambda: now)
    for number in range(17, 37):
        now += 1.0
        lines.advance("", number)
    assert capsys.readouterr().err.splitlines() == [
        "resuming, rounds: 26 of 50, about 24 s left",
        "resuming, rounds: 36 of 50, about 14 s left",
    ]


def test_what_is_over_sooner_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    lines = Lines("fitting, rounds", 9, clock=lambda: 0.0)
    for _ in range(9):
        lines.advance("")
    assert capsys.readouterr().err == ""
