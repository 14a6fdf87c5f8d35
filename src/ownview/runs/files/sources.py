"""Fingerprints of the user's own files that decide a result: Python files of the method, a file of ratings.

An experiment names them by path, and a path says nothing of what lies there. So the name of a run, its provenance and
what a tuning was asked hold their SHA-256: after an edit an old result is not taken for a new one.
"""

from __future__ import annotations

import ast
import hashlib
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from ownview.base.errors import OutputError, SettingError
from ownview.base.files import is_file, sha256_of
from ownview.blends.blend import Blend, Part
from ownview.runs.experiment import Experiment
from ownview.runs.files.folder import RunFolder

METHOD, DATA = "method_file_sha256", "data_file_sha256"
"""Their names in provenance.json."""


def sources(experiment: Experiment) -> dict[str, str]:
    """Fingerprints of the user's own files by name; empty where method and data are registered ones.

    `method_file_sha256` is that of the method's file or, where it imports files beside it or several parts of a blend
    are files, of all their fingerprints.
    """
    found = {METHOD: method_fingerprint(experiment), DATA: data_fingerprint(experiment)}
    return {name: value for name, value in found.items() if value is not None}


def method_fingerprint(experiment: Experiment) -> str | None:
    """SHA-256 of the Python files that the method is made of; None for a registered method, which the revision names.

    Raises:
        SettingError: a file is not there.
    """
    files = dict(pair for name in python_files(experiment) for pair in with_imports(Path(name).resolve()))
    digests = list(files.values())
    if len(digests) <= 1:
        return digests[0] if digests else None
    return hashlib.sha256("\n".join(f"{name} {files[name]}" for name in sorted(files)).encode()).hexdigest()


def data_fingerprint(experiment: Experiment) -> str | None:
    """SHA-256 of a file of interactions; None for a dataset, which is known by its name."""
    path = Path(experiment.data)
    if not (path.is_absolute() and is_file(path)):
        return None
    seen = path.stat()
    return _sha256(path, seen.st_size, seen.st_mtime_ns)


def require_unchanged(folder: RunFolder, experiment: Experiment) -> None:
    """Refuse to take a finished run for what its files would give now."""
    written = folder.read_provenance()
    for name, value in sources(experiment).items():
        if written.get(name) not in (None, value):
            what = f"the method file {experiment.method}" if name == METHOD else f"the data {experiment.data}"
            raise OutputError(f"{folder.path}: {what} has changed since the run was made; choose another folder")


def python_files(experiment: Experiment) -> list[str]:
    """The method, the parts of a blend, and plug-ins, where they are files."""
    parts: Any = experiment.settings.get("parts", ()) if experiment.method.lower() == Blend.name else ()
    listed = parts.split(",") if isinstance(parts, str) else parts
    names = [experiment.method, *(Part.read(str(text)).method for text in listed)]
    return [name for name in (*names, *(name for name, _ in experiment.plugins)) if name.endswith(".py")]


def with_imports(path: Path) -> Iterator[tuple[str, str]]:
    """Name and fingerprint of a Python file, and of those in its folder that it imports by name, theirs included."""
    folder, waiting, seen = path.parent, [path], set[Path]()
    while waiting:
        one = waiting.pop()
        if one in seen:
            continue
        seen.add(one)
        try:
            content = one.read_bytes()
        except OSError:
            raise SettingError(f"{one}: no such method file") from None
        yield str(one.relative_to(folder)), hashlib.sha256(content).hexdigest()
        waiting += _imported_beside(content, one, folder)


def _imported_beside(content: bytes, path: Path, folder: Path) -> Iterator[Path]:
    """Files below `folder` that the import statements of a Python file may mean."""
    try:
        every = list(ast.walk(ast.parse(content)))
    except (SyntaxError, ValueError):  # loading it says what is wrong
        return
    for node in every:
        if isinstance(node, ast.Import):
            yield from _files(folder, [one.name for one in node.names])
        elif isinstance(node, ast.ImportFrom):
            module = node.module or ""
            base = path.parents[min(node.level, len(path.parents)) - 1] if node.level else folder
            if base == folder or folder in base.parents:
                yield from _files(base, [module, *(f"{module}.{one.name}".lstrip(".") for one in node.names)])


def _files(base: Path, names: list[str]) -> Iterator[Path]:
    for name in names:
        steps = name.split(".")
        if not steps[0] or steps[0] == "ownview" or steps[0] in sys.stdlib_module_names:
            continue
        for length in range(1, len(steps) + 1):
            place = base.joinpath(*steps[:length])
            yield from (one for one in (place.with_suffix(".py"), place / "__init__.py") if is_file(one))


@cache
def _sha256(path: Path, size: int, modified: int) -> str:
    """SHA-256 of a file, cached by size and modification time: a suite asks for each run."""
    return sha256_of(path)
