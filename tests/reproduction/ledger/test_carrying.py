"""The ledger's runs are noted one by one, also where the batch does not come to its end."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from reproduction.ledger.carrying import Keeper, carry
from reproduction.ledger.order import Stage, Wanted, Wishes, wanted
from reproduction.ledger.record import read_record
from reproduction.ledger.rows import rows

from tests.reproduction.worlds import store_world


def test_a_failure_is_noted_while_other_runs_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OWNVIEW_DATA", raising=False)
    store_world(tmp_path, "filmtrust")
    wishes = Wishes(tmp_path / "runs", seeds=1, rounds=1, device="cpu", data_dir=tmp_path, stages=(Stage.MAIN,))
    sound, other = [one for one in wanted(rows(), wishes) if one.planned.experiment.method == "fedmf"][:2]
    spoilt = replace(other.planned.experiment, settings={**other.planned.experiment.settings, "learning_rate": 1e30})
    diverging = replace(other, planned=replace(other.planned, experiment=spoilt))
    keeper = Keeper(tmp_path, data_dir=tmp_path, short=True)
    noted: list[list[str]] = []

    def stop(finished: Wanted) -> None:
        noted.append([one["reason"] for one in read_record(keeper.path).left.values()])
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        carry(
            [diverging, sound], keeper, jobs=1, memory="1GB", data_dir=tmp_path,
            on_round=lambda folder, number, metrics: None, on_finished=stop,
        )  # fmt: skip
    [[reason]] = noted
    assert "not finite" in reason
    assert sound.run in read_record(keeper.path).runs
