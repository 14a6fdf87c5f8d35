"""The one place that knows on which system it runs: locks, folders for caches, clocks that interrupt, limits.

On Linux and macOS a folder is locked itself (flock), so that no file lies in it that a copy could carry along. Windows
locks no folders: there filelock holds a file beside it. Caches are where XDG says on Linux, elsewhere where the system
keeps them (platformdirs). A clock that interrupts a round is there where SIGALRM is; elsewhere a round ends by itself.
"""

from __future__ import annotations

import ctypes
import math
import os
import platform
import signal
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

try:
    import fcntl
    import resource
except ImportError:  # Windows
    fcntl = resource = None  # type: ignore[assignment]


def locks_folders() -> bool:
    """Whether a folder can be locked itself."""
    return fcntl is not None


def interrupts() -> bool:
    """Whether a clock can interrupt what is computed."""
    return hasattr(signal, "SIGALRM")


def peak_resident() -> int:
    """Most bytes of main memory that this process has held so far; 0 where the system does not count (Windows)."""
    unit = 1 if str(sys.platform) == "darwin" else 1024
    return 0 if resource is None else resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def give_back_freed_memory() -> None:
    """Return freed blocks to the system where the C library (glibc) keeps them."""
    if platform.libc_ver()[0] == "glibc":
        ctypes.CDLL(None).malloc_trim(0)


def files_allowed() -> float:
    """Files and connections that this process may have open at once; infinite where nothing bounds them."""
    allowed = math.inf if resource is None else resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return math.inf if resource is not None and allowed == resource.RLIM_INFINITY else allowed


class FolderLock:
    """A lock on a folder that goes with the process, however that ends.

    Args:
        folder: that exists.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @contextmanager
    def opened(self) -> Iterator[Attempt]:
        """An open handle that can be locked; closed on leaving."""
        attempt = _FolderItself(self.folder) if locks_folders() else _FileBeside(self.folder)
        try:
            yield attempt
        finally:
            attempt.close()


class Attempt(ABC):
    """Tries to lock; where the file system knows no locks, work goes on without."""

    @abstractmethod
    def exclusive(self) -> bool:
        """Try to take it; whether this process has it now."""

    @abstractmethod
    def free(self) -> bool:
        """Whether it is free; nothing is changed."""

    @abstractmethod
    def close(self) -> None:
        """Let go."""


class _FolderItself(Attempt):
    def __init__(self, folder: Path) -> None:
        self.handle = os.open(folder, os.O_RDONLY)

    def exclusive(self) -> bool:
        try:
            fcntl.flock(self.handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:
            return True
        return True

    def free(self) -> bool:
        try:
            fcntl.flock(self.handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            return False
        return True

    def close(self) -> None:
        os.close(self.handle)


class _FileBeside(Attempt):
    def __init__(self, folder: Path) -> None:
        from filelock import FileLock  # noqa: PLC0415 - needed on Windows alone

        folder = folder.resolve()
        if not folder.is_dir():
            raise FileNotFoundError(folder)
        self.lock = FileLock(folder.with_name(f".{folder.name}.lock"))

    def exclusive(self) -> bool:
        from filelock import Timeout  # noqa: PLC0415

        try:
            self.lock.acquire(timeout=0)
        except Timeout:
            return False
        return True

    def free(self) -> bool:
        return self.exclusive()

    def close(self) -> None:
        self.lock.release()


def data_home() -> Path:
    """Where programs keep what cannot be got again: $XDG_DATA_HOME, ~/.local/share on Linux, else the system's."""
    named = os.environ.get("XDG_DATA_HOME")
    if named:
        return Path(named)
    if str(sys.platform).startswith("linux"):
        return Path.home() / ".local" / "share"
    from platformdirs import user_data_path  # noqa: PLC0415 - needed elsewhere alone

    return user_data_path()


def cache_home() -> Path:
    """Where programs keep what they can get again: $XDG_CACHE_HOME, ~/.cache on Linux, else the system's place."""
    named = os.environ.get("XDG_CACHE_HOME")
    if named:
        return Path(named)
    if str(sys.platform).startswith("linux"):
        return Path.home() / ".cache"
    from platformdirs import user_cache_path  # noqa: PLC0415 - needed elsewhere alone

    return user_cache_path()
