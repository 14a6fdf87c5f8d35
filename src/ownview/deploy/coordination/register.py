"""Who is whom: the identities that a coordinator gave the users of each place. A place is known by its key alone."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from ownview.base.errors import DataError
from ownview.base.files import write_json


class Register:
    """Identities 0, 1, ... by place, in a file. They are given once and never change.

    Args:
        file: is read where it is there.
        room: users at most.
        quota: users of one place at most; 0 for as many as there is room for.
    """

    def __init__(self, file: Path, room: int, quota: int = 0) -> None:
        self.file, self.room, self.quota = file, room, quota or room
        try:
            found = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
            self.places: dict[str, list[int]] = {place: list(identities) for place, identities in found.items()}
        except (ValueError, TypeError, AttributeError) as error:
            raise DataError(f"{file}: is damaged ({error}); expected lists of identities by place") from error

    def enrol(self, place: str, users: int) -> str:
        """Give identities to users of a place that have none; returns why some have none, empty where all have.

        The number of users is the place's claim: a claim beyond the quota is refused, so that no
        place takes the identities that are meant for others.
        """
        mine = self.places.setdefault(place, [])
        if users > self.quota:
            return f"has {users} users, and one place may bring {self.quota} (users_per_place)"
        taken = sum(map(len, self.places.values()))
        wanted = max(0, users - len(mine))
        given = min(wanted, self.room - taken)
        if given:
            mine.extend(range(taken, taken + given))
            write_json(self.file, self.places, private=True)
        left = wanted - given
        return f"no room for {left} of its users; {self.room} were agreed on" if left else ""

    def of(self, places: Iterable[str]) -> list[int]:
        """Identities at some places, ascending."""
        return sorted(identity for place in places for identity in self.places.get(place, ()))

    def by_place(self, identities: Iterable[int]) -> dict[str, list[int]]:
        """Where some users live; places without any of them are left out."""
        wanted = set(identities)
        found = {place: [one for one in mine if one in wanted] for place, mine in self.places.items()}
        return {place: mine for place, mine in sorted(found.items()) if mine}
