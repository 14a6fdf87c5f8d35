"""The Containerfile, where no builder is: its sources are there, its words are understood, what serves is installed."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer

pytest.importorskip("uvicorn")
pytest.importorskip("starlette")

from ownview.cli.main import _PROGRAM

ROOT = Path(__file__).resolve().parents[1]
SERVED = """
import sys
from importlib.metadata import packages_distributions

image, known = set(sys.argv[2].split()), packages_distributions()

class Image:
    def find_spec(self, name, path=None, target=None):
        top = name.partition(".")[0]
        if top in known and not image & {one.lower() for one in known[top]}:
            raise ModuleNotFoundError(f"{name} is not in the image", name=name)

sys.meta_path.insert(0, Image())
import ownview.cli.models.serve, ownview.serve.supervisor, ownview.serve.worker
from ownview.serve.model import ServedModel
from pathlib import Path
print(ServedModel(Path(sys.argv[1])).size)
"""
"""Where nothing can be imported but what is in the image."""
BROUGHT = (
    "anyio click h11 idna typing-extensions typing_extensions markdown-it-py mdurl pygments shellingham annotated-doc"
)
"""With what is installed there."""


def _lines() -> list[tuple[str, str]]:
    text = (ROOT / "Containerfile").read_text(encoding="utf-8").replace("\\\n", " ")
    found = [line.partition(" ") for line in text.splitlines() if line and not line.startswith("#")]
    return [(word, rest.strip()) for word, _, rest in found]


def test_what_is_copied_is_there() -> None:
    for word, rest in _lines():
        if word == "COPY" and "--from" not in rest:
            *sources, _ = rest.split()
            assert all((ROOT / one).exists() for one in sources), rest
    assert [word for word, _ in _lines()].count("FROM") == 2


def test_what_it_begins_is_a_command_that_is_understood() -> None:
    words = json.loads(next(rest for word, rest in _lines() if word == "ENTRYPOINT"))
    group: Any = typer.main.get_command(_PROGRAM._app())
    name, command, rest = group.resolve_command(typer.Context(group), words[1:])
    context = command.make_context(name, list(rest), resilient_parsing=False)
    assert (words[0], name) == ("ownview", "serve")
    assert (str(context.params["model"]), context.params["host"]) == ("/model", "0.0.0.0")
    exposed = next(rest for word, rest in _lines() if word == "EXPOSE")
    assert context.params["port"] == int(exposed)
    assert f"127.0.0.1:{exposed}/health" in next(rest for word, rest in _lines() if word == "HEALTHCHECK")


def test_what_serves_an_export_is_installed(tmp_path: Path) -> None:
    from ownview.pages.export import export
    from tests.serve.worlds import fitted

    export(fitted(tmp_path, "whole"), tmp_path / "exported", min_people=1)
    run = next(rest for word, rest in _lines() if word == "RUN" and "constraints.txt starlette" in rest)
    installed = re.search(r"-c /tmp/constraints.txt ([a-z0-9 ]+)", run)
    assert installed is not None
    line = [sys.executable, "-c", SERVED, str(tmp_path / "exported"), f"ownview {installed[1]} {BROUGHT}"]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 0
