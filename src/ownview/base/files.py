"""Files that are whole or not there: written under a temporary name, then renamed."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from ownview.base.errors import OutputError


def write_whole(path: Path, write: Callable[[Path], None]) -> None:
    """Let `write` fill a temporary file beside `path`, then put it in place in one step.

    On failure (a full disk, say) the old file stays as it was and nothing is left behind.
    """
    with writing(path):
        handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        os.close(handle)
        try:
            write(Path(temporary))
            with Path(temporary).open("rb") as written:
                os.fsync(written.fileno())
            Path(temporary).chmod(0o644)
            Path(temporary).replace(path)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise


def drop_unfinished(path: Path) -> None:
    """Remove temporary files that processes killed while they wrote `path` have left beside it."""
    for left in path.parent.glob(f".{path.name}.????????"):
        left.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Write UTF-8 text, whole or not at all."""
    write_whole(path, lambda temporary: _write_text(temporary, text))


def write_bytes(path: Path, content: bytes) -> None:
    """Write bytes, whole or not at all."""
    write_whole(path, lambda temporary: _write_bytes(temporary, content))


def write_json(path: Path, value: Any) -> None:
    """Write JSON for people and programs, whole or not at all. Numbers that are not finite are refused."""
    write_text(path, json.dumps(value, indent=2, allow_nan=False) + "\n")


def make_folder(path: Path) -> None:
    """Make a folder, and those above it, where it is not there yet."""
    with writing(path):
        path.mkdir(parents=True, exist_ok=True)


@contextlib.contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn what the operating system says about a write into an error that names the file."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        raise OutputError(f"{path}: cannot be written: {reason}; make room or choose another place") from error


def _write_bytes(path: Path, content: bytes) -> None:
    path.write_bytes(content)


def _write_text(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
