"""Promises of folder names: methods import nothing that runs them, which in turn names no method; files stay small."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import ownview
from ownview.registry import BASELINES, METHODS, PLUGINS
from ownview.seam.client import Reporting, Training
from ownview.seam.training import ANY_WORLD

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "ownview"
EVERY = sorted(SOURCE.rglob("*.py"))
BESIDE = sorted((ROOT / "reproduction").rglob("*.py"))
RUNS_METHODS = ("engine", "messages", "federation", "round", "cluster", "deploy", "runs", "cli", "evaluation", "data")


def _imports(path: Path) -> set[str]:
    """Names of the package's modules that a file imports, at its top, later, or for types alone."""
    found: set[str] = set()

    def visit(node: ast.AST) -> None:
        if isinstance(node, ast.Import):
            found.update(one.name for one in node.names)
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            assert node.level == 0, f"{path} imports relatively"
            found.update(_module(node.module, one.name) for one in node.names)
        for child in ast.iter_child_nodes(node):
            visit(child)

    visit(ast.parse(path.read_text(encoding="utf-8")))
    return {name for name in found if name.split(".")[0] == "ownview"}


def _module(module: str, name: str) -> str:
    """`from a.b import c` imports a.b.c where that is a module, else a.b."""
    place = SOURCE.parent.joinpath(*module.split("."), name)
    return f"{module}.{name}" if place.with_suffix(".py").is_file() or (place / "__init__.py").is_file() else module


