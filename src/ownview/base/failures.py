"""The one place that turns what is expected to go wrong into one line and an exit code.

Expected is what a person or the surroundings cause: bad input, a full or read-only disk, a closed pipe, no memory, a
signal. Anything else is a bug in Ownview, and its traceback is what helps to mend it.
"""

from __future__ import annotations

import errno
import signal
from typing import NamedTuple

from ownview.base.display.shown import one_line
from ownview.base.errors import OwnviewError

_REMEDIES = {
    errno.ENOSPC: "; make room or choose another place",
    errno.EDQUOT: "; make room or choose another place",
    errno.EROFS: "; choose a place that can be written to",
    errno.EACCES: "; choose another place, or ask for the rights",
    errno.EPERM: "; choose another place, or ask for the rights",
    errno.ENAMETOOLONG: "; choose a shorter name",
}
"""What to do about it, where there is something."""


NO_MEMORY = "not enough memory; lower --memory, or use smaller data or fewer --jobs"


class TerminatedError(BaseException):
    """SIGTERM came outside of training, where nothing waits for it; raised by the handler of the command line."""


class Ending(NamedTuple):
    """How a command ends: the line on stderr, none where it is empty, and the exit code."""

    line: str
    code: int


def ending(error: BaseException) -> Ending | None:
    """How an error ends the command; None for a bug, which shows its traceback."""
    if isinstance(error, OwnviewError):
        return Ending(one_line(str(error)), error.exit_code)
    if isinstance(error, KeyboardInterrupt | TerminatedError):
        return Ending("stopped", 128 + (signal.SIGINT if isinstance(error, KeyboardInterrupt) else signal.SIGTERM))
    if isinstance(error, BrokenPipeError):
        return Ending("", 128 + getattr(signal, "SIGPIPE", 13))  # who reads the output has had enough of it
    line = _of_the_system(error) if isinstance(error, OSError) else _of_what_was_given(error)
    return None if line is None else Ending(one_line(line), 2)


def _of_what_was_given(error: BaseException) -> str | None:
    if lacks_memory(error):
        return NO_MEMORY
    if isinstance(error, UnicodeEncodeError):
        return f"a name or text {error.object!r} is not UTF-8; rename or convert it"
    if isinstance(error, ValueError) and str(error).startswith("embedded null"):
        return "a file's name holds a NUL character; expected plain text"
    return None


def _of_the_system(error: OSError) -> str:
    names = [str(name) for name in (error.filename, error.filename2) if name is not None]
    what = " and ".join(names) if names else "input or output"
    return f"{what}: {error.strerror or error}{_REMEDIES.get(error.errno or 0, '')}"


def lacks_memory(error: BaseException) -> bool:
    """Whether the device or the machine had no memory left.

    torch has a class of its own for GPUs, but a plain RuntimeError for main memory and where a GPU's driver, or a
    recording, found none; polars panics are neither.
    """
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
        return True
    words = str(error)
    return isinstance(error, RuntimeError) and ("CPUAllocator" in words or "out of memory" in words)
