"""Files that are whole or not there: written under a temporary name, then renamed.

What is written here has reached the disk when the call returns, and so has its name: a power cut takes neither back.
"""

from __future__ import annotations

import atexit
import contextlib
import errno
import hashlib
import json
import os
import secrets
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

from ownview.base.errors import OutputError, UnwrittenError
from ownview.base.rights import OWN_FILE, OWN_FOLDER


def write_whole(path: Path, write: Callable[[Path], None], *, private: bool = False) -> None:
    """Let `write` fill a file in a temporary folder beside `path`, then put it in place in one step.

    On failure (a full disk, say) the old file stays as it was and nothing is left behind. Who may read a new file is
    for the umask to say; a file that is replaced keeps its rights; a private one is its owner's alone from the first
    byte on. What is no plain file (a device, a pipe) cannot be replaced and is written to.

    The folder is there because some libraries write to a temporary file of their own beside the one they are given:
    where the process is killed, `drop_unfinished` finds that one too.
    """
    with writing(path):
        if path.exists() and not path.is_file() and not path.is_dir():
            write(path)
            return
        folder = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
        folder.mkdir(OWN_FOLDER if private else 0o777)
        try:
            temporary = folder / path.name
            temporary.touch(OWN_FILE if private else 0o666)
            like = temporary if private or not path.is_file() else path
            rights = stat.S_IMODE(like.stat().st_mode)
            write(temporary)
            temporary.chmod(rights)  # some writers put a file of their own in place
            _sync(temporary)
            temporary.replace(path)
            sync_folder(path.parent)
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def drop_unfinished(path: Path) -> None:
    """Remove what processes killed while they wrote `path` have left beside it."""
    for left in path.parent.glob(f".{path.name}.????????"):
        with writing(left):
            shutil.rmtree(left) if left.is_dir() else left.unlink(missing_ok=True)


def write_text(path: Path, text: str, *, private: bool = False) -> None:
    """Write UTF-8 text, whole or not at all."""
    write_whole(path, lambda temporary: _write_text(temporary, text), private=private)


def write_bytes(path: Path, content: bytes, *, private: bool = False) -> None:
    """Write bytes, whole or not at all."""
    write_whole(path, lambda temporary: _write_bytes(temporary, content), private=private)


def write_json(path: Path, value: Any, *, private: bool = False) -> None:
    """Write JSON for people and programs, whole or not at all. Numbers that are not finite are refused."""
    write_text(path, json.dumps(value, indent=2, allow_nan=False) + "\n", private=private)


def write_folder(path: Path, fill: Callable[[Path], None]) -> None:
    """Let `fill` put files into a temporary folder beside `path`, then put it in place in one step.

    Refuses a path where something is already; on failure nothing is left behind.
    """
    require_new(path)
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
        temporary.mkdir()
        try:
            fill(temporary)
            for there, _, names in os.walk(temporary):
                for name in names:
                    _sync(Path(there, name))
                sync_folder(Path(there))
            temporary.rename(path)
            sync_folder(path.parent)
        except BaseException:
            shutil.rmtree(temporary, ignore_errors=True)
            raise


def require_new(path: Path) -> None:
    """Refuse a path where something is already, or where nothing can be."""
    with writing(path):
        there = path.exists() or path.is_symlink()
    if there:
        raise OutputError(f"{path}: already exists; choose another --out")


def append_line(path: Path, line: str, *, private: bool = False) -> None:
    """Add a line at the end of a text file; it has reached the disk when this returns.

    A line that a full disk or a power cut has left without its end is ended first: else both would be lost.
    """
    with writing(path):
        new = not path.exists()
        if new and private:
            path.touch(OWN_FILE)
        with path.open("ab+") as lines:
            if lines.tell():
                lines.seek(-1, os.SEEK_END)
                line = line if lines.read(1) == b"\n" else f"\n{line}"
            lines.write(f"{line}\n".encode())
            lines.flush()
            os.fsync(lines.fileno())
        if new:
            sync_folder(path.parent)


def append_bounded(
    path: Path, line: str, most: int, added_up: Callable[[Iterable[bytes]], str] = lambda older: ""
) -> None:
    """Add a line to a private log that never grows beyond `most` bytes and a line; its older half goes before.

    The log is cut as a stream, whole or not at all: a buffer of it is in memory, however long it is.

    Args:
        path: of the log.
        line: without its end.
        most: bytes from which on the log is cut at the first end of a line behind its middle.
        added_up: the lines that go, oldest first -> a line in their place, without its end; empty for none.
    """
    if is_file(path) and path.stat().st_size > most:
        write_whole(path, lambda temporary: _cut(path, temporary, added_up), private=True)
    append_line(path, line, private=True)


def _cut(path: Path, shorter: Path, added_up: Callable[[Iterable[bytes]], str]) -> None:
    with path.open("rb") as log, shorter.open("wb") as kept:
        log.seek(path.stat().st_size // 2)
        log.readline()
        middle = log.tell()
        log.seek(0)
        if first := added_up(_lines_until(log, middle)):
            kept.write(f"{first}\n".encode())
        log.seek(middle)
        shutil.copyfileobj(log, kept)


def _lines_until(log: BinaryIO, end: int) -> Iterator[bytes]:
    while log.tell() < end:
        yield log.readline()


def sync_folder(folder: Path) -> None:
    """Names in a folder, made or changed before, have reached the disk when this returns.

    Some network file systems know no such thing, and see to it themselves.
    """
    with writing(folder):
        try:
            _sync(folder)
        except OSError as error:
            if error.errno not in (errno.EINVAL, errno.ENOTSUP):
                raise


def make_folder(path: Path, *, private: bool = False) -> None:
    """Make a folder, and those above it, where it is not there yet; a private one is its owner's alone."""
    with writing(path):
        path.mkdir(OWN_FOLDER if private else 0o777, parents=True, exist_ok=True)


def temporary_folder() -> Path:
    """A folder for one run or several that goes with the process; it is not there yet, and the one above it is."""
    parent = Path(tempfile.mkdtemp(prefix="ownview-"))
    atexit.register(shutil.rmtree, parent, ignore_errors=True)
    return parent / "run"


def is_file(path: Path) -> bool:
    """Whether a file of that name is there; no file can have a name that is too long or holds a NUL character."""
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def sha256_of(path: Path) -> str:
    """SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextlib.contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn what the operating system says about a write into an error that names the file."""
    try:
        yield
    except OSError as error:
        if isinstance(error, FileNotFoundError) and not path.parent.exists():
            why = f"the folder {path.parent} does not exist; make it, or choose another place"
        else:
            why = f"{error.strerror or error}; make room or choose another place"
        raise UnwrittenError(f"{path}: cannot be written: {why}") from error


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _write_bytes(path: Path, content: bytes) -> None:
    path.write_bytes(content)


def _write_text(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
