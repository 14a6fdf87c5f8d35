"""`ownview` on a system that lacks what Windows lacks: run as a program, with the command's words."""

from __future__ import annotations

import builtins
import os
import signal
from typing import Any

MODULES = {"fcntl", "grp", "posix", "pwd", "resource", "termios", "tty"}
SIGNALS = ("SIGALRM", "SIGHUP", "SIGKILL", "SIGPIPE", "SIGUSR1", "ITIMER_REAL", "setitimer", "pthread_sigmask")
CALLS = (
    "chown",
    "fchmod",
    "fork",
    "getloadavg",
    "geteuid",
    "getuid",
    "killpg",
    "pread",
    "sched_getaffinity",
    "sysconf",
)


def lack() -> None:
    """Take it away: modules from our own code, names from everybody."""
    usual = builtins.__import__

    def imported(name: str, names: Any = None, *rest: Any) -> Any:
        if name in MODULES and str((names or {}).get("__name__")).startswith("ownview"):
            raise ModuleNotFoundError(f"No module named {name!r}")
        return usual(name, names, *rest)

    builtins.__import__ = imported  # type: ignore[assignment]
    for module, lacked in ((signal, SIGNALS), (os, CALLS)):
        for name in lacked:
            delattr(module, name)


if __name__ == "__main__":
    lack()
    from ownview.cli.main import entry

    entry()
