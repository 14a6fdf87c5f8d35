"""Progress of long work of unequal parts: moves inside a part too, and tells the time left by work, not by parts."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from ownview.base.display.shown import shown
from ownview.cli.display.patience import lines_wanted, tell, until_due
from ownview.cli.display.progress import bars, clock_words

_EVERY = 8.0
"""Seconds from one line to the next, where there is no terminal: a thread may wake a little late."""

_LATE = 0.25
"""Share of its time so far that a part which takes longer than expected is expected to take more."""


class Work:
    """Parts of some work and the seconds that each is expected to take.

    Args:
        parts: expected seconds by name, in the order in which they are done.
        clock: seconds, from anywhere.
    """

    def __init__(self, parts: Mapping[str, float], clock: Callable[[], float] = time.monotonic) -> None:
        self.parts, self.clock = {name: max(seconds, 0.1) for name, seconds in parts.items()}, clock
        self.began: dict[str, float] = {}
        self.taken: dict[str, float] = {}
        self.measured: set[str] = set()

    def begin(self, name: str) -> None:
        """The part that was going on is done, and another begins."""
        self.end()
        self.began[name] = self.clock()

    def end(self) -> None:
        """The part that was going on is done."""
        for name, when in self.began.items():
            self.taken.setdefault(name, self.clock() - when)

    def expect(self, name: str, seconds: float) -> None:
        """Seconds for a part as they were measured here, once the same work was done: no pace applies to them."""
        self.parts[name] = seconds
        self.measured.add(name)

    @property
    def now(self) -> str | None:
        """The part that goes on."""
        return next((name for name in self.began if name not in self.taken), None)

    def seconds_left(self) -> float:
        """Remaining expected seconds, scaled by actual over expected seconds of the finished parts."""
        reckoned = [name for name in self.taken if name in self.parts and name not in self.measured]
        expected = sum(self.parts[name] for name in reckoned)
        pace = sum(self.taken[name] for name in reckoned) / expected if expected else 1.0
        scaled = {name: seconds * (1 if name in self.measured else pace) for name, seconds in self.parts.items()}
        left = sum(seconds for name, seconds in scaled.items() if name not in self.began)
        if (now := self.now) is not None:
            so_far = self.clock() - self.began[now]
            left += max(scaled.get(now, 0.0) - so_far, _LATE * so_far)
        return left

    def line(self) -> str:
        """Progress in one line."""
        now = self.now
        if now is None:
            return f"{len(self.taken)} of {len(self.parts)}"
        so_far = clock_words(self.clock() - self.began[now])
        place = f"{len(self.taken) + 1} of {len(self.parts)}"
        return f"{place} ({now}, {so_far} so far), about {clock_words(self.seconds_left())} left"


@contextmanager
def working(title: str, parts: Work | Mapping[str, float], *, every: float = _EVERY) -> Iterator[Work]:
    """Show work while it is done: a bar on a terminal, elsewhere a line every ten seconds at the latest.

    Args:
        title: of what is done now.
        parts: of this alone; or the work that this is a part of, whose time left is shown then.
        every: seconds from one line to the next.
    """
    work, over = parts if isinstance(parts, Work) else Work(parts), threading.Event()
    with bars(quiet=False) as bar:
        task = None if bar is None else bar.add_task(title, total=100, words="")

        def show() -> None:
            while not over.wait(until_due(every) if bar is None else 1.0):
                if bar is not None and task is not None:
                    spent, left = sum(work.taken.values()), work.seconds_left()
                    bar.update(task, completed=round(100 * spent / max(spent + left, 1e-9)), words=work.line())
                elif lines_wanted():
                    tell(shown(f"{title}: {work.line()}"))

        shower = threading.Thread(target=show, daemon=True)
        shower.start()
        try:
            yield work
        finally:
            work.end()
            over.set()
            shower.join()
