"""The folder of a place: its users' ratings, and what it has to remember. Nothing here leaves by itself.

Only the owner of the folder may read it and what is in it, under any umask.

ratings.csv          the users' own: user,item and, where known, rating, timestamp, quantity; may grow at any time
users.csv            where the agreement has columns about users: user and those columns; stays here as ratings do
floor.toml           the weakest privacy under which the place answers; see `deploy.places.floor`
signers.txt          under signed masks, whose signatures the place believes; see `deploy.places.signers`
state/agreement      what was agreed on with the coordinator
state/members.json   the users in the order in which they came, and the identities that the coordinator gave them
state/newest         what the coordinator has sent last, which recommendations go by
state/*.generation   what the users' clients hold, in two generations
state/sent.jsonl     every message that has left; of very many, the oldest added up
state/releases.jsonl what of it was under a budget; state/frozen.csv and
                     state/frozen_users.csv, the ratings and users that a budget for sums looks at
state/secret         what noise is drawn from
state/signer         the key that the place signs with under signed masks
state/shown          where uploads are masked, the last round that shares were shown for
state/process        the number of the process at work, while there is one
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ownview.base.errors import DataError
from ownview.base.files import append_bounded, drop_unfinished, make_folder, write_bytes, write_json
from ownview.base.rights import inside, narrow
from ownview.deploy.agreement import Agreement, read_agreement
from ownview.deploy.places.floor import Floor, read_floor, write_floor
from ownview.deploy.places.signers import SIGNERS, own_signer, trust
from ownview.privacy.entropy import KEY, NoiseKey
from ownview.privacy.masking.signatures import Signer, Trust

RATINGS, USERS, PLACE, FLOOR = "ratings.csv", "users.csv", "place.toml", "floor.toml"
SENT, RELEASES, SHOWN = "sent.jsonl", "releases.jsonl", "shown"

MOST_OF_LOG = 2**24
"""Bytes of `sent.jsonl`: some 120,000 messages."""


@dataclass(frozen=True)
class Members:
    """Users of a place, and who they are to the coordinator.

    Args:
        users: names at the place, in the order in which they came; they never leave it.
        identities: of the first of them; the others are not known to the coordinator yet.
    """

    users: tuple[str, ...] = ()
    identities: tuple[int, ...] = ()


@dataclass(frozen=True)
class Newest:
    """The coordinator's last download.

    Args:
        round: after which it was.
        download: as `messages.codec` writes it; empty for nothing.
    """

    round: int = 0
    download: bytes = b""


class Home:
    """Files of a place by meaning.

    Args:
        folder: that exists.
    """

    def __init__(self, folder: Path) -> None:
        if not folder.is_dir():
            raise DataError(f"{folder}: no such folder; expected the home of a place, with a file {RATINGS}")
        self.folder, self.state, self.keys = folder, folder / "state", folder / "certificates"
        make_folder(self.state, private=True)

    def keep_private(self) -> list[str]:
        """Make everything here readable by its owner alone; warnings about files that others could read."""
        own = (RATINGS, USERS, PLACE, FLOOR)
        return narrow([self.folder, *(self.folder / name for name in own), *inside(self.state), *inside(self.keys)])

    def clear_up(self) -> None:
        """Remove the temporary files that a kill has left. For the resident alone."""
        for name in ("agreement", "members.json", "newest", "frozen.csv", "frozen_users.csv", SENT, SHOWN):
            drop_unfinished(self.state / name)

    @property
    def ratings(self) -> Path:
        """The users' own file."""
        file = self.folder / RATINGS
        if not file.is_file():
            raise DataError(f"{file}: is not there; expected the users' ratings with columns user,item,timestamp")
        return file

    @property
    def users(self) -> Path:
        """What is known of the users besides; need not be there."""
        return self.folder / USERS

    def floor(self) -> Floor | None:
        """The weakest privacy under which the place answers; None before one was set or a coordinator was met."""
        return read_floor(self.folder / FLOOR)

    def keep_floor(self, floor: Floor) -> None:
        """Remember it, also where the place leaves one federation and joins another."""
        write_floor(self.folder / FLOOR, floor)

    def agreement(self) -> Agreement | None:
        """The agreement; None before the first contact."""
        file = self.state / "agreement"
        return read_agreement(file) if file.is_file() else None

    def keep_agreement(self, agreement: Agreement) -> None:
        """Remember what was agreed on."""
        write_bytes(self.state / "agreement", agreement.pack(), private=True)

    def members(self) -> Members:
        """Users of this place as of the newest remembered state."""
        file = self.state / "members.json"
        if not file.is_file():
            return Members()
        try:
            found = json.loads(file.read_text(encoding="utf-8"))
            return Members(tuple(found["users"]), tuple(found["identities"]))
        except (ValueError, TypeError, KeyError) as error:
            raise DataError(
                f"{file}: is damaged ({error}); expected users and identities: put a copy back, or join anew without "
                f"{self.state}"
            ) from error

    def keep_members(self, members: Members) -> None:
        """Remember them."""
        known = {"users": list(members.users), "identities": list(members.identities)}
        write_json(self.state / "members.json", known, private=True)

    def newest(self) -> Newest:
        """The last download."""
        file = self.state / "newest"
        if not file.is_file():
            return Newest()
        content = file.read_bytes()
        return Newest(int.from_bytes(content[:4], "little"), content[4:])

    def keep_newest(self, newest: Newest) -> None:
        """Remember what was received."""
        write_bytes(self.state / "newest", newest.round.to_bytes(4, "little") + newest.download, private=True)

    def noise(self) -> NoiseKey:
        """Key of this place's noise."""
        return own_key(self.state / "secret")

    def signer(self) -> Signer:
        """The key that this place signs with."""
        return own_signer(self.state / "signer")

    def trust(self) -> Trust:
        """What this place signs with, and whose signatures it believes."""
        return trust(self.folder / SIGNERS, self.signer())

    def note_sent(self, line: dict[str, Any]) -> None:
        """Write down that a message leaves, before it does; in a log of some length the older half becomes one line."""
        now = datetime.now(UTC).isoformat(timespec="seconds")
        line = {"at": now, **line}
        append_bounded(self.state / SENT, json.dumps(line, ensure_ascii=False), MOST_OF_LOG, added_up)

    def sent(self) -> Sequence[dict[str, Any]]:
        """Every message that has left, oldest first: a line each, but for the oldest of very many."""
        file = self.state / SENT
        if not file.is_file():
            return []
        with file.open("rb") as lines:
            return [*_read_lines(lines)]


def added_up(lines: Iterable[bytes]) -> str:
    """Lines about messages as one: when and in which round the last was, how many, and bytes; empty for no line."""
    last, total, messages = None, 0, 0
    for one in _read_lines(lines):
        last, total, messages = one, total + one["bytes"], messages + one.get("messages", 1)
    if last is None:
        return ""
    known = {"at": last["at"], "kind": "earlier", "round": last["round"], "bytes": total, "messages": messages}
    return json.dumps(known)


def _read_lines(lines: Iterable[bytes]) -> Iterator[dict[str, Any]]:
    """What lines of JSON say; one that a kill cut short, also within a letter, is passed over."""
    for line in lines:
        try:
            yield json.loads(line)
        except ValueError:
            continue


def own_key(file: Path) -> NoiseKey:
    """A secret key of this place; made at its first use."""
    if not file.is_file():
        drop_unfinished(file)
        write_bytes(file, NoiseKey.fresh().key, private=True)
    found = file.read_bytes()
    if len(found) != KEY:
        raise DataError(
            f"{file}: is damaged: {len(found)} bytes; expected {KEY}: put a copy back, or remove it to draw a new one"
        )
    return NoiseKey(found)
