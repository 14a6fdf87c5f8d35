"""`ownview watch`: the curves of runs while they go on, in dots of braille."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Group, RenderableType
from rich.live import Live
from rich.text import Text

from ownview.base.errors import OutputError
from ownview.base.lock import at_work
from ownview.cli.display.terminal import Console
from ownview.evaluation.metrics import HEADLINE
from ownview.runs.files.folder import RunFolder, no_such_run
from ownview.runs.run import experiment_of

_BRAILLE = 0x2800
_DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
"""Bits of a braille character: four dots high, two wide."""


def curve(values: Sequence[float], width: int, height: int) -> list[str]:
    """`height` lines of `width` characters: the first value at the left edge, the last at the right, joined up.

    A single value, or equal ones, lie on the bottom line; no values give empty lines.
    """
    across, high = 2 * width, 4 * height
    cells = [[0] * width for _ in range(height)]
    before: int | None = None
    for column, value in enumerate(_spread(values, across)):
        level = _level(value, values, high)
        for dot in _between(before, level):
            row = high - 1 - dot
            cells[row // 4][column // 2] |= _DOTS[row % 4][column % 2]
        before = level
    return ["".join(chr(_BRAILLE + bits) for bits in line) for line in cells]


def _spread(values: Sequence[float], number: int) -> list[float]:
    """`number` values from first to last, each the nearest one."""
    last = len(values) - 1
    return [values[round(k * last / max(number - 1, 1))] for k in range(number)] if values else []


def _level(value: float, values: Sequence[float], levels: int) -> int:
    low, high = min(values), max(values)
    return 0 if high == low else round((value - low) / (high - low) * (levels - 1))


def _between(before: int | None, level: int) -> range:
    """The dots from the last level (not itself) to this one."""
    if before is None or abs(level - before) <= 1:
        return range(level, level + 1)
    return range(before + 1, level + 1) if level > before else range(level, before)


_EVERY = 0.5
"""Seconds between looks."""

_HEIGHT = 6
"""Lines of a plot."""

_PANEL = _HEIGHT + 3


def command(
    runs: Annotated[list[Path], typer.Argument(help="Folders of runs, or folders that hold some.")],
    once: Annotated[bool, typer.Option("--once", help="Show how things stand, and end.")] = False,
) -> None:
    """Follow runs: validation and loss round by round, until all have finished or stopped."""
    console = Console(highlight=False)
    view = View(tuple(runs))
    if once:
        view.look()
        text = view.picture(console) if console.is_terminal else "\n".join(one.head() for one in view.followed)
        console.print(text, soft_wrap=True, markup=False)
        return
    try:
        with Live(console=console, refresh_per_second=4) if console.is_terminal else nullcontext() as shown:
            going = True
            while going:
                going = view.look()
                if shown is not None:
                    shown.update(view.picture(console))
                else:  # numbers, a line a round, for pipes and files
                    for line in (line for one in view.followed for line in one.news()):
                        typer.echo(line)
                time.sleep(_EVERY if going else 0)
    except KeyboardInterrupt:
        return  # the runs go on; only the looking ends
    for one in view.followed:
        if one.state == "stopped":
            typer.echo(f"{one.name}: no process is at work on it; {RunFolder(one.path).go_on}")


@dataclass
class Followed:
    """One run.

    Args:
        path: its folder.
        name: what to call it.
    """

    path: Path
    name: str
    rounds: int = 0
    lines: list[dict[str, Any]] = field(default_factory=list)
    state: str = "running"
    result: dict[str, Any] | None = None
    printed: int = 0
    end_printed: bool = False

    def look(self) -> None:
        """Read what is new; the state comes first, so that a finished run's rounds are all there."""
        folder = RunFolder(self.path)
        busy = at_work(self.path)
        if folder.finished:
            self.state, self.result = "finished", folder.read_result()
        else:
            self.state = "running" if busy else "stopped"
        self.rounds = experiment_of(folder).rounds
        self.lines = folder.read_rounds()

    def metric(self, name: str) -> list[float]:
        """The validation metric that chooses the round, for every measured round."""
        return [line[_stage(line)][name] for line in self.measured]

    @property
    def measured(self) -> list[dict[str, Any]]:
        """The lines that have metrics."""
        return [line for line in self.lines if _stage(line) in line]

    def losses(self) -> list[float]:
        """The loss of every round; empty for models without one."""
        return [line["loss"] for line in self.lines if line.get("loss") is not None]

    def head(self) -> str:
        """One line on where it stands."""
        words = f"{self.name}: {self.state}, round {len(self.lines)} of {self.rounds}"
        if measured := self.measured:
            every = self.metric("HR@10")
            best = max(range(len(every)), key=every.__getitem__)
            number = measured[best]["round"]
            words += f", {_stage(measured[-1])} HR@10 {every[-1]:.4f} (best {every[best]:.4f}, round {number})"
        if self.result is not None:
            words += f", test HR@10 {self.result['test']['HR@10']:.4f}" if "test" in self.result else ", no test figure"
        return words

    def news(self) -> list[str]:
        """A line for every round since the last call, and one at the end."""
        self.printed = min(self.printed, len(self.lines))  # a resumed run does the rounds after its checkpoint again
        found = [self._words(line) for line in self.lines[self.printed :]]
        self.printed = len(self.lines)
        if self.state != "running" and not self.end_printed:
            self.end_printed = True
            found.append(self.head())
        return found

    def _words(self, line: dict[str, Any]) -> str:
        stage = _stage(line)
        loss = "" if line.get("loss") is None else f" loss {line['loss']:.4f}"
        values = "".join(f" {name} {line[stage][name]:.4f}" for name in HEADLINE) if stage in line else ""
        return f"{self.name}: round {line['round']} of {self.rounds}{loss}{f' {stage}{values}' if values else ''}"

    def panel(self, width: int) -> list[str]:
        """Two plots side by side: what rounds are chosen by, and the loss."""
        half = max((width - 4) // 2, 20)
        stage = _stage(self.measured[-1]) if self.measured else "validation"
        plots = [_plot(f"{stage} HR@10", self.metric("HR@10"), half), _plot("loss", self.losses(), half)]
        return [self.head(), *(f"{left:<{half}}  {right}".rstrip() for left, right in zip(*plots, strict=True)), ""]

    def row(self, width: int) -> str:
        """The same on one line and a half, where many runs must fit."""
        return f"{self.head()}\n  {curve(self.metric('HR@10'), max(width - 4, 10), 1)[0]}"


@dataclass
class View:
    """Runs that are looked at together; those that begin later in the same folders join."""

    asked: tuple[Path, ...]
    followed: list[Followed] = field(default_factory=list)

    def look(self) -> bool:
        """Read what is new; whether anything is still going on."""
        for path in self.asked:
            if not path.is_dir():
                raise no_such_run(path)
            self._join(path)
        for one in self.followed:
            one.look()
        if not self.followed and not self._busy():
            raise OutputError(f"{self.asked[0]}: no run in it; expected a run's folder, or one that holds some")
        return any(one.state == "running" for one in self.followed) or self._busy()

    def _join(self, path: Path) -> None:
        known = {one.path for one in self.followed}
        single = (path / "experiment.toml").is_file()
        for found in [path] if single else sorted(one.parent for one in path.glob("**/experiment.toml")):
            if found not in known:
                name = path.resolve().name if single else str(found.relative_to(path))
                self.followed.append(Followed(found, name))

    def _busy(self) -> bool:
        """Whether a process is at work on a folder of runs, and so may begin another."""
        above = {one.path.parent for one in self.followed if one.path not in self.asked}
        return any(at_work(path) for path in {*above, *(path for path in self.asked if path.is_dir())})

    def picture(self, console: Console) -> RenderableType:
        """Plots as far as the terminal's height goes, otherwise a line or two a run; the running ones last."""
        order = sorted(self.followed, key=lambda one: one.state == "running")
        if len(order) * _PANEL < console.height:
            return Group(*(Text(line, no_wrap=True) for one in order for line in one.panel(console.width)))
        shown = order[-max((console.height - 2) // 2, 1) :]
        hidden = len(order) - len(shown)
        rows = [Text(one.row(console.width), no_wrap=True) for one in shown]
        return Group(*([Text(f"and {hidden} more")] if hidden else []), *rows)


def _stage(line: dict[str, Any]) -> str:
    return "test" if "test" in line else "validation"


def _plot(title: str, values: Sequence[float], width: int) -> list[str]:
    """A title, and a curve with its highest and lowest value at the left."""
    if not values:
        return [f"{title}: none", *[""] * _HEIGHT]
    marks = [f"{max(values):.4f}", *[""] * (_HEIGHT - 2), f"{min(values):.4f}"]
    lines = curve(values, max(width - 9, 1), _HEIGHT)
    return [title, *(f"{mark:>7} {line}" for mark, line in zip(marks, lines, strict=True))]
