"""Places that keep refusing. Where the others cannot bring enough users, a coordinator ends instead of waiting."""

from __future__ import annotations

from collections.abc import Callable, Collection

from ownview.base.errors import OwnviewError
from ownview.deploy.coordination.register import Register

TIMES = 3
"""Refusals in a row after which a place is not counted on: its process may be started again meanwhile, with another
floor or with other data."""


class NoQuorumError(OwnviewError):
    """The places that may take part do not bring the users that a round needs."""

    exit_code = 3


class Refusals:
    """How often each place has refused in a row, greetings and rounds apart, and why the last time.

    Args:
        expected: names of all places that may take part, also those that have not come yet; None where they are not
            known, and then no number of refusals is too many.
    """

    def __init__(self, expected: Callable[[], Collection[str]] | None) -> None:
        self.expected = expected
        self._counts: dict[tuple[str, bool], int] = {}
        self._reasons: dict[str, str] = {}

    def add(self, place: str, why: str, *, greeting: bool) -> None:
        """Count a refusal of a greeting or in a round."""
        self._counts[place, greeting] = self._counts.get((place, greeting), 0) + 1
        self._reasons[place] = why

    def end(self, place: str, *, greeting: bool) -> None:
        """The place has accepted."""
        self._counts.pop((place, greeting), None)

    def reasons(self) -> str:
        """Which places refused last, and why; empty where none did."""
        refusing = sorted({place for place, _ in self._counts})
        return "".join(f"; {place} refused: {self._reasons[place]}" for place in refusing)

    def complete(self, places: Collection[str]) -> bool:
        """Whether these are all that may take part."""
        return self.expected is not None and set(places) >= set(self.expected())

    def require_hope(self, number: int, least: int, register: Register) -> None:
        """Raise `NoQuorumError` where places that do not keep refusing can bring fewer than `least` users."""
        if self.expected is None:
            return
        expected = set(self.expected())
        refusing = sorted({place for (place, _), count in self._counts.items() if count >= TIMES} & expected)
        if not refusing:
            return
        room = register.room - len(register.of(refusing))
        most = min(room, register.quota * len(expected.difference(refusing)))
        if most < least:
            reasons = "; ".join(f"{place}: {self._reasons[place]}" for place in refusing)
            raise NoQuorumError(
                f"round {number}: needs {least} users, and the places that do not refuse can bring {most}; refused "
                f"{TIMES} times or more: {reasons}; change what is agreed on, or invite other places"
            )
