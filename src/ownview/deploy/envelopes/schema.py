"""What a note may say: a value is compared with a rule, and refused with its place in the note and the reason.

Rules hold other rules, so that a rule of one expression says all that a note may be. What a stranger wrote is never
quoted at length: of a wrong value the error names the kind, and the value itself where it is a short number.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from ownview.base.errors import MessageError


class FieldRule(Protocol):
    """A rule that values are checked against."""

    def require(self, value: object, where: str) -> None:
        """Raise `MessageError`, which names `where`, if the value is not allowed."""


@dataclass(frozen=True)
class Whole:
    """A whole number from `low` to `high`."""

    low: int
    high: int

    def require(self, value: object, where: str) -> None:
        """See `FieldRule`."""
        if type(value) is not int or not self.low <= value <= self.high:
            raise _wrong(where, value, f"a whole number from {self.low} to {self.high}")


@dataclass(frozen=True)
class Real:
    """A finite number from `low` to `high`."""

    low: float
    high: float

    def require(self, value: object, where: str) -> None:
        """See `FieldRule`."""
        if type(value) not in (int, float) or not self.low <= value <= self.high:  # type: ignore[operator]
            raise _wrong(where, value, f"a number from {self.low:g} to {self.high:g}")


@dataclass(frozen=True)
class Text:
    """Text of at most so many characters, one of `choices` where there are any."""

    longest: int
    choices: tuple[str, ...] = ()

    def require(self, value: object, where: str) -> None:
        """See `FieldRule`."""
        if not isinstance(value, str) or len(value) > self.longest:
            raise _wrong(where, value, f"text of at most {self.longest} characters")
        if self.choices and value not in self.choices:
            raise _wrong(where, value, f"one of {', '.join(self.choices)}")


@dataclass(frozen=True)
class Flag:
    """True or false."""

    def require(self, value: object, where: str) -> None:
        """See `FieldRule`."""
        if not isinstance(value, bool):
            raise _wrong(where, value, "true or false")


@dataclass(frozen=True)
class AnyOf:
    """What one of several rules allows; `expected` says it in words."""

    rules: tuple[FieldRule, ...]
    expected: str

    def require(self, value: object, where: str) -> None:
        """See `FieldRule`."""
        for rule in self.rules:
            try:
                rule.require(value, where)
            except MessageError:
                continue
            return
        raise _wrong(where, value, self.expected)


@dataclass(frozen=True)
class Listed:
    """A list of at most so many values, each as `of` says; where `distinct`, no value twice."""

    of: FieldRule
    longest: int
    distinct: bool = False

    def require(self, value: object, where: str) -> None:
        """See `FieldRule`."""
        if not isinstance(value, list) or len(value) > self.longest:
            raise _wrong(where, value, f"a list of at most {self.longest}")
        for place, one in enumerate(value):
            self.of.require(one, f"{where}[{place}]")
        if self.distinct and len(set(value)) < len(value):
            raise MessageError(f"{where}: a value stands in it twice; expected each once")


@dataclass(frozen=True)
class Pair:
    """A list of two values, each with its rule."""

    first: FieldRule
    second: FieldRule

    def require(self, value: object, where: str) -> None:
        """See `FieldRule`."""
        if not isinstance(value, list) or len(value) != 2:
            raise _wrong(where, value, "a list of two")
        self.first.require(value[0], f"{where}[0]")
        self.second.require(value[1], f"{where}[1]")


@dataclass(frozen=True)
class Named:
    """Values by names that are not known beforehand, at most so many."""

    of: FieldRule
    longest: int
    name: FieldRule = field(default_factory=lambda: Text(100))

    def require(self, value: object, where: str) -> None:
        """See `FieldRule`."""
        if not isinstance(value, dict) or len(value) > self.longest:
            raise _wrong(where, value, f"a table of at most {self.longest}")
        for name, one in value.items():
            self.name.require(name, f"a name in {where}")
            self.of.require(one, f"{where}.{name}")


@dataclass(frozen=True)
class Record:
    """Values by name: all of `fields`, perhaps some of `optional`, and nothing else."""

    fields: Mapping[str, FieldRule]
    optional: Mapping[str, FieldRule] = field(default_factory=dict)

    def require(self, value: object, where: str) -> None:
        """See `FieldRule`."""
        if not isinstance(value, dict):
            raise _wrong(where, value, f"a table of {', '.join(self.fields)}")
        missing = next((name for name in self.fields if name not in value), None)
        if missing is not None:
            raise MessageError(f"{where}: {missing} is missing")
        for name, one in value.items():
            rule = self.fields.get(name) or self.optional.get(name)
            if rule is None:
                raise MessageError(f"{where}: {name[:40]!r} has no meaning here")
            rule.require(one, f"{where}.{name}")


def _wrong(where: str, value: object, expected: str) -> MessageError:
    return MessageError(f"{where[:200]}: found {_found(value)}; expected {expected}")


def _found(value: object) -> str:
    """A few words for a wrong value, however large it is."""
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "null"}[value]
    if isinstance(value, int):
        return str(value) if abs(value) < 10**12 else f"a whole number of {value.bit_length()} bits"
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, str):
        return repr(value) if len(value) <= 40 else f"text of {len(value)} characters"
    if isinstance(value, list):
        return f"a list of {len(value)}"
    return f"a table of {len(value)}" if isinstance(value, dict) else type(value).__name__
