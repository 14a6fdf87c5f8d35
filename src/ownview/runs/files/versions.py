"""A model folder whose model changes while it is read: whole versions, and one file that names the version in use.

MODEL/current              one line: the name of the version in use, such as v000003
MODEL/versions/v000003/    a finished model, as `ownview fit` writes one; never changed after it was named
MODEL/sums/                the store that versions are solved from, where the method is a sum (`ownview.sums`)
MODEL/receipts/            what was forgotten
MODEL/new_items.csv        items without interactions that are offered (`data.unseen_items`)

A folder without `current` is itself the only version. A new version is written whole beside the others; replacing
`current`, in one step, puts it in use; then older ones go. Who reads opens `current`, then files of that version: where
these are gone meanwhile, `current` names another one (`reading` looks again). Whatever was read, or mapped into memory,
stays readable.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from ownview.base.errors import OutputError
from ownview.base.files import is_file, make_folder, sync_folder, write_text, writing

CURRENT, VERSIONS = "current", "versions"
MODEL = "model"
"""Where the folder of a start has its model."""
FILES = (
    *("experiment.toml", "provenance.json", "rounds.jsonl", "users.csv", "cost.json", "audit.json", "result.json"),
    *("attack.json", "privacy.json", "noise.key"),
    *("checkpoint.safetensors", "best-*.safetensors", "model.safetensors", "watched.safetensors"),
    *("recommended.safetensors", "histories.safetensors", "manifest.json"),
)
"""Of a finished model, or of one that is made, one by pattern: what else a folder holds is its owner's, and stays."""

_NAME = re.compile(r"v[0-9]{6,}")
_ATTEMPTS = 20
"""Times that a reader looks again where versions go while it reads."""

Read = TypeVar("Read")


def in_use(model: Path) -> Path:
    """The folder of the version in use; the model's folder itself where it has no versions."""
    named = model / CURRENT
    if not is_file(named):
        return model
    name = named.read_text(encoding="utf-8", errors="replace").strip()
    if not _NAME.fullmatch(name):
        raise OutputError(f"{named}: is damaged: found {name[:40]!r}; expected the name of a version, such as v000001")
    return model / VERSIONS / name


def model_folder(place: Path) -> Path:
    """The folder of the model that has a version here."""
    return place.parent.parent if place.parent.name == VERSIONS else place


def model_within(folder: Path) -> str:
    """'; did you mean X?' where a folder that is no model has one in it, as that of a start has; else nothing."""
    model = folder / MODEL
    there = is_file(model / CURRENT) or is_file(model / "experiment.toml")
    return f"; did you mean {str(model)!r}?" if there else ""


def version(model: Path) -> str:
    """The name of the version in use; v000000 of a model that was never changed."""
    place = in_use(model)
    return "v000000" if place == model else place.name


def reading(model: Path, read: Callable[[Path], Read]) -> Read:
    """What `read` makes of the version in use, all of it of one version."""
    for attempt in range(_ATTEMPTS):
        place = in_use(model)
        try:
            return read(place)
        except (OSError, OutputError):
            if attempt == _ATTEMPTS - 1 or in_use(model) == place:
                raise
    raise AssertionError


def publish(model: Path, fill: Callable[[Path], None]) -> Path:
    """Write the next version and put it in use; all others go. The caller is the only writer.

    Args:
        model: that exists.
        fill: writes all files of the version into a folder that exists and is empty.
    """
    drop_unused(model)
    place = model / VERSIONS / f"v{int(version(model)[1:]) + 1:06d}"
    make_folder(place)
    try:
        fill(place)
    except BaseException:
        shutil.rmtree(place, ignore_errors=True)
        raise
    sync_folder(place)
    sync_folder(place.parent)
    write_text(model / CURRENT, f"{place.name}\n")
    drop_unused(model)
    return place


def drop_unused(model: Path) -> None:
    """Remove versions that are not in use, and what lay in the model's folder itself before it had any."""
    place = in_use(model)
    with writing(model):
        for other in (model / VERSIONS).glob("*"):
            if other != place:
                shutil.rmtree(other)
        for name in FILES if place != model else ():
            for left in model.glob(name):
                left.unlink(missing_ok=True)
