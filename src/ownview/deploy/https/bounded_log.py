"""Lines that strangers cause: a few a minute are written, the others are counted."""

from __future__ import annotations

import logging
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path

Say = Callable[[str], None]


class BoundedLog:
    """Passes lines on, at most so many a minute; the next line that passes says how many did not.

    Args:
        say: takes a line.
        lines: a minute. As many may come at once after a quiet minute.
        now: seconds of a clock that never goes back.
    """

    def __init__(self, say: Say, lines: int, now: Callable[[], float] = time.monotonic) -> None:
        self.say, self.lines, self.now = say, lines, now
        self.guard = threading.Lock()
        self.left, self.at, self.dropped = float(lines), now(), 0

    def __call__(self, line: str) -> None:
        """Pass a line on, or count it."""
        with self.guard:
            at = self.now()
            self.left = min(self.lines, self.left + (at - self.at) * self.lines / 60)
            self.at = at
            if self.left < 1:
                self.dropped += 1
                return
            self.left -= 1
            dropped, self.dropped = self.dropped, 0
        self.say(f"{line} ({dropped:,} more lines left out)" if dropped else line)


class LogHandler(logging.Handler):
    """What a library logs, as lines.

    Args:
        say: takes a line.
    """

    def __init__(self, say: Say) -> None:
        super().__init__(logging.WARNING)
        self.say = say

    def emit(self, record: logging.LogRecord) -> None:
        """One line, with the kind of the error and where it was raised.

        Its text is left out where the system did not write it: it may hold what a stranger sent, an item of a history.
        """
        error = record.exc_info[1] if record.exc_info else None
        about = "" if error is None else f" ({_described(error)})"
        self.say(f"{record.getMessage().strip()}{about}"[:500])


def _described(error: BaseException) -> str:
    if isinstance(error, OSError):
        return f"{type(error).__name__}: {error.strerror or error}"
    frames = traceback.extract_tb(error.__traceback__)
    where = f" at {Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
    return f"{type(error).__name__}{where}"
