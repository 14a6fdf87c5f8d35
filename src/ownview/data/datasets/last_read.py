"""The stored dataset that was read last, for the runs of one process that all begin with it."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from pathlib import Path

from ownview.data.interactions import Interactions

MOST_ROWS = 5_000_000
"""Rows up to which a dataset stays in memory, at most some 200 MB; training on more takes far longer than reading."""

_FileState = tuple[str, int, int, int]


class LastRead:
    """A cache of one dataset, which is immutable; it holds as long as its files stay what they were."""

    def __init__(self) -> None:
        self._known: tuple[Hashable, Interactions] | None = None

    def of(self, asked: Hashable, files: Sequence[Path], read: Callable[[], Interactions]) -> Interactions:
        """What `read` makes of files, or made of them the last time.

        Args:
            asked: what the result hangs on besides the files.
            files: all that are read; those that are not there count as such.
            read: reads them.
        """
        key = (asked, tuple(_state(file) for file in files))  # before reading: a later change is seen the next time
        known = self._known
        if known is not None and known[0] == key:
            return known[1]
        self._known = known = None  # never two datasets at once
        made = read()
        if len(made) <= MOST_ROWS:
            self._known = (key, made)
        return made


def _state(file: Path) -> _FileState | None:
    """What changes with a file: files are replaced whole, which gives them another inode."""
    try:
        found = file.stat()
    except OSError:
        return None
    return (str(file.absolute()), found.st_mtime_ns, found.st_size, found.st_ino)
