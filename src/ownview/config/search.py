"""Where to look for a setting's best value: a range or a list, declared beside the setting."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ownview.base.errors import SettingError


@dataclass(frozen=True)
class Between:
    """Every number from `low` to `high`, both included; whole numbers where the setting is one.

    Args:
        low: the least value.
        high: the greatest.
        log: equal factors are equally likely, rather than equal differences; `low` must be above 0 then.
    """

    low: float
    high: float
    log: bool = False

    def __post_init__(self) -> None:
        if not self.low < self.high:
            raise SettingError(f"search range {self}: expected the low end below the high end")
        if self.log and self.low <= 0:
            raise SettingError(f"search range {self}: expected a low end above 0, logarithms need it")

    def ends(self) -> tuple[Any, ...]:
        """The values that must be allowed for all of them to be."""
        return self.low, self.high

    def holds(self, value: Any) -> bool:
        """Whether a value lies in it."""
        return bool(self.low <= value <= self.high)

    def to_dict(self) -> dict[str, Any]:
        """The space as plain values."""
        return {"low": self.low, "high": self.high, "log": self.log}

    def __str__(self) -> str:
        return f"{self.low:g}:{self.high:g}" + (":log" if self.log else "")


@dataclass(frozen=True)
class OneOf:
    """One of these values, none nearer to another than the rest."""

    values: tuple[Any, ...]

    def __post_init__(self) -> None:
        if len(set(self.values)) != len(self.values) or not self.values:
            raise SettingError(f"search choices {self}: expected different values, at least one")

    def ends(self) -> tuple[Any, ...]:
        """The values that must be allowed for all of them to be."""
        return self.values

    def holds(self, value: Any) -> bool:
        """Whether a value is one of them, as text."""
        return text_of(value) in map(text_of, self.values)

    def to_dict(self) -> dict[str, Any]:
        """The space as plain values."""
        return {"choices": [list(value) if isinstance(value, tuple) else value for value in self.values]}

    def __str__(self) -> str:
        listed = any(isinstance(value, tuple) for value in self.values)
        return ("/" if listed else ",").join(text_of(value) for value in self.values)


Space = Between | OneOf


def text_of(value: Any) -> str:
    """A value as `--set` takes it."""
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)


def parse_space(text: str, kind: type, read: Callable[[str], Any]) -> Space:
    """Read LOW:HIGH, LOW:HIGH:log, or choices separated by commas (by slashes where each is a list itself).

    Args:
        text: as typed.
        kind: of the setting; only whole numbers and numbers have ranges.
        read: turns the text of one value into a value, or raises `SettingError`.
    """
    if kind in (int, float) and ":" in text:
        low, high, *rest = text.split(":")
        if rest not in ([], ["log"]):
            raise SettingError(f"search range {text!r}: expected LOW:HIGH or LOW:HIGH:log")
        return Between(read(low), read(high), log=bool(rest))
    separator = "," if kind in (int, float, bool, str) else "/"
    return OneOf(tuple(read(part.strip()) for part in text.split(separator) if part.strip()))
