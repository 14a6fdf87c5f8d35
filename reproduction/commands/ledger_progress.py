"""Progress of the ledger's runs: how many are done, what is at work, and about how long the rest takes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rich.live import Live

from ownview.cli.display.patience import lines_wanted
from ownview.cli.display.progress import clock_words
from ownview.cli.display.terminal import Console
from ownview.runs.batch import OnRunRound
from reproduction.ledger.order import Wanted

_EVERY = 10.0
"""Seconds from one line to the next where there is no terminal."""

_SHOWN = 8
"""Runs at work that a terminal shows."""


class Outlook:
    """Weighs runs by what they are reckoned to take, and learns from those that go by how far that is off.

    Args:
        runs: to be done.
        weights: by folder, seconds or any unit that is the same for all.
        clock: seconds, from anywhere.
    """

    def __init__(self, runs: Sequence[Wanted], weights: dict[Path, float], clock: Callable[[], float]) -> None:
        self.weights, self.clock, self.began = weights, clock, clock()
        self.rounds = {one.planned.folder: one.planned.experiment.rounds_needed for one in runs}
        self.total, self.passed, self.finished = sum(weights.values()), 0.0, 0
        self.at_work: dict[Path, int] = {}

    def round_done(self, folder: Path, number: int, metrics: dict[str, float]) -> None:
        """One more round of a run."""
        self.passed += self.weights[folder] / self.rounds[folder]
        self.at_work[folder] = number

    def run_done(self, one: Wanted) -> None:
        """A run was taken up."""
        self.finished += 1
        self.at_work.pop(one.planned.folder, None)

    def seconds_left(self) -> float | None:
        """At the pace so far; None before the first round. Rounds that a stopped run had done make it a little long."""
        if not self.passed:
            return None
        return (self.clock() - self.began) / self.passed * max(self.total - self.passed, 0.0)

    def words(self) -> str:
        """In one line."""
        left = self.seconds_left()
        ends = "" if left is None else f", about {clock_words(left)} left"
        return f"{self.finished} of {len(self.rounds)} runs{ends}"

    def working(self) -> list[str]:
        """A line for each run at work."""
        return [f"{folder.name}: round {done} of {self.rounds[folder]}" for folder, done in self.at_work.items()]


@contextmanager
def shown(outlook: Outlook, *, quiet: bool) -> Iterator[OnRunRound]:
    """Show it on stderr: live on a terminal, a line now and then elsewhere; nothing where `quiet` is set.

    Yields:
        what is to be called after every round.
    """
    console = Console(stderr=True, highlight=False)
    if quiet or not (console.is_terminal or lines_wanted()):
        yield outlook.round_done
        return
    if console.is_terminal:
        with Live(console=console, refresh_per_second=2, transient=True, get_renderable=lambda: _panel(outlook)):
            yield outlook.round_done
        return
    printed = outlook.clock()

    def round_done(folder: Path, number: int, metrics: dict[str, float]) -> None:
        nonlocal printed
        outlook.round_done(folder, number, metrics)
        if outlook.clock() - printed >= _EVERY:
            printed = outlook.clock()
            console.print(f"ledger: {outlook.words()} ({folder.name})", soft_wrap=True, markup=False)

    yield round_done


def _panel(outlook: Outlook) -> str:
    at_work = outlook.working()
    more = [f"and {len(at_work) - _SHOWN} more"] if len(at_work) > _SHOWN else []
    return "\n".join([f"ledger: {outlook.words()}", *at_work[:_SHOWN], *more])
