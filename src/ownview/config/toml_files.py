"""TOML from files and texts, with errors that name where it came from."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from ownview.base.errors import SettingError

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
    """The text of a file that a person named; `kind` tells what it should be, such as "suite"."""
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
