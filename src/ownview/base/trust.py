"""Python files that a folder or a file names are not run before a person has said so.

A method may be a Python file. Named on the command line, or in Python, it is run: whoever names it means it. Named by
an experiment file, a suite or a run folder, which may come from a stranger, it is run only once it is trusted: after a
question on a terminal, with --trust, or with `ownview.trust(FILE)` in Python. What is trusted is the content, by its
SHA-256, so that a file which changes has to be trusted again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from ownview.base.errors import SettingError
from ownview.base.files import is_file

Ask = Callable[[str], bool]
"""Puts a question to the person at the terminal; whether the answer was yes."""


class UntrustedError(SettingError):
    """A Python file that only a file names, and that nobody has trusted yet."""


@dataclass
class _Trusted:
    """What this process may run.

    Args:
        named_by: by full path, the file that names it.
        contents: full path and SHA-256 of what a person trusts.
        everything: --trust was given.
        ask: how to ask; None where nobody is there to answer.
    """

    named_by: dict[Path, str] = field(default_factory=dict)
    contents: set[tuple[Path, str]] = field(default_factory=set)
    everything: bool = False
    ask: Ask | None = None


_TRUSTED = [_Trusted()]
"""The last one counts; a command has one of its own."""


@contextmanager
def afresh(ask: Ask | None = None) -> Iterator[None]:
    """Begin with nothing trusted, for the time of one command."""
    _TRUSTED.append(_Trusted(ask=ask))
    try:
        yield
    finally:
        _TRUSTED.pop()


def trust(file: str | Path) -> None:
    """Trust a Python file as it is now; what is no such file is passed over, whoever needs it says so."""
    path = Path(file)
    if path.name.endswith(".py") and is_file(path):
        _TRUSTED[-1].contents.add((path.resolve(), _digest(path.read_bytes())))


def trust_everything() -> None:
    """Trust every file that is named from now on: what --trust means."""
    _TRUSTED[-1].everything = True


def named_by_file(method: str, source: str) -> None:
    """Note that a file (`source`) names a method; where that is a Python file, it has to be trusted."""
    if method.endswith(".py"):
        _TRUSTED[-1].named_by[Path(method).resolve()] = source


def require_trusted(path: Path, content: bytes) -> None:
    """Refuse a Python file that only a file names, unless its content is trusted or a person says yes now."""
    known, full, digest = _TRUSTED[-1], path.resolve(), _digest(content)
    source = known.named_by.get(full)
    if source is None or known.everything or (full, digest) in known.contents:
        return
    if known.ask is not None and known.ask(
        f"{source} names a Python file, which can do whatever you can:\n  {full}\n  SHA-256 {digest}\nRun it?"
    ):
        known.contents.add((full, digest))
        return
    raise UntrustedError(
        f"{source}: names the Python file {full} (SHA-256 {digest}), which can do whatever you can; "
        "read it, then give --trust (in Python: ownview.trust(FILE))"
    )


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
