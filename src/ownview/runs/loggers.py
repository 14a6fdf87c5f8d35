"""Loggers that follow a run: called when it begins, after every round, and when it ends."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any
from typing import Protocol as Interface

from ownview.base.errors import SettingError
from ownview.base.extras import how_to_install
from ownview.evaluation.metrics import HEADLINE


class Logger(Interface):
    """Follows a run. It receives what the run's folder holds; changing that has no effect."""

    def begin(self, experiment: Mapping[str, Any]) -> None:
        """Before the first round, or where a run is resumed: what experiment.toml says."""

    def round(self, line: Mapping[str, Any]) -> None:
        """After every round: its line of rounds.jsonl. A resumed run sends rounds after its checkpoint again."""

    def end(self, result: Mapping[str, Any]) -> None:
        """When the run has finished: what result.json says. Never called where a run is stopped."""


class TensorBoard:
    """Curves for TensorBoard: the loss, what was measured, seconds and bytes of every round; figures at the end.

    Args:
        folder: where its files go; one a run.

    Raises:
        SettingError: the package tensorboard is not installed.
    """

    def __init__(self, folder: str | Path) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter  # noqa: PLC0415 - an extra, and slow to import
        except ImportError:
            raise SettingError(f"TensorBoard needs the package tensorboard: {how_to_install('tensorboard')}") from None
        self.writer: Any = SummaryWriter(str(folder))

    def begin(self, experiment: Mapping[str, Any]) -> None:
        """The experiment as text."""
        lines = (f"    {name} = {value}" for name, value in experiment.items())
        self.writer.add_text("experiment", "\n".join(lines))

    def round(self, line: Mapping[str, Any]) -> None:
        """One point on every curve."""
        for name, value in scalars(line).items():
            self.writer.add_scalar(name, value, line["round"])
        self.writer.flush()  # a killed run shows what it did

    def end(self, result: Mapping[str, Any]) -> None:
        """Test figures at the chosen round, where there are any."""
        for name in HEADLINE if "test" in result else ():
            self.writer.add_scalar(f"test/{name}", result["test"][name], result["chosen_round"])
        self.writer.close()


def scalars(line: Mapping[str, Any]) -> dict[str, float]:
    """The numbers of a round by names such as loss, validation/HR@10 and seconds/train."""
    found: dict[str, float] = {}
    for name, value in line.items():
        if name in ("validation", "test", "seconds"):
            found |= {f"{name}/{part}": float(number) for part, number in value.items()}
        elif name == "loss" or name.startswith("bytes_"):
            found |= {name: float(value)} if value is not None else {}
    return found
