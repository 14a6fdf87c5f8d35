"""The training loop of a run: rounds, choice of the best one, checkpoints."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ownview.base.errors import OutputError, OwnviewError, TrainingError
from ownview.evaluation.metrics import means
from ownview.evaluation.protocol import Protocol
from ownview.evaluation.ranking import Ranker
from ownview.federation.tables.packing import gathered
from ownview.round.conduct import RoundReport
from ownview.runs.files.folder import RunFolder
from ownview.runs.files.provenance import peak_memory
from ownview.runs.loggers import Logger
from ownview.runs.training.best_round import Best
from ownview.runs.training.signals import CutOffError, Signals
from ownview.runs.training.trainer import Trainer
from ownview.runs.training.watching import Watch

_CHECKPOINT_SHARE = 0.05
"""Checkpoints may take this share of the time since the last one."""


class InterruptedRunError(OwnviewError):
    """The run was stopped by a signal; its folder can be resumed."""

    def __init__(self, folder: RunFolder, when: str, signal_number: int) -> None:
        self.exit_code = 128 + signal_number
        super().__init__(f"stopped {when}; {folder.go_on}")
        self.when = when


@dataclass
class Training:
    """Trains a model round by round into a folder.

    Args:
        trainer: the model at work.
        protocol: how rounds are chosen.
        rankers: of validation and of test; not asked where the protocol holds nothing out: the last round counts then.
        rounds: how many.
        folder: where everything goes.
        device: for the memory readings.
        on_round: called after every round; of a round that was not measured, without metrics.
        watch: clients whose values are noted after every round.
        measure_every: rounds from one measurement to the next; the last round is always measured. Rounds that are not
            measured cannot be chosen.
        loggers: called with every line of rounds.jsonl.
    """

    trainer: Trainer
    protocol: Protocol
    rankers: tuple[Ranker, Ranker]
    rounds: int
    folder: RunFolder
    device: torch.device
    on_round: Callable[[int, dict[str, float]], None]
    watch: Watch | None = None
    measure_every: int = 1
    loggers: Sequence[Logger] = ()
    best: Best = field(default_factory=Best)
    done: int = 0
    lines: list[dict[str, Any]] = field(default_factory=list)

    def resume(self) -> None:
        """Go back to the last checkpoint, or to the start where there is none."""
        if self.folder.has_tensors("checkpoint"):
            name = "checkpoint"
            tensors, about = self.folder.read_tensors(name)
            best = about["best"]
            self.best = Best(best["round"], tuple(best["score"]), best["metrics"])
            self.done, self.lines = about["round"], about["rounds"]
            if self.best.round:  # read in any case: a damaged file is found now, and not after hours of work
                stored, _ = self.folder.read_tensors(self.best.file)
                if self.best.round == self.done:
                    name, tensors = self.best.file, stored
                del stored
            restore(self.trainer, tensors, self.folder.path / f"{name}.safetensors")
        self.folder.write_rounds(self.lines)

    def run(self) -> Best:
        """Train the rounds that are left; on a signal, checkpoint after the round in progress and stop.

        A round that is cut off (see `Signals`) is lost, with those after the last checkpoint: they are run again.
        """
        with Signals() as signals:
            last_checkpoint, cost = time.perf_counter(), 0.0
            while self.done < self.rounds:
                try:
                    with signals.round():
                        self._one(self.done + 1)
                except (CutOffError, KeyboardInterrupt) as cut:
                    number = signals.received or signal.SIGINT
                    raise InterruptedRunError(self.folder, f"in round {self.done + 1}", number) from cut
                waited = time.perf_counter() - last_checkpoint
                # After the last round the model itself is written.
                if signals.received or (self.done < self.rounds and cost < _CHECKPOINT_SHARE * waited):
                    start = time.perf_counter()
                    self._checkpoint()
                    last_checkpoint = time.perf_counter()
                    cost = last_checkpoint - start
                if signals.received and self.done < self.rounds:
                    raise InterruptedRunError(self.folder, f"after round {self.done}", signals.received)
        self.folder.write_rounds(self.lines)  # the file may have changed meanwhile
        if not self.best.packed and self.folder.has_tensors(self.best.file):
            self.best.packed, _ = self.folder.read_tensors(self.best.file)
        return self.best

    def _one(self, number: int) -> None:
        report = self.trainer.round(number)
        start = time.perf_counter()
        metrics = self._measure(number) if self._measured(number) else {}
        seconds = {**report.seconds, "evaluate": time.perf_counter() - start}
        self.done = number
        if metrics:
            self._choose(number, metrics)
        elif not self.protocol.measured and number == self.rounds:
            self.best = Best(number, packed=self._packed(number))
        line = _line(report, metrics, seconds, self._stage(), peak_memory(self.device))
        self.lines.append(line if self.watch is None else {**line, "watched": self.watch.line()})
        self.folder.append_round(self.lines[-1])
        self.on_round(number, metrics)
        for logger in self.loggers:
            logger.round(self.lines[-1])

    def _measured(self, number: int) -> bool:
        return self.protocol.measured and (number == self.rounds or number % self.measure_every == 0)

    def _stage(self) -> str:
        return "test" if self.protocol.selection == "test" else "validation"

    def _measure(self, number: int) -> dict[str, float]:
        ranker = self.rankers[1 if self._stage() == "test" else 0]
        try:
            return means(ranker.rank(self.trainer.asked(ranker.question)), self.protocol.cutoffs)
        except TrainingError as error:
            raise TrainingError(f"after round {number} {error}; lower the learning rate") from error

    def _choose(self, number: int, metrics: dict[str, float]) -> None:
        last = self.protocol.selection == "last"
        if (number == self.rounds or not last) and self.best.offer(number, metrics, last=last):
            self.best.packed = {}  # first: there may be no room for three models, the one that trains and two copies
            self.best.packed = self._packed(number)

    def _packed(self, number: int) -> dict[str, Tensor]:
        """The model's values after a round; the last round's as they stand, because nothing changes them any more."""
        packed = self.trainer.pack()
        return packed if number == self.rounds else _kept(packed)

    def _checkpoint(self) -> None:
        """Write what to go on from: the best round's state once, in a file of its own, and what stands now.

        Tables of clients can take most of the memory, so there are never three of them: the best round's leave it
        before what stands is packed. The best one before stays on the disk until nothing refers to it.
        """
        if self.best.packed:
            self.folder.write_tensors(self.best.file, self.best.packed, {"round": self.best.round})
            self.best.packed = {}
        best = {"round": self.best.round, "score": list(self.best.score), "metrics": self.best.metrics}
        about = {"round": self.done, "best": best, "rounds": self.lines}
        self.folder.write_tensors("checkpoint", {} if self.best.round == self.done else self.trainer.pack(), about)
        self.folder.drop_best(but=self.best.file)


def restore(trainer: Trainer, packed: dict[str, Tensor], source: Path) -> None:
    """Give a model its values back; values of another model are refused by the name of their file.

    Tables of clients are kept by the rows that changed; everything else has the shape it has in a new model.
    """
    with _values_of(source):
        for name, value in trainer.pack().items():
            kept = packed.get(name, value)
            if not name.startswith(("table.", "flight.")) and (kept.shape, kept.dtype) != (value.shape, value.dtype):
                raise ValueError(f"{name} is {list(kept.shape)} of {kept.dtype}, expected {list(value.shape)}")
        trainer.unpack(packed)


def go_back(trainer: Trainer, best: Best, folder: RunFolder) -> None:
    """Give a model the values of the best round back; without a third copy of them, which `restore` compares with."""
    with _values_of(folder.path / f"{best.file}.safetensors"):
        trainer.unpack(best.packed)


@contextmanager
def _values_of(source: Path) -> Iterator[None]:
    try:
        yield
    except (KeyError, IndexError, RuntimeError, TypeError, ValueError) as error:
        raise OutputError(f"{source}: does not hold the values of this method: {error!r}; start a new run") from error


def _line(
    report: RoundReport, metrics: dict[str, float], seconds: dict[str, float], stage: str, memory: int
) -> dict[str, Any]:
    return {
        "round": report.number,
        "clients": report.clients,
        "loss": report.loss,
        **({stage: metrics} if metrics else {}),
        "seconds": {part: round(value, 6) for part, value in seconds.items()},
        "bytes_down_per_client": report.bytes_down,
        "bytes_up_per_client": report.bytes_up,
        "bytes_dense_per_client": report.bytes_dense,
        "sparsity": {name: dict(shares) for name, shares in report.sparsity.items()},
        "peak_memory_bytes": memory,
        **({} if report.simulated is None else {"simulated_seconds": round(report.simulated, 6)}),
    }


def _kept(packed: dict[str, Tensor]) -> dict[str, Tensor]:
    """Packed values that no later round changes: copies of those that are the model's own."""
    return {name: value if gathered(name) else value.detach().clone() for name, value in packed.items()}
