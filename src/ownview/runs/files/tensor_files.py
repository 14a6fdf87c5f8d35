"""Tensors of a run with their description, checked: a flipped bit or an edited experiment does not go unnoticed.

The description holds a SHA-256 over names, kinds, shapes and bytes of all tensors and over the description itself, and
what experiment.toml said when the file was written. Matrices that are mostly zeros lie in compressed rows.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from ownview.base.errors import OutputError
from ownview.base.files import write_whole
from ownview.base.json_shapes import TableOf, misfit
from ownview.base.json_text import parse_json
from ownview.runs.files.compressed_rows import compressed, whole

Experiment = Mapping[str, Any]
"""What experiment.toml says, as plain values."""

_CHECKED = "checked"
"""The entry of a description that holds the checksum and the experiment."""

_ADVICE = "bring a sound copy back, or start a new run"


def write_tensors(path: Path, tensors: Mapping[str, Tensor], about: Mapping[str, Any], experiment: Experiment) -> None:
    """Write all of it, whole or not at all."""
    plain, rows = compressed(as_written(tensors))
    # As it will be read again, with names in their order: what goes on from here writes them in the same one.
    checked = {"experiment": experiment, **({"rows": rows} if rows else {})}
    description = json.loads(json.dumps({**about, _CHECKED: checked}, allow_nan=False))
    description[_CHECKED]["sha256"] = _digest(plain, json.dumps(description, sort_keys=True))
    # One entry: the order of several would differ from one file to the next.
    save_whole(path, plain, {"about": json.dumps(description)})


def as_written(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The same values as they lie in a file, which is as they are read again."""
    return {key: value.detach().cpu().contiguous() for key, value in tensors.items()}


def save_whole(path: Path, tensors: Mapping[str, Tensor], metadata: dict[str, str]) -> None:
    """Write tensors as they are, whole or not at all."""

    def fill(temporary: Path) -> None:
        try:
            save_file(dict(tensors), temporary, metadata=metadata)
        except SafetensorError as error:  # what a full disk comes as
            raise OSError(str(error).removeprefix("Error while serializing: ")) from error

    write_whole(path, fill)


def read_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, Any], dict[str, Any]]:
    """Tensors, description, and the experiment they were written under.

    Raises:
        OutputError: not there, damaged, or not what was written.
    """
    try:
        with safe_open(path, framework="pt") as stored:
            about = dict(parse_json((stored.metadata() or {})["about"]))
            tensors = {key: stored.get_tensor(key) for key in stored.keys()}  # noqa: SIM118
        expected = about[_CHECKED].pop("sha256")
        found = _digest(tensors, json.dumps(about, sort_keys=True))
        checked = about.pop(_CHECKED)
        experiment, rows = dict(checked["experiment"]), checked.get("rows", {})
        if why := misfit(rows, TableOf([int]), "rows"):
            raise ValueError(why)
        tensors = whole(tensors, rows) if found == expected else {}
    except (SafetensorError, OSError, ValueError, TypeError, AttributeError, RuntimeError) as error:
        raise OutputError(f"{path}: cannot be read: {error}; {_ADVICE}") from None
    except KeyError as error:
        raise OutputError(f"{path}: cannot be read: no {error} in it; expected a file that Ownview wrote") from None
    if found != expected:
        raise OutputError(f"{path}: is damaged: its SHA-256 is not the one that was written with it; {_ADVICE}")
    return tensors, about, experiment


def _digest(tensors: Mapping[str, Tensor], description: str) -> str:
    digest = hashlib.sha256(description.encode())
    for name in sorted(tensors):
        value = tensors[name]
        digest.update(f"{name}\0{value.dtype}\0{tuple(value.shape)}\0".encode())
        digest.update(value.contiguous().as_strided((value.numel(),), (1,)).view(torch.uint8).numpy().data)
    return digest.hexdigest()
