"""Where modules of earlier versions are now: a sentence instead of Python's bare "No module named"."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

_ROOT = Path(__file__).resolve().parents[1]

_RENAMED = {
    "ownview.report": "ownview.reports",
    "ownview.deploy.flower": "examples/flower, in a clone of the repository",
    "ownview.studies.ledger": "reproduction/ledger, in a clone of the repository",
    "ownview.studies.reproduction": "reproduction, in a clone of the repository",
}
"""Folders whose names say nothing of where they are; others are looked for by the last word of their names."""


class MovedModules:
    """Stands last among Python's finders, so it is asked for such modules alone as none of them has.

    It is no subclass of `importlib.abc.MetaPathFinder`, whose module takes longer to load than all of `ownview`.
    """

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None) -> None:
        """Refuse a module of the package, with the modules that bear its name now."""
        if fullname.startswith("ownview."):
            raise ModuleNotFoundError(f"{fullname} {_now(fullname)}; see CHANGELOG.md", name=fullname)


def _now(wanted: str) -> str:
    word = wanted.rpartition(".")[2]
    files = [*_ROOT.rglob(f"{word}.py"), *(one.parent for one in _ROOT.rglob(f"{word}/__init__.py"))]
    names = sorted(".".join(one.relative_to(_ROOT.parent).with_suffix("").parts) for one in files)
    found = _RENAMED.get(wanted) or " or ".join(name for name in names if not name.startswith("ownview.cli."))
    return f"is now {found}" if found else "is not there; public names are those of `import ownview`"