def _name(path: Path) -> str:
    parts = path.relative_to(SOURCE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@pytest.mark.parametrize("folder", ["methods", "plugins", "parts", "seam"])
def test_what_methods_are_made_of_knows_nobody_who_runs_them(folder: str) -> None:
    files = sorted((SOURCE / folder).rglob("*.py"))
    assert len(files) > 1
    for path in files:
        runs_them = {one for one in _imports(path) if one.split(".")[1] in RUNS_METHODS}
        assert not runs_them, f"{path} imports {runs_them}"


@pytest.mark.parametrize("folder", ["engine", "messages", "privacy", "federation", "round", "cluster"])
def test_who_runs_methods_names_none(folder: str) -> None:
    files = sorted((SOURCE / folder).rglob("*.py"))
    assert len(files) > 1
    for path in files:
        text = path.read_text(encoding="utf-8").lower()
        for name in (*METHODS, *BASELINES, *PLUGINS):
            # "text" is a word that every parser uses: as a method's name it would stand in quotation marks.
            named = r"[\"']text[\"']" if name == "text" else rf"\b{name}\b"
            assert not re.search(named, text), f"{path} names {name}"


def test_no_imports_go_round_in_a_circle() -> None:
    """Modules are taken away as long as one imports none of those that are left; a circle would be what remains."""
    modules = {_name(path): _imports(path) for path in EVERY}
    left = {name: imported & set(modules) - {name} for name, imported in modules.items()}
    assert sum(map(len, left.values())) > 300, "the imports must have been found"
    while free := {name for name, imported in left.items() if not imported}:
        left = {name: imported - free for name, imported in left.items() if name not in free}
    assert not left, f"in or behind a circle: {sorted(left)}"


def test_no_folders_import_each_other_in_a_circle() -> None:
    """Rooms stand above each other: what a folder imports is below it. Files beside the folders are rooms as well."""
    rooms: dict[str, set[str]] = {}
    for path in EVERY:
        room = _name(path).split(".")[1:2]
        if room and room[0] not in ("__main__", "public"):
            below = {one.split(".")[1] for one in _imports(path) if "." in one}
            rooms.setdefault(room[0], set()).update(below - {room[0]})
    assert len(rooms) > 20
    tuple(TopologicalSorter(rooms).static_order())


def test_every_kind_of_federated_method_is_registered_in_one_place() -> None:
    kinds = {type(cls().client(ANY_WORLD).work) for cls in METHODS.values()}
    assert kinds == {Training, Reporting}
    files = {path.stem.replace("_", "-") for path in (SOURCE / "methods").iterdir()} - {"--init--", "--pycache--"}
    assert set(METHODS) == files, "a file each, or a folder"
    files = {path.stem.replace("_", "-") for path in (SOURCE / "plugins").glob("*.py")} - {"--init--"}
    assert set(PLUGINS) == files


@pytest.mark.parametrize("folder", ["runs", "studies", "reports"])
def test_modules_of_a_folder_do_not_import_each_other_in_a_circle(folder: str) -> None:
    names = {".".join(path.relative_to(SOURCE.parent).with_suffix("").parts): path for path in EVERY}
    inside = {name: path for name, path in names.items() if name.startswith(f"ownview.{folder}.")}
    assert len(inside) > 5
    TopologicalSorter({name: _imports(path) & inside.keys() for name, path in inside.items()}).prepare()


def test_what_stands_beside_the_library_is_not_in_it() -> None:
    """The library imports nothing of the repository's other folders, and a wheel packs the library alone."""
    folders = {path.parent.name for path in ROOT.glob("*/__init__.py")}
    assert {"reproduction", "benchmarks", "examples", "tests"} <= folders
    for path in EVERY:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        named = {one.name for node in ast.walk(tree) if isinstance(node, ast.Import) for one in node.names}
        named |= {str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
        assert not {name.split(".")[0] for name in named} & folders, path
    build = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["hatch"]["build"]
    assert build == {"targets": {"wheel": {"packages": ["src/ownview"]}}}
    assert not [*SOURCE.rglob("reproduction"), *SOURCE.rglob("reproduce*.py"), *SOURCE.rglob("published.csv")]


def test_files_are_small() -> None:
    for path in (*EVERY, *BESIDE):
        assert len(path.read_text(encoding="utf-8").splitlines()) <= 400, path
    for path in (SOURCE / "methods").rglob("*.py"):
        assert len(path.read_text(encoding="utf-8").splitlines()) <= 150, path


@pytest.mark.parametrize("root", [SOURCE, ROOT / "reproduction"], ids=lambda root: root.name)
def test_folders_are_small(root: Path) -> None:
    """A folder is read at one look: at most 20 modules beside each other, more stand in sub-folders."""
    folders = {path.parent for path in root.rglob("*.py")}
    assert len(folders) > 3
    crowded = {str(one.relative_to(ROOT)): count for one in folders if (count := len([*one.glob("*.py")])) > 20}
    assert not crowded


def test_every_method_and_plugin_has_its_page_with_the_command() -> None:
    for name in (*METHODS, *BASELINES, *PLUGINS):
        page = (ROOT / "docs" / "methods" / f"{name}.md").read_text(encoding="utf-8")
        assert "ownview run" in page, name
        assert "## Differences" in page, name


def test_importing_ownview_needs_neither_polars_nor_typer() -> None:
    others = ("polars", "typer", "irspack", "ray")
    code = f"import sys, ownview; ownview.run; print([m for m in {others} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_completion_shows_public_names_alone() -> None:
    import ownview

    shown = {name for name in dir(ownview) if not name.startswith("__")}
    assert {"run", "load", "PFedRec"} <= shown
    assert not shown & {"os", "importlib", "TYPE_CHECKING", "annotations"}
    assert shown == {*ownview.__all__} - {"__version__"}  # type: ignore[misc]


def test_the_public_names_are_exported_and_unlike() -> None:
    tree = ast.parse((SOURCE / "public.py").read_text(encoding="utf-8"))
    names = [one for node in tree.body if isinstance(node, ast.ImportFrom) for one in node.names]
    assert {cls.__name__ for cls in (*METHODS.values(), *BASELINES.values(), *PLUGINS.values())} <= {
        one.name for one in names
    }
    assert all(one.asname == one.name for one in names), "`import X as X` is how a type checker knows what is public"
    assert len({one.name for one in names}) == len(names)


def test_no_public_name_is_that_of_a_room() -> None:
    """`import ownview.reports.gather` puts the room's name into the package, in place of a function of that name."""
    rooms = {path.stem for path in (ROOT / "src" / "ownview").iterdir() if path.name != "__pycache__"}
    assert not rooms & set(dir(ownview))


def test_the_map_names_every_folder_and_none_that_is_not_there() -> None:
    """CONTRIBUTING's map: a word that ends in a slash is a folder of src/ownview, a word with .py a module of it."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").partition("\nsrc/ownview/\n")[2]
    drawn = text.partition("\nreproduction/")[0]
    folders = {path.name for path in SOURCE.iterdir() if (path / "__init__.py").is_file()}
    named = set(re.findall(r"(?<![\w/])(\w+)/", drawn)) - {"docs", "tests"}
    assert folders <= named, f"the map lacks {folders - named}"
    assert named <= {path.name for path in SOURCE.rglob("*") if path.is_dir()}, "the map names a folder that is gone"
    modules = set(re.findall(r"\b(\w+\.py)\b", drawn))
    assert modules <= {path.name for path in EVERY}, "the map names a module that is gone"
