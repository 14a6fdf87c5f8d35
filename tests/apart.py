"""Commands in processes of their own, forked from one that has loaded everything.

A process that begins anew loads PyTorch for seconds, and few tests are about that. One process loads it once, does
nothing else, and is forked: the child gets the folder, the environment and the streams that its test gives it.
"""

from __future__ import annotations

import importlib
import multiprocessing
import os
import resource
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from multiprocessing import reduction
from pathlib import Path
from typing import Any, NamedTuple

PATIENCE = 600
"""Seconds until a process that should have ended counts as hanging: far more than the slowest machine needs."""

Within = Callable[[], AbstractContextManager[None]]
"""What surrounds a command inside its process."""


class Stream:
    """A file descriptor that goes along to another process."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __getstate__(self) -> Any:
        return reduction.DupFd(self.number)

    def __setstate__(self, taken: Any) -> None:
        self.number = taken.detach()


class Given(NamedTuple):
    """What a command's process is told."""

    arguments: tuple[str, ...]
    folder: str
    environment: Mapping[str, str]
    streams: tuple[Stream, Stream]
    within: Within


class Apart:
    """A command at work in a process of its own; it is asked as a `subprocess.Popen` is.

    Args:
        arguments: of the command line.
        environment: besides this process's.
        within: what surrounds the command there.
        out: a file descriptor for what it prints; kept for `printed` where None.
        err: likewise for stderr, and `said`.
    """

    def __init__(
        self,
        *arguments: str | Path,
        environment: Mapping[str, str] | None = None,
        within: Within = nullcontext,
        out: int | None = None,
        err: int | None = None,
    ) -> None:
        self.kept = [tempfile.TemporaryFile() for _ in range(2)]  # noqa: SIM115
        first, second = self.kept
        streams = Stream(first.fileno() if out is None else out), Stream(second.fileno() if err is None else err)
        given = Given(
            tuple(map(str, arguments)), str(Path.cwd()), {**os.environ, **(environment or {})}, streams, within
        )
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(["ownview.round.loaded_once", "ownview.runs.run", "ownview.cli.experiments.run"])
        self.process = context.Process(target=_live, args=(given,), daemon=True)
        self.process.start()

    def printed(self) -> str:
        """What it has printed so far."""
        return self._until_now(0)

    def said(self) -> str:
        """What it has written to stderr so far."""
        return self._until_now(1)

    def _until_now(self, stream: int) -> str:
        kept = self.kept[stream].fileno()
        return os.pread(kept, os.fstat(kept).st_size, 0).decode()

    def poll(self) -> int | None:
        """How it ended; None while it has not."""
        return self.process.exitcode

    def wait(self, patience: float = PATIENCE) -> int:
        """How it ended, once it has."""
        self.process.join(patience)
        code = self.process.exitcode
        assert code is not None, "it hangs"
        return code

    def send_signal(self, number: signal.Signals) -> None:
        """Send it a signal."""
        assert self.process.pid is not None
        os.kill(self.process.pid, number)

    def terminate(self) -> None:
        """Ask it to end."""
        self.process.terminate()

    def kill(self) -> None:
        """End it."""
        self.process.kill()


def _live(task: Given) -> None:
    multiprocessing.current_process()._config["daemon"] = False  # type: ignore[attr-defined]  # commands start processes
    os.chdir(task.folder)
    os.environ.clear()
    os.environ.update(task.environment)
    for number, stream in enumerate(task.streams, start=1):
        os.dup2(stream.number, number)
    # Those that are there were opened on other files and in another environment, and keep what they know of them.
    encoding = os.environ.get("PYTHONIOENCODING")
    sys.stdout = open(1, "w", encoding=encoding, closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", buffering=1, encoding=encoding, closefd=False)  # noqa: SIM115
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.argv = ["ownview", *task.arguments]
    from ownview.cli.main import entry

    with task.within():
        entry()


@contextmanager
def _killed_after(module: str, writer: str, name: str, times: int) -> Iterator[None]:
    kind, left = getattr(importlib.import_module(module), writer), times
    write = getattr(kind, name)

    def written(*given: Any) -> Any:
        nonlocal left
        result, left = write(*given), left - 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return result

    setattr(kind, name, written)
    yield


def killed(writer: type, name: str, times: int, *arguments: str | Path) -> None:
    """A command in a process of its own, killed for good when `writer.name` has been called so many times."""
    one = Apart(*arguments, within=partial(_killed_after, writer.__module__, writer.__name__, name, times))
    assert one.wait() == -signal.SIGKILL, one.said()


@contextmanager
def files_up_to(limit: int) -> Iterator[None]:
    """No file may grow over so many bytes."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    yield


@contextmanager
def killed_at_moment(last: int) -> Iterator[None]:
    """Killed the n-th time that a file or folder here is made, written, renamed or removed; 0 for never.

    Ends by saying on stderr how many such moments there were.
    """
    here, seen, writes = str(Path.cwd()), 0, os.O_WRONLY | os.O_RDWR | os.O_CREAT

    def moment(event: str, given: tuple[Any, ...]) -> None:
        nonlocal seen
        made = event in ("os.rename", "os.remove", "os.mkdir") or (event == "open" and given[2] & writes)
        if made and isinstance(given[0], str) and os.path.abspath(given[0]).startswith(here):  # noqa: PTH100
            seen += 1
            if seen == last:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(moment)
    try:
        yield
    finally:
        sys.stderr.write(f"\nmoments {seen}\n")
