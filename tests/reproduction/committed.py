"""Results and pages as they are committed."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MACHINE = {"system", "processor", "cpu", "cores", "device"}
"""What records tell of a machine, beside the engine, which older ones do not name."""


def copy_of_committed(folder: Path, pages: Iterable[str]) -> Path:
    """results/, the pictures and some pages of the repository, copied into a folder."""
    shutil.copytree(ROOT / "results", folder / "results")
    shutil.copytree(ROOT / "docs" / "pictures", folder / "docs" / "pictures")
    (folder / "docs" / "methods").mkdir()
    for name in pages:
        shutil.copy(ROOT / name, folder / name)
    return folder
