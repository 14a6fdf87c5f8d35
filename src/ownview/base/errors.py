"""Errors a person can act on: what was found, what was expected, and the nearest valid choice.

Every error that a user can cause derives from `OwnviewError`. The command line prints its message on one
line and exits with `exit_code`; anything else is a bug in Ownview and shows its traceback.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable
from pathlib import Path

_NEAR = 0.6
"""Share of letters that two names have in common, in order, where one may be the other misspelt: at half, 'item' is
near to 'date'."""


class OwnviewError(Exception):
    """Base of all errors caused by input, settings or surroundings rather than by a bug."""

    exit_code = 2


class DataError(OwnviewError):
    """A data file or a dataset is not what it should be."""


class SettingError(OwnviewError):
    """A setting has an unknown name, the wrong type, or a value out of range."""


class UnknownNameError(OwnviewError):
    """A method, plug-in, dataset, protocol or user that does not exist."""

    def __init__(self, kind: str, name: str, choices: Iterable[str]) -> None:
        super().__init__(f"unknown {kind} {name!r}{suggestion(name, choices)}")


class DeviceError(OwnviewError):
    """The device or memory asked for is not there."""


class MemoryLackError(DeviceError):
    """There was too little memory for a run at this moment; with less beside it there may be enough."""


class OutputError(OwnviewError):
    """A result could not be written, or would overwrite another."""


class UnwrittenError(OutputError):
    """The system refused a write: the disk is full, say. Files that were whole stay so.

    Args:
        reason: what happened, and what to do about it.
        go_on: how the work goes on after that; empty where none was begun.
    """

    def __init__(self, reason: str, go_on: str = "") -> None:
        super().__init__(f"{reason}; then {go_on}" if go_on else reason)
        self.reason, self.go_on = reason, go_on


class DownloadError(OwnviewError):
    """A dataset could not be fetched whole and verified."""


class MessageError(OwnviewError):
    """A message between client and server is damaged, or of another version."""


class TrainingError(OwnviewError):
    """Training cannot go on: a loss or a parameter is not finite, or a client's code failed."""

    exit_code = 3


def suggestion(name: str, choices: Iterable[str]) -> str:
    """Return '; did you mean X?' for the nearest choice, or the list of choices when none is near."""
    available = sorted({str(choice) for choice in choices})
    if not available:
        return ""
    shown = ", ".join(repr(one) if "," in one else one for one in available[:20])
    return nearest(name, available) or f"; choose from {shown}" + (", ..." if len(available) > 20 else "")


def nearest(name: str, choices: Iterable[str]) -> str:
    """Return '; did you mean X?' for the choice that is nearest in spelling, or nothing when none is near."""
    near = difflib.get_close_matches(name.lower(), sorted(set(choices)), n=1, cutoff=_NEAR)
    return f"; did you mean {near[0]!r}?" if near else ""


def nearest_beside(path: Path, fits: Callable[[Path], bool]) -> str:
    """The same for a path that is not there, among what lies beside it and fits; or that its folder is not there.

    Other names are never listed: they are private.
    """
    try:
        return nearest(path.name, [entry.name for entry in path.parent.iterdir() if fits(entry)])
    except OSError:
        return f"; the folder {path.parent} is not there either"
