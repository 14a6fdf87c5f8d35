"""What a command printed and how it ended."""

from __future__ import annotations

from typing import NamedTuple


class Outcome(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def words(self) -> str:
        """What was printed, without the line breaks of a narrow page."""
        return " ".join(self.out.split())
