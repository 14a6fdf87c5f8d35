"""What is said while the ledger's runs go on."""

from __future__ import annotations

from pathlib import Path

import pytest
from reproduction.commands.ledger_progress import Outlook, shown
from reproduction.ledger.order import Stage, Wanted
from reproduction.ledger.rows import rows

from ownview.studies.grid import Planned


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def two_runs() -> list[Wanted]:
    asked = [row.here for row in rows() if row.main and row.here is not None][:2]
    return [Wanted(Stage.MAIN, Planned("row", one.experiment, Path(one.name)), one.name, 1.0) for one in asked]


def test_time_left_is_reckoned_by_weight_and_put_right_by_the_pace() -> None:
    clock, (first, second) = Clock(), two_runs()
    outlook = Outlook([first, second], {first.planned.folder: 10.0, second.planned.folder: 30.0}, clock)
    assert outlook.seconds_left() is None
    assert outlook.words() == "0 of 2 runs"
    rounds = first.planned.experiment.rounds_needed
    for number in range(1, rounds + 1):
        outlook.round_done(first.planned.folder, number, {})
    assert outlook.working() == [f"{first.run}: round {rounds} of {rounds}"]
    clock.now += 5.0  # half of what it was reckoned to take
    outlook.run_done(first)
    assert outlook.seconds_left() == pytest.approx(15.0)
    assert outlook.words() == "1 of 2 runs, about 15 s left"
    assert outlook.working() == []


def test_where_there_is_no_terminal_a_line_comes_now_and_then(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OWNVIEW_PROGRESS", raising=False)
    clock, (first, second) = Clock(), two_runs()
    outlook = Outlook([first, second], {first.planned.folder: 1.0, second.planned.folder: 1.0}, clock)
    with shown(outlook, quiet=False) as on_round:
        on_round(first.planned.folder, 1, {})
        clock.now += 11.0
        on_round(first.planned.folder, 2, {})
        on_round(first.planned.folder, 3, {})
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert err.startswith("ledger: 0 of 2 runs, about ")
    assert first.run in err
    with shown(outlook, quiet=True) as on_round:
        clock.now += 11.0
        on_round(first.planned.folder, 4, {})
    assert capsys.readouterr().err == ""
