"""Who may read a file: what only its owner may read is made so from the first byte on, and kept so.

On systems that know no rights of files as POSIX has them, nothing here does anything.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from pathlib import Path

OWN_FILE, OWN_FOLDER = 0o600, 0o700
"""Rights of what only its owner may read."""
_OTHERS = 0o077


def narrow(paths: Iterable[Path]) -> list[str]:
    """Take from everybody but the owner all rights on files and folders; links are left alone.

    Returns:
        lines for a person: one for all that others could read until now, and one for each that they still can, because
        it belongs to another user.
    """
    wide = [path for path in paths if _others_may(path)]
    left = [path for path in wide if not _narrowed(path)]
    lines = [f"{path}: others may read it, and its rights cannot be changed from here; chmod go= it" for path in left]
    done = [path for path in wide if path not in left]
    if done:
        more = f" and {len(done) - 1} more" if len(done) > 1 else ""
        lines.append(f"{done[0]}{more}: others could read it; now only its owner may")
    return lines


def inside(folder: Path) -> list[Path]:
    """A folder and all that is in it; nothing where it is not there."""
    if not folder.is_dir():
        return []
    return [folder, *(Path(there, name) for there, folders, files in os.walk(folder) for name in (*folders, *files))]


def _others_may(path: Path) -> bool:
    """Whether users other than the owner have any right on it."""
    if os.name != "posix" or path.is_symlink() or not path.exists():
        return False
    return bool(path.stat().st_mode & _OTHERS)


def _narrowed(path: Path) -> bool:
    """Take the rights of others away; False where that cannot be done."""
    try:
        path.chmod(stat.S_IMODE(path.stat().st_mode) & ~_OTHERS)
    except OSError:
        return False
    return not _others_may(path)
