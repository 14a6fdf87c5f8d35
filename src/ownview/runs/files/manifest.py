"""What a run folder holds, by fingerprint, and the source of a method of one's own beside its results.

A run of a method that is a Python file travels with that file and those that it imports from its folder: they lie in
source/, to be read, and run only where they are trusted like any other file that a folder names (`base.trust`).
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from ownview.base.errors import OutputError
from ownview.base.files import make_folder, write_json, write_text
from ownview.base.json_text import parse_json
from ownview.runs.experiment import SOURCE, Experiment
from ownview.runs.files.sources import python_files, with_imports

MANIFEST = "manifest.json"
LISTS = "measured_lists"
"""Name of the file of lists where a run measures those of another program; its ending is that of their form."""
_COVERED = (
    "experiment.toml", "provenance.json", "rounds.jsonl", "users.csv", "cost.json", "privacy.json", "result.json",
    "model.safetensors", "recommended.safetensors", "watched.safetensors", "histories.safetensors",
)  # fmt: skip
"""Files that never change once a run has finished; probes and attacks may add others."""
_MOST = 10_000
"""Files that a manifest may name."""


def keep_sources(experiment: Experiment, folder: Path) -> None:
    """Copy the Python files of method and plug-ins, and what they import beside them; none where all are registered."""
    for name in python_files(experiment):
        path = Path(name).resolve()
        for relative, _ in with_imports(path):
            place = folder / SOURCE / relative
            text = (path.parent / relative).read_text(encoding="utf-8")
            if place.is_file() and place.read_text(encoding="utf-8") != text:
                raise OutputError(f"{place}: two different files of the method would have this name; rename one")
            make_folder(place.parent)
            write_text(place, text)


def write_manifest(folder: Path) -> None:
    """Note the SHA-256 of everything that the result rests on."""
    write_json(folder / MANIFEST, {"sha256": fingerprints(folder)})


def fingerprints(folder: Path) -> dict[str, str]:
    """By name, SHA-256 of the files of a finished run."""
    there = [folder / name for name in _COVERED if (folder / name).is_file()]
    there += sorted(one for one in folder.glob(f"{LISTS}.*") if one.is_file())
    there += sorted(one for one in (folder / SOURCE).rglob("*.py") if one.is_file())
    found = {}
    for one in there:
        with one.open("rb") as file:
            found[one.relative_to(folder).as_posix()] = hashlib.file_digest(file, "sha256").hexdigest()
    return found


def read_manifest(folder: Path) -> dict[str, str] | None:
    """By name, what was noted; None where nothing was, as in runs of earlier versions."""
    path = folder / MANIFEST
    if not path.is_file():
        return None
    try:
        noted = dict(parse_json(path.read_text(encoding="utf-8")))["sha256"]
        if len(noted) > _MOST or not all(isinstance(one, str) for pair in noted.items() for one in pair):
            raise ValueError("expected names and fingerprints")
    except (ValueError, TypeError, KeyError, AttributeError, OSError) as error:
        raise OutputError(f"{path}: is damaged: {error}") from None
    return dict(noted)
