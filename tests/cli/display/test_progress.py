"""Progress where there is no terminal: lines that tell units and the time left, also while nothing moves."""

from __future__ import annotations

import time

import pytest

from ownview.cli.display import patience
from ownview.cli.display.patience import telling
from ownview.cli.display.progress import Lines


def test_a_line_has_units_and_time_left_and_is_late_where_a_unit_is() -> None:
    now = 0.0
    lines = Lines("comparing, rounds", 40, clock=lambda: now)
    now = 9.0
    assert lines.line() == "comparing, rounds: 0 of 40, 9 s so far"
    now = 0.0
    for _ in range(30):
        now += 1.0
        lines.advance("fedmf")
    assert lines.line() == "comparing, rounds: 30 of 40 (fedmf), about 10 s left"
    now += 4.0
    assert lines.line() == "comparing, rounds: 30 of 40 (fedmf), about 6 s left"
    now += 36.0
    assert lines.line() == "comparing, rounds: 30 of 40 (fedmf), about 10 s left"
    for _ in range(10):
        lines.advance("")
    assert lines.line() == "comparing, rounds: 40 of 40, about 0 s left"


def test_work_that_was_begun_before_is_counted_and_not_timed() -> None:
    now = 0.0
    lines = Lines("resuming, rounds", 50, clock=lambda: now)
    for number in range(17, 37):
        now += 1.0
        lines.advance("", number)
    assert lines.line() == "resuming, rounds: 36 of 50, about 14 s left"


def test_lines_come_while_a_round_lasts(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "_written", [])
    monkeypatch.delenv("OWNVIEW_PROGRESS", raising=False)
    lines, found = Lines("fitting fedease under masked:clip=1, rounds", 1), ""
    with telling(lines.line, every=0.01):
        while found.count("fitting fedease under masked:clip=1, rounds: 0 of 1, 0 s so far\n") < 3:
            found += capsys.readouterr().err
            time.sleep(0.01)
