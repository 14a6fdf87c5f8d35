"""Progress on terminals: a bar with time left, and the board of a suite with what has come out so far."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from statistics import mean
from typing import Protocol

from rich.console import Group, RenderableType
from rich.live import Live
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Column, Table

from ownview.base.display.shown import shown
from ownview.cli.display.patience import lines_wanted, telling
from ownview.cli.display.terminal import Console
from ownview.runs.batch import OnRunRound
from ownview.runs.files.folder import RunFolder
from ownview.studies.grid import Planned

Kind = tuple[str, str]
"""Row and data: runs that differ only in seed and protocol take about as long."""


class Forecast:
    """Counts rounds and the seconds they take.

    Args:
        planned: all runs; seconds of finished ones and of rounds done earlier are read from their folders.
        jobs: side by side.
        clock: seconds, from anywhere.
    """

    def __init__(self, planned: Iterable[Planned], jobs: int, clock: Callable[[], float]) -> None:
        self.jobs, self.clock = jobs, clock
        self.left: dict[Path, int] = {}
        self.seconds: dict[Kind, list[float]] = {}
        self.last: dict[Path, float] = {}
        self.kinds: dict[Path, Kind] = {}
        for one in planned:
            folder = RunFolder(one.folder)
            self.kinds[one.folder] = (one.row, one.data)
            lines = folder.read_rounds()
            taken = [sum(line["seconds"].values()) for line in lines if "seconds" in line]
            self.seconds.setdefault((one.row, one.data), []).extend(taken)
            self.left[one.folder] = 0 if folder.finished else max(one.experiment.rounds_needed - len(lines), 0)

    def round_done(self, folder: Path) -> None:
        """One more round of a run; the first one of a run counts no seconds, they would be those of its start too."""
        now = self.clock()
        if folder in self.last:
            self.seconds[self.kinds[folder]].append(now - self.last[folder])
        self.last[folder] = now
        self.left[folder] = max(self.left[folder] - 1, 0)

    def seconds_left(self) -> float | None:
        """Estimate for all runs together; None before the first progress."""
        known = {kind: mean(taken) for kind, taken in self.seconds.items() if taken}
        if not known:
            return None
        usual = mean(known.values())
        every = [number * known.get(self.kinds[folder], usual) for folder, number in self.left.items()]
        side_by_side = max(min(self.jobs, sum(number > 0 for number in self.left.values())), 1)
        return sum(every) / side_by_side


class Advance(Protocol):
    """OnRunRound when one more unit is done."""

    def __call__(self, words: str, done: int | None = None) -> None:
        """A few words to show; how many units are done, where work goes on that was begun before."""


@contextmanager
def bars(*, quiet: bool) -> Iterator[Progress | None]:
    """Bars with time left on stderr; None where that is no terminal or `quiet` is set."""
    console = Console(stderr=True)
    if quiet or not console.is_terminal:
        yield None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[words]}"))
    with Progress(*columns, TimeElapsedColumn(), TimeRemainingColumn(), console=console, transient=True) as bar:
        yield bar


class Lines:
    """Progress where there is no terminal, a line at a time.

    Args:
        title: of the work.
        total: units of it.
        clock: seconds, from anywhere.
    """

    def __init__(self, title: str, total: int, clock: Callable[[], float] = time.monotonic) -> None:
        self.title, self.total, self.clock, self.words, self.done, self.before = title, total, clock, "", 0, 0
        self.began = self.last = clock()

    def advance(self, words: str, done: int | None = None) -> None:
        """One more unit is done; `done` of them where work goes on that was begun before."""
        if done is not None and not self.done:
            self.before = done - 1
        self.done = self.done + 1 if done is None else done
        self.words, self.last = words, self.clock()

    def line(self) -> str:
        """Units done and seconds left: those that units took on average since this began, and more of a late one."""
        now, counted = self.clock(), self.done - self.before
        so_far = f"{self.title}: {self.done} of {self.total}{f' ({self.words})' if self.words else ''}"
        if not counted:
            return shown(f"{so_far}, {clock_words(now - self.began)} so far")
        usual = (self.last - self.began) / counted * max(self.total - self.done, 0)
        return shown(
            f"{so_far}, about {clock_words(max(usual - (now - self.last), usual and (now - self.last) / 4))} left"
        )


@contextmanager
def progress(title: str, total: int, *, quiet: bool = False) -> Iterator[Advance]:
    """A bar over `total` units on a terminal, a line every eight seconds elsewhere; nothing where `quiet` is set."""
    with bars(quiet=quiet) as bar:
        if bar is None:
            lines = Lines(title, total)
            with nullcontext() if quiet else telling(lines.line):
                yield lines.advance
            return
        task = bar.add_task(title, total=total, words="")

        def advance(words: str, done: int | None = None) -> None:
            bar.update(task, advance=1 if done is None else None, completed=done, words=words)

        yield advance


class Board:
    """Knows every run's last round, and shows the datasets that are being worked on."""

    def __init__(self, title: str, planned: Sequence[Planned], jobs: int) -> None:
        self.title, self.planned, self.started = title, planned, time.monotonic()
        self.forecast = Forecast(planned, jobs, time.monotonic)
        self.totals = {one.folder: one.experiment.rounds_needed for one in planned}
        self.measured: dict[Path, str] = {}
        self.latest: dict[Path, str] = {}
        self.tested: dict[Path, str] = {}

    def round_done(self, folder: Path, number: int, metrics: dict[str, float]) -> None:
        """Take note."""
        if metrics:  # rounds in between are not measured
            self.measured[folder] = f"{metrics['HR@10']:.3f}"
        value = self.measured.get(folder, "")
        self.latest[folder] = f"{value} [dim]round {number}/{self.totals[folder]}[/]".lstrip()
        self.forecast.round_done(folder)

    def __rich__(self) -> RenderableType:
        for folder in (one.folder for one in self.planned if one.folder not in self.tested):
            if RunFolder(folder).finished:
                self.tested[folder] = f"[green]{RunFolder(folder).read_result()['test']['HR@10']:.3f}[/]"
        left = self.forecast.seconds_left()
        words = f"{len(self.tested)} of {len(self.totals)} runs, {clock_words(time.monotonic() - self.started)}"
        words += "" if left is None else f", about {clock_words(left)} left"
        to_do = [one for one in self.planned if one.folder not in self.tested]
        data = dict.fromkeys(one.data for one in to_do if one.folder in self.latest) or [one.data for one in to_do][:1]
        return Group(f"[bold]{escape(self.title)}[/]: {words}", *(self._table(name) for name in data))

    def _table(self, data: str) -> Table:
        here = [one for one in self.planned if one.data == data]
        shown = {one.folder: "[dim]·[/]" for one in here} | self.latest | self.tested
        protocols = list(dict.fromkeys(one.protocol for one in here))
        heads = [Column(f"{escape(protocol)}: HR@10 so far", min_width=24) for protocol in protocols]
        table = Table("method", *heads, title=escape(data), title_justify="left", box=None, padding=(0, 2, 0, 0))
        for row in dict.fromkeys(one.row for one in here):
            cells = [
                "  ".join(shown[one.folder] for one in here if (one.row, one.protocol) == (row, protocol))
                for protocol in protocols
            ]
            table.add_row(escape(row), *cells)
        return table


@contextmanager
def live(title: str, planned: Sequence[Planned], jobs: int, *, quiet: bool = False) -> Iterator[OnRunRound]:
    """Show the board on stderr, a line now and then where that is no terminal; nothing where `quiet` is set."""
    console = Console(stderr=True)
    if quiet or not (console.is_terminal or lines_wanted()):
        yield lambda folder, number, metrics: None
        return
    if not console.is_terminal:
        lines = Lines(f"{title}, rounds", sum(Forecast(planned, jobs, time.monotonic).left.values()))
        with telling(lines.line):
            yield lambda folder, number, metrics: lines.advance(folder.name)
        return
    board = Board(title, planned, jobs)
    with Live(board, console=console, refresh_per_second=2, transient=True):
        yield board.round_done


def clock_words(seconds: float) -> str:
    """Hours and minutes, minutes and seconds, or seconds."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min" if hours else f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"
