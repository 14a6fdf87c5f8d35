"""A PostgreSQL of its own for a test: Debian's package, a folder that goes with it, a socket and no port."""

from __future__ import annotations

import importlib.util
import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def programs() -> Path | None:
    """The folder of the newest server's programs; None where there is none."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"), key=lambda path: int(path.parts[4]))
    return found[-1].parent if found else None


def lacking() -> str:
    """Why no server can be started here; empty where one can."""
    if importlib.util.find_spec("pg8000") is None:
        return "pg8000 is not installed (extra postgres)"
    if programs() is None:
        return "no PostgreSQL server (Debian's package postgresql)"
    return "" if os.geteuid() or _owner() else "PostgreSQL does not run as root, and there is no user postgres"


def _owner() -> str | None:
    """Root starts it as the package's own user."""
    if os.geteuid():
        return None
    return "postgres" if any(one.pw_name == "postgres" for one in pwd.getpwall()) else None


@contextmanager
def server() -> Iterator[str]:
    """Its URL."""
    place, owner = programs(), _owner()
    assert place is not None
    folder = Path(tempfile.mkdtemp(prefix="ownview-pg-", dir="/tmp"))  # a socket's path is short
    if owner is not None:
        shutil.chown(folder, owner)
    user = owner or pwd.getpwuid(os.geteuid()).pw_name
    data = folder / "data"
    try:
        made = [str(place / "initdb"), "-D", str(data), "-A", "trust", "-U", user, "--no-sync"]
        subprocess.run(made, check=True, capture_output=True, user=owner, cwd=folder, timeout=120)
        options = f"-k {folder} -c listen_addresses= -c fsync=off"
        control = [str(place / "pg_ctl"), "-D", str(data), "-w", "-l", str(folder / "log")]
        subprocess.run([*control, "-o", options, "start"], check=True, user=owner, cwd=folder, timeout=120,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # fmt: skip
        try:
            yield f"postgresql://{user}@/postgres?host={folder}"
        finally:
            subprocess.run([*control, "-m", "immediate", "stop"], check=False, user=owner, cwd=folder, timeout=120,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # fmt: skip
    finally:
        shutil.rmtree(folder, ignore_errors=True)
