"""Who follows a run is told what its folder holds."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import ownview as ov
from ownview.base.errors import SettingError
from ownview.registry import build
from ownview.runs.loggers import scalars
from tests.shop import shop

SMALL = {"embedding_size": 4, "local_epochs": 1}


class Notes:
    """A logger that keeps what it is told."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, Mapping[str, Any]]] = []

    def begin(self, experiment: Mapping[str, Any]) -> None:
        self.calls.append(("begin", experiment))

    def round(self, line: Mapping[str, Any]) -> None:
        self.calls.append(("round", line))

    def end(self, result: Mapping[str, Any]) -> None:
        self.calls.append(("end", result))


def test_a_logger_is_told_the_experiment_every_line_and_the_result() -> None:
    notes = Notes()
    run = ov.run(build("fedmf", SMALL), shop(), rounds=2, loggers=[notes])
    assert [word for word, _ in notes.calls] == ["begin", "round", "round", "end"]
    assert notes.calls[0][1] == run.experiment.to_dict()
    assert [line for word, line in notes.calls if word == "round"] == run.rounds
    assert notes.calls[-1][1] == run.result
    fitted = Notes()
    ov.fit("popularity", shop(), loggers=[fitted])
    assert [word for word, _ in fitted.calls] == ["begin", "round", "end"]


def test_scalars_leave_out_what_is_none_and_what_is_no_number() -> None:
    line = {"round": 1, "clients": 3, "loss": None, "validation": {"HR@10": 0.5}, "seconds": {"train": 1},
            "bytes_up_per_client": 7, "sparsity": {"items": {"zero": 0.0}}}  # fmt: skip
    assert scalars(line) == {"validation/HR@10": 0.5, "seconds/train": 1.0, "bytes_up_per_client": 7.0}


def test_tensorboard_has_the_curves_of_a_run(tmp_path: Path) -> None:
    events = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    run = ov.run(build("fedmf", SMALL), shop(), rounds=2, loggers=[ov.TensorBoard(tmp_path / "curves")])
    found = events.EventAccumulator(str(tmp_path / "curves"))
    found.Reload()
    for name, wanted in (
        ("loss", [line["loss"] for line in run.rounds]),
        ("validation/HR@10", [line["validation"]["HR@10"] for line in run.rounds]),
    ):
        points = found.Scalars(name)
        assert [point.step for point in points] == [1, 2]
        assert [point.value for point in points] == pytest.approx(wanted)
    (test,) = found.Scalars("test/HR@10")
    assert (test.step, test.value) == (run.result["chosen_round"], pytest.approx(run.metrics["HR@10"]))


def test_without_its_package_tensorboard_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    with pytest.raises(SettingError, match=r'needs the package tensorboard: pip install -e "\.\[tensorboard\]"'):
        ov.TensorBoard(tmp_path / "curves")
