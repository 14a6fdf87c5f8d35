"""TOML files of settings in layers, as published tables and suites have them: read, checked, laid over each other."""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

from ownview.base.errors import SettingError, suggestion

_LONGEST = 10_000_000
"""Characters of a file that people write by hand; /dev/zero has more."""


def parse_toml(text: str, source: str) -> dict[str, Any]:
    """Plain values; `source` names the text in the error where it is not TOML."""
    try:
        return tomllib.loads(text)
    except ValueError as error:  # not only TOMLDecodeError: numbers of thousands of digits are refused by Python
        raise SettingError(f"{source}: not TOML: {error}") from None
    except RecursionError:
        raise SettingError(f"{source}: not TOML that can be read: nested too deeply") from None


def toml_text(path: Path, kind: str) -> str:
    """The text of a file that a person named; `kind` says what it should be, such as "suite"."""
    try:
        with path.open(encoding="utf-8") as file:
            text = file.read(_LONGEST + 1)
    except FileNotFoundError:
        raise SettingError(f"{path}: no such {kind} file") from None
    except OSError as error:
        raise SettingError(f"{path}: cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        raise SettingError(f"{path}: not TOML, which is UTF-8 text: {error}") from None
    if len(text) > _LONGEST:
        raise SettingError(f"{path}: longer than {_LONGEST:,} characters; expected a {kind} file")
    return text


Layer = Mapping[str, Any]

_KINDS: dict[type, str] = {str: "text", int: "a whole number", list: "a list", Mapping: "a table"}


def require_known(name: str, known: Collection[str], otherwise: str) -> None:
    """Refuse an unknown name: `otherwise` says so, and the nearest choice follows."""
    if name not in known:
        raise SettingError(f"{otherwise}{suggestion(name, known)}")


def check(values: Any, known: Mapping[str, type], where: str) -> None:
    """Refuse what is no table, has an unknown name, or a value of another kind than `known` says."""
    if not isinstance(values, Mapping):
        raise SettingError(f"{where}: found {values!r}, expected a table")
    for name, value in values.items():
        require_known(name, known, f"{where} has no setting {name!r}")
        if not isinstance(value, known[name]) or isinstance(value, bool):
            raise SettingError(f"{where}: {name} = {value!r}: expected {_KINDS[known[name]]}")


def merged(layers: Iterable[Layer]) -> Layer:
    """Later layers win; inside `settings` and `federation` name by name."""
    made: dict[str, Any] = {}
    for layer in layers:
        for name, value in layer.items():
            made[name] = {**made.get(name, {}), **value} if isinstance(value, Mapping) else value
    return made
