"""Settings that check themselves: typed, bounded, documented, and readable from text.

A class of settings is a frozen dataclass that inherits `Settings` and declares its fields with `setting`.
Wrong names, types and values raise `SettingError` with what was found and what was expected.
"""

from __future__ import annotations

import dataclasses
import math
import typing
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self
from weakref import WeakKeyDictionary

from ownview.base.errors import SettingError, suggestion
from ownview.config.layers import require_known
from ownview.config.search import Space

Scalar = bool | int | float | str
Value = Scalar | tuple[Scalar, ...]
_YES, _NO = ("true", "yes", "on", "1"), ("false", "no", "off", "0")


_LARGEST = 2**62
"""Whole numbers beyond it do not fit into what computes with them."""


@dataclass(frozen=True)
class SettingRule:
    """What a setting may be: bounds are inclusive, `above` is exclusive, `choices` lists all values.

    `infinite` lets a number be infinity, written inf. `search` is where `ownview tune` looks for the best value; None
    for a setting that is not for tuning. `afterwards` marks what decides nothing that clients send: sums that are kept
    are solved again with another value. `excludes` names other settings of the class that must have their defaults
    where this one has another value than its own.
    """

    help: str
    low: float | None = None
    above: float | None = None
    high: float | None = None
    choices: tuple[str, ...] = ()
    search: Space | None = None
    infinite: bool = False
    afterwards: bool = False
    excludes: tuple[str, ...] = ()

    def expected(self, kind: str) -> str:
        """The rule in words, for help texts and errors."""
        if self.choices:
            return "one of " + ", ".join(self.choices)
        known = {"at least": self.low, "above": self.above, "at most": self.high}
        bounds = [f"{words} {bound:g}" for words, bound in known.items() if bound is not None]
        return kind + (" " + " and ".join(bounds) if bounds else "") + (", or inf" if self.infinite else "")

    def allows(self, value: Scalar) -> bool:
        """Whether a value of the right type lies in range."""
        if self.choices:
            return value in self.choices
        if isinstance(value, str):
            return True
        return not (
            (isinstance(value, float) and not (math.isfinite(value) or (self.infinite and value == math.inf)))
            or (isinstance(value, int) and abs(value) > _LARGEST)
            or (self.low is not None and value < self.low)
            or (self.above is not None and value <= self.above)
            or (self.high is not None and value > self.high)
        )


def setting(
    default: Value,
    help: str,  # noqa: A002 - the field's own word for it
    *,
    low: float | None = None,
    above: float | None = None,
    high: float | None = None,
    choices: tuple[str, ...] = (),
    search: Space | None = None,
    infinite: bool = False,
    afterwards: bool = False,
    excludes: tuple[str, ...] = (),
) -> Any:
    """Declare a field of a `Settings` class with its default, meaning, range, and where its best value may lie."""
    rule = SettingRule(help, low, above, high, choices, search, infinite, afterwards, excludes)
    return field(default=default, metadata={"rule": rule})


@dataclass(frozen=True)
class Settings:
    """Base of all settings classes. Errors call the owner of the settings by its `title`, or else by its name."""

    title: ClassVar[str] = "settings"

    def __post_init__(self) -> None:
        kinds = kinds_of(type(self))
        for one in declared(type(self)):
            value = _coerced(getattr(self, one.name), kinds[one.name])
            _check(_owner(type(self)), one.name, value, kinds[one.name], one.metadata["rule"])
            object.__setattr__(self, one.name, value)
        self._require_agreement()

    def _require_agreement(self) -> None:
        """Refuse settings that exclude each other; all that one of them excludes are named at once."""
        chosen = {one.name: one for one in declared(type(self)) if getattr(self, one.name) != one.default}
        for name, one in chosen.items():
            others = [chosen[other] for other in one.metadata["rule"].excludes if other in chosen]
            if others:
                given = ", ".join(f"{other.name}={getattr(self, other.name)}" for other in others)
                plain = " and ".join(f"{other.name}={other.default}" for other in others)
                raise SettingError(
                    f"{_owner(type(self))} setting {name}={getattr(self, name)} does not go with {given}; "
                    f"expected {plain}, or {name}={one.default}"
                )

    def values(self) -> dict[str, Value]:
        """Every setting by name."""
        return {one.name: getattr(self, one.name) for one in declared(type(self))}

    def plain(self) -> dict[str, Any]:
        """Every setting by name, as `plain` writes values."""
        return dict(plain(self.values()))

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Self:
        """Build from names and values; text is read as the setting's type."""
        known = {one.name for one in declared(cls)}
        for name in values:
            require_known(name, known, f"{_owner(cls)} has no setting {name!r}")
        return cls(**{name: cls.read(name, value) for name, value in values.items()})

    @classmethod
    def read(cls, name: str, value: Any) -> Any:
        """Read one value, given as text or already typed, as the type the setting has."""
        kind = kinds_of(cls)[name]
        try:
            return _parse(value, kind)
        except ValueError:
            rule = next(one.metadata["rule"] for one in declared(cls) if one.name == name)
            raise SettingError(
                f"{_owner(cls)} setting {name}={value!r}: expected {rule.expected(_name_of(kind))}"
            ) from None


