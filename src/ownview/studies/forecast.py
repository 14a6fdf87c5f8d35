"""How long a set of runs will still take, from how long rounds of its runs have taken."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from statistics import mean

from ownview.runs.folder import RunFolder
from ownview.studies.grid import Planned

Kind = tuple[str, str]
"""Row and data: runs that differ only in seed and protocol take about as long."""


@dataclass
class Forecast:
    """Counts rounds and the seconds they take.

    Args:
        planned: all runs; seconds of finished ones and of rounds done earlier are read from their folders.
        jobs: side by side.
        clock: seconds, from anywhere.
    """

    planned: Iterable[Planned]
    jobs: int
    clock: Callable[[], float]
    left: dict[Path, int] = field(default_factory=dict)
    seconds: dict[Kind, list[float]] = field(default_factory=dict)
    last: dict[Path, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.kinds: dict[Path, Kind] = {}
        for one in self.planned:
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
        """Of all runs together; None as long as nothing is known."""
        known = {kind: mean(taken) for kind, taken in self.seconds.items() if taken}
        if not known:
            return None
        usual = mean(known.values())
        every = [number * known.get(self.kinds[folder], usual) for folder, number in self.left.items()]
        side_by_side = max(min(self.jobs, sum(number > 0 for number in self.left.values())), 1)
        return sum(every) / side_by_side
