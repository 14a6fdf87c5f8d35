"""TOML from files and texts, with errors that name where it came from."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from ownview.base.errors import SettingError


def parse_toml(text: str, source: str) -> dict[str, Any]:
    """Plain values; `source` names the text in the error where it is not TOML."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SettingError(f"{source}: not TOML: {error}") from None


def toml_text(path: Path, kind: str) -> str:
    """The text of a file that a person named; `kind` tells what it should be, such as "suite"."""
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise SettingError(f"{path}: no such {kind} file") from None
    except OSError as error:
        raise SettingError(f"{path}: cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        raise SettingError(f"{path}: not TOML, which is UTF-8 text: {error}") from None
