"""All problems of a file, collected in one pass and reported together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from ownview.base.display.amounts import counted
from ownview.base.errors import DataError

EXAMPLES = 3
"""Places that are named for each kind."""

UNEVEN = "rows that have not"
"""How the kind begins that lines of another number of fields than the first are."""


@dataclass(frozen=True)
class Problem:
    """One kind of thing that is wrong, wherever it occurs.

    Args:
        kind: in a few words: "rows without a user".
        count: how often it occurs.
        examples: the first places with what stands there: "line 3: 'noon'".
        remedy: what a tolerant reader does about it: "left out".
        first: the whole sentence about the first place, as an error states it.
        refused: whether a reader that is not tolerant refuses the file for it; otherwise the remedy is applied anyway.
    """

    kind: str
    count: int
    examples: tuple[str, ...]
    remedy: str
    first: str = ""
    refused: bool = True

    @property
    def sentence(self) -> str:
        """Remedy of a problem, as a note."""
        where = f" ({', '.join(self.examples)}{', ...' if self.count > len(self.examples) else ''})"
        return f"{self.kind}: {self.count:,}, {self.remedy}{where if self.examples else ''}"


class UnsoundFileError(DataError):
    """A file that can be read by leaving something out, or by an assumption, where neither was allowed.

    Args:
        path: the file.
        problems: all of them, in the order in which they were found.
    """

    def __init__(self, path: Path, problems: Sequence[Problem]) -> None:
        refused = [one for one in problems if one.refused]
        others = sum(one.count for one in refused) - 1
        more = f" (and {counted(others, 'more place')} like it or with other problems)" if others else ""
        super().__init__(f"{path}: {refused[0].first}{more}")
        self.path, self.problems = path, tuple(problems)


@dataclass
class Problems:
    """Problems of a file so far.

    Args:
        path: the file.
        tolerant: whether remedies may be applied.
    """

    path: Path
    tolerant: bool = False
    found: list[Problem] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def add(self, problem: Problem) -> None:
        """Take note of a problem."""
        self.found.append(problem)

    def note(self, sentence: str) -> None:
        """Take note of something that was understood, and that the reader's user should know."""
        self.notes.append(sentence)

    def take(self, other: Problems) -> None:
        """Problems of one of several files, with its name."""
        name = other.path.name
        self.notes += [f"{name}: {one}" for one in other.notes]
        for one in other.found:
            places = tuple(f"{name}, {place}" for place in one.examples)
            self.found.append(replace(one, examples=places, first=f"{name}, {one.first}"))

    def require_sound(self) -> None:
        """Refuse the file where something was found that only a tolerant reader passes over."""
        if not self.tolerant and any(one.refused for one in self.found):
            raise UnsoundFileError(self.path, self.found)

    def require_none(self) -> None:
        """Refuse the file, naming all problems."""
        if self.found:
            raise DataError(f"{self.path}: {self.found[0].first}")

    def sentences(self) -> tuple[str, ...]:
        """Notes, and what was done about each problem."""
        return (*self.notes, *(one.sentence for one in self.found))
