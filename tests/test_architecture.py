"""What the folder names promise: methods know no engine, the engine knows no method, files stay small."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from ownview.registry import BASELINES, GATHERINGS, METHODS, PLUGINS

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "ownview"
EVERY = sorted(SOURCE.rglob("*.py"))


def _imports(path: Path) -> set[str]:
    return set(re.findall(r"^\s*(?:from|import) (ownview[\w.]*)", path.read_text(encoding="utf-8"), flags=re.MULTILINE))


@pytest.mark.parametrize("folder", ["methods", "plugins"])
def test_methods_and_plugins_import_neither_engine_nor_runs(folder: str) -> None:
    files = sorted((SOURCE / folder).glob("*.py"))
    assert len(files) > 1
    for path in files:
        assert not [name for name in _imports(path) if re.match(r"ownview\.(engine|runs|cli|evaluation|data)", name)], (
            path
        )


def test_the_engine_names_no_method() -> None:
    for path in (SOURCE / "engine").glob("*.py"):
        text = path.read_text(encoding="utf-8").lower()
        for name in (*METHODS, *GATHERINGS, *BASELINES, *PLUGINS):
            assert name not in text, f"{path} names {name}"


def test_files_are_small() -> None:
    for path in EVERY:
        assert len(path.read_text(encoding="utf-8").splitlines()) <= 400, path
    for path in (SOURCE / "methods").glob("*.py"):
        assert len(path.read_text(encoding="utf-8").splitlines()) <= 150, path


def test_every_method_and_plugin_has_its_page_with_the_command() -> None:
    for name in (*METHODS, *GATHERINGS, *BASELINES, *PLUGINS):
        page = (ROOT / "docs" / "methods" / f"{name}.md").read_text(encoding="utf-8")
        assert "ownview run" in page, name
        assert "## Differences" in page, name


def test_importing_ownview_needs_neither_polars_nor_typer() -> None:
    code = "import sys, ownview; print([m for m in ('polars', 'typer', 'irspack') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_public_names_exist() -> None:
    import ownview

    assert len(ownview.__all__) == len(set(ownview.__all__))
    assert all(hasattr(ownview, name) for name in ownview.__all__)
