"""A Python file is run only where the user named it; a file named from elsewhere has to be trusted first.

A method may be a Python file, and a Python file can do whatever its user can. Names of methods come from many places:
the command line, a call in Python, an experiment file, a suite, a run folder, a part of a blend, the folder of another
run. So the rule does not follow the ways a name may take. It stands where a file is loaded (`ownview.registry`), and
denies: a file runs if the command line or a call in Python named that very path, if its content was trusted, if --trust
was given, or if the person at the terminal says yes.

What is trusted is the content, by its SHA-256: a file that changes has to be trusted again. What the user names is a
path: a user who edits a file and runs it again means its new content.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from ownview.base.arguments import kinds_checked
from ownview.base.errors import SettingError
from ownview.base.files import is_file

Ask = Callable[[str], bool]
"""Puts a question to the person at the terminal; whether the answer was yes."""


class UntrustedError(SettingError):
    """A Python file that the user neither named nor trusted."""


@dataclass(frozen=True)
class Permissions:
    """The Python files that a process may run; it travels to the processes that work for it.

    Args:
        named: full paths that the command line, or a call in Python, named.
        contents: full path and SHA-256 of what is trusted.
        everything: --trust was given.
    """

    named: frozenset[Path] = frozenset()
    contents: frozenset[tuple[Path, str]] = frozenset()
    everything: bool = False

    def allow(self, path: Path, digest: str) -> bool:
        """Whether a file, by its full path and the SHA-256 of its content, may run."""
        return self.everything or path in self.named or (path, digest) in self.contents


@dataclass
class _Process:
    """What this process may run, and how it asks; None where no person is there to answer."""

    permissions: Permissions = field(default_factory=Permissions)
    ask: Ask | None = None


_PROCESS = [_Process()]
"""The last one counts; a command has one of its own."""


@contextmanager
def afresh(ask: Ask | None = None) -> Iterator[None]:
    """Begin with nothing named and nothing trusted, for the time of one command."""
    _PROCESS.append(_Process(ask=ask))
    try:
        yield
    finally:
        _PROCESS.pop()


@contextmanager
def unasked() -> Iterator[None]:
    """Ask no questions meanwhile: what only describes a folder refuses silently instead."""
    process = _PROCESS[-1]
    ask, process.ask = process.ask, None
    try:
        yield
    finally:
        process.ask = ask


def named_by_user(file: str | Path) -> None:
    """Note that the command line, or a call in Python, names this path; what is no Python file is passed over."""
    if _is_python(Path(file)):
        process = _PROCESS[-1]
        process.permissions = replace(process.permissions, named=process.permissions.named | {Path(file).resolve()})


@kinds_checked()
def trust(file: str | Path) -> None:
    """Trust a Python file as it is now; what is no such file is passed over, the command that needs it says so."""
    path = Path(file)
    if _is_python(path):
        _trust_content(path.resolve(), _digest(path.read_bytes()))


def trust_everything() -> None:
    """Trust every file from now on: what --trust means."""
    process = _PROCESS[-1]
    process.permissions = replace(process.permissions, everything=True)


def permissions() -> Permissions:
    """What this process may run, for a process that works for it."""
    return _PROCESS[-1].permissions


def inherit(given: Permissions) -> None:
    """Inherit the permissions of the parent process, without a prompt."""
    _PROCESS[-1] = _Process(given)


def require_trusted(path: Path, content: bytes) -> None:
    """Refuse to run a Python file, unless the user named it, its content is trusted, or a person says yes now."""
    process, full, digest = _PROCESS[-1], path.resolve(), _digest(content)
    if process.permissions.allow(full, digest):
        return
    if process.ask is not None and process.ask(
        f"What you gave names a Python file, which can do whatever you can:\n  {full}\n  SHA-256 {digest}\nRun it?"
    ):
        _trust_content(full, digest)
        return
    raise UntrustedError(
        f"{full}: a Python file that you did not name yourself, but a file or folder did; it can do whatever you can "
        f"(SHA-256 {digest}): read it, then give --trust (in Python: ownview.trust(FILE))"
    )


def _trust_content(full: Path, digest: str) -> None:
    process = _PROCESS[-1]
    process.permissions = replace(process.permissions, contents=process.permissions.contents | {(full, digest)})


def _is_python(path: Path) -> bool:
    return path.name.endswith(".py") and is_file(path)


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