def plain(value: Any) -> Any:
    """A value as JSON and TOML know values: lists, no tuples, and infinity, which JSON has not, as the text inf."""
    if isinstance(value, Mapping):
        return {name: plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    return "inf" if value == math.inf else value


def kinds_of(cls: type[Settings]) -> dict[str, Any]:
    """The type of every setting by name. Annotations are text, and to evaluate them takes longer than all else here."""
    if cls not in _KINDS:
        _KINDS[cls] = typing.get_type_hints(cls)
    return _KINDS[cls]


_KINDS: WeakKeyDictionary[type[Settings], dict[str, Any]] = WeakKeyDictionary()
"""What `kinds_of` has found before."""


def own_settings(cls: type[Settings]) -> list[str]:
    """Names of the settings that a user may give."""
    return [one.name for one in declared(cls)]


def declared(cls: type[Settings]) -> list[dataclasses.Field[Any]]:
    """The fields of a settings class that were declared with `setting`."""
    return [one for one in dataclasses.fields(cls) if "rule" in one.metadata]


def _coerced(value: Any, kind: Any) -> Any:
    if kind is float and isinstance(value, int) and not isinstance(value, bool) and abs(value) <= _LARGEST:
        return float(value)
    if typing.get_origin(kind) is tuple and isinstance(value, list):
        return tuple(value)
    return value


def _owner(kind: type[Settings]) -> str:
    return kind.title if kind.title != Settings.title else str(getattr(kind, "name", kind.__name__))


def _check(owner: str, name: str, value: Any, kind: Any, rule: SettingRule) -> None:
    several = typing.get_origin(kind) is tuple
    inner = typing.get_args(kind)[0] if several else kind
    parts = value if several and isinstance(value, tuple) else (value,)
    right_type = isinstance(value, tuple) == several and all(type(part) is inner for part in parts)
    if not right_type or not all(rule.allows(part) for part in parts):
        near = suggestion(str(value), rule.choices) if rule.choices else ""
        near = near if "did you mean" in near else ""  # the choices themselves are in what was expected
        raise SettingError(f"{owner} setting {name}={value!r}: expected {rule.expected(_name_of(kind))}{near}")


def _parse(text: Any, kind: Any) -> Any:
    if isinstance(text, list | tuple) and typing.get_args(kind)[:1] == (float,):
        return tuple(math.inf if part == "inf" else part for part in text)  # as `plain` writes it
    if not isinstance(text, str) or kind is str:
        return text
    if kind is bool:
        if text.lower() not in (*_YES, *_NO):
            raise ValueError(text)
        return text.lower() in _YES
    if typing.get_origin(kind) is tuple:
        inner = typing.get_args(kind)[0]
        return tuple(_parse(part.strip(), inner) for part in text.split(",") if part.strip())
    return kind(text)


def _name_of(kind: Any) -> str:
    if typing.get_origin(kind) is tuple:
        return f"{_name_of(typing.get_args(kind)[0]).removeprefix('a ')}s separated by commas"
    return {int: "a whole number", float: "a number", bool: "true or false", str: "text"}[kind]
