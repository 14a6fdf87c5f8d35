"""Files that a suite names: their paths begin in the folder of the suite's own file, wherever the command is given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ownview.base.files import is_file
from ownview.blends.blend import Part
from ownview.data.datasets.catalog import catalog
from ownview.data.datasets.storage import find


def files_beside(names: Sequence[str], folder: Path) -> dict[str, str]:
    """Full paths of those names of data and protocols that are files beside the suite; names of datasets stay names."""
    return {
        name: str(folder / Path(name).expanduser())
        for name in names
        if name not in catalog() and find(name) is None and (is_file(folder / name) or _is_path(name))
    }


def with_files_beside(row: Any, folder: Path) -> Any:
    """A row, and what it says of single datasets, with full paths of Python files; what is no table stays as it is."""
    if not isinstance(row, Mapping):
        return row
    made = {**row, **_located(row, folder)}
    if isinstance(layers := row.get("data"), Mapping):
        made["data"] = {name: with_files_beside(layer, folder) for name, layer in layers.items()}
    return made


def _located(layer: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = {}
    method = layer.get("method")
    if isinstance(method, str) and method.endswith(".py"):
        found["method"] = str(folder / method)
    settings = layer.get("settings")
    if isinstance(settings, Mapping) and isinstance(parts := settings.get("parts"), list):
        found["settings"] = {**settings, "parts": [_part(one, folder) for one in parts]}
    return found


def _part(text: Any, folder: Path) -> Any:
    """A part of a blend, whose first word may be a file."""
    if not isinstance(text, str) or not text.partition(" ")[0].endswith(".py"):
        return text
    part = Part.read(text)
    return str(part._replace(method=str(folder / part.method)))


def _is_path(name: str) -> bool:
    """Whether a name can only be that of a file."""
    return "/" in name or name.endswith((".toml", ".csv", ".csv.gz"))
