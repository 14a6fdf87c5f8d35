"""Whose key is whose: enrolled places, open invitations and revoked keys, in one file of the server's.

The server decides by this file alone. It is read anew whenever it has changed, so `ownview deploy invite` and
`ownview deploy revoke` take effect at once on a running server, and after every restart.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ownview.base.errors import DataError, MessageError, UnknownNameError
from ownview.base.files import make_folder, write_json
from ownview.base.lock import sole_worker


@dataclass(frozen=True)
class Invited:
    """An invitation that has been given out.

    Args:
        name: of the place that may join with it.
        until: ISO date and time in UTC after which it is void.
        used_by: fingerprint of the key that joined with it; empty before. The same key may ask again, in case its
            answer was lost.
    """

    name: str
    until: str
    used_by: str = ""


@dataclass(frozen=True)
class Revoked:
    """A key that counts no more.

    Args:
        name: of the place that had it.
        serial: of its certificate, in hex; empty where the certificate is not known.
        at: ISO date and time in UTC.
    """

    name: str
    serial: str
    at: str


@dataclass(frozen=True)
class _Content:
    places: dict[str, str] = field(default_factory=dict)
    invited: dict[str, Invited] = field(default_factory=dict)
    revoked: dict[str, Revoked] = field(default_factory=dict)


class KnownKeys:
    """Places, invitations and revoked keys by fingerprint.

    Args:
        file: JSON; no key is known where it is missing. Changes lock its folder against each other.
    """

    def __init__(self, file: Path) -> None:
        self.file = file
        self._cached: tuple[tuple[int, ...], _Content] = ((), _Content())

    def names(self) -> dict[str, str]:
        """Names of the enrolled places by fingerprint."""
        return dict(self._content().places)

    def expected(self) -> set[str]:
        """Names of the places that may take part: enrolled ones, and those with an invitation that is still good."""
        content, now = self._content(), datetime.now(UTC)
        open_ones = (one.name for one in content.invited.values() if datetime.fromisoformat(one.until) > now)
        return {*content.places.values(), *open_ones}

    def revoked(self) -> dict[str, Revoked]:
        """Keys that count no more, by fingerprint."""
        return dict(self._content().revoked)

    def invited(self, fingerprint: str) -> Invited | None:
        """The invitation with this key; None where there is none."""
        return self._content().invited.get(fingerprint)

    def why_unknown(self, fingerprint: str) -> str:
        """Why a key is not that of an enrolled place, in one line."""
        found = self._content().revoked.get(fingerprint)
        if found is not None:
            return f"the key of place {found.name!r} was revoked at {found.at}; expected a new invitation"
        return f"unknown key {fingerprint[:16]}; expected that of an enrolled place"

    def enrol(self, name: str, fingerprint: str) -> None:
        """Enrol a key as that of the place of this name; an earlier key of the place counts no more."""
        with self._changing() as content:
            _enrol(self.file, content, name, fingerprint)

    def invite(self, name: str, fingerprint: str, until: datetime) -> None:
        """Let the holder of this key join once as the place of this name; earlier invitations of the place are void."""
        with self._changing() as content:
            _withdraw(content, name)
            content.invited[fingerprint] = Invited(name, until.astimezone(UTC).isoformat(timespec="seconds"))

    def accept(self, invitation: str, key: str) -> str:
        """Enrol the key that joins with an invitation; returns the place's name.

        Args:
            invitation: fingerprint of its key.
            key: fingerprint of the place's own key, of which the server has the public half alone.

        Raises:
            MessageError: the invitation is unknown, void, or was used with another key.
        """
        with self._changing() as content:
            found = content.invited.get(invitation)
            if found is None:
                raise MessageError("an invitation that is unknown or was withdrawn; expected one of this deployment")
            if found.used_by == key and content.places.get(key) == found.name:
                return found.name
            if found.used_by:
                raise MessageError(
                    f"the invitation of place {found.name!r} was used already; where that was not the place itself, "
                    f"revoke {found.name} and invite it anew"
                )
            if datetime.now(UTC) > datetime.fromisoformat(found.until):
                raise MessageError(f"the invitation of place {found.name!r} ended at {found.until}; expected a new one")
            _enrol(self.file, content, found.name, key)
            content.invited[invitation] = Invited(found.name, found.until, used_by=key)
            return found.name

    def revoke(self, name: str, serial: str = "") -> None:
        """The key of a place counts no more, nor does its invitation; its name may be invited again."""
        with self._changing() as content:
            keys = [key for key, known in content.places.items() if known == name]
            waiting = [one.name for one in content.invited.values()]
            if not keys and name not in waiting:
                raise UnknownNameError("place", name, {*content.places.values(), *waiting})
            at = datetime.now(UTC).isoformat(timespec="seconds")
            for key in keys:
                del content.places[key]
                content.revoked[key] = Revoked(name, serial, at)
            _withdraw(content, name)

    def _content(self) -> _Content:
        """The file's content."""
        try:
            about = self.file.stat()
        except FileNotFoundError:
            return _Content()
        mark = about.st_ino, about.st_mtime_ns, about.st_size  # a file that was replaced has another number
        if self._cached[0] != mark:
            self._cached = mark, self._read()
        return self._cached[1]

    def _read(self) -> _Content:
        try:
            found: Any = json.loads(self.file.read_text(encoding="utf-8"))
            return _Content(
                {str(key): str(name) for key, name in found["places"].items()},
                {str(key): Invited(**one) for key, one in found["invited"].items()},
                {str(key): Revoked(**one) for key, one in found["revoked"].items()},
            )
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise DataError(f"{self.file}: is damaged ({error}); expected places, invited and revoked") from error

    @contextmanager
    def _changing(self) -> Iterator[_Content]:
        """The content, to be changed; it is written when the block ends without an error."""
        make_folder(self.file.parent)
        with sole_worker(self.file.parent, busy="another process changes its keys; try again"):
            content = self._read() if self.file.is_file() else _Content()
            yield content
            write_json(self.file, asdict(content))


def _enrol(file: Path, content: _Content, name: str, fingerprint: str) -> None:
    owner = content.places.get(fingerprint, name)
    if owner != name:
        raise DataError(f"{file}: key {fingerprint[:16]} is that of place {owner!r}; one key, one place")
    if fingerprint in content.revoked:
        raise DataError(f"{file}: key {fingerprint[:16]} was revoked; expected a new key")
    for key in [key for key, known in content.places.items() if known == name]:
        del content.places[key]
    content.places[fingerprint] = name


def _withdraw(content: _Content, name: str) -> None:
    for key in [key for key, one in content.invited.items() if one.name == name]:
        del content.invited[key]
