"""`ownview new method NAME`: a package of one's own that installs, conforms and has tests."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import typer

from ownview.base.errors import OutputError, SettingError
from ownview.base.files import make_folder, write_text
from ownview.registry import offers_model

_PROJECT = """[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "{name}"
version = "0.1.0"
description = "A method for Ownview."
requires-python = ">=3.11"
dependencies = []  # Ownview is installed from a clone: its name is on no package index

[project.optional-dependencies]
test = ["pytest"]

[project.entry-points."ownview.methods"]
{name} = "{module}:{cls}"

[tool.hatch.build.targets.wheel]
packages = ["src/{module}"]
"""

_METHOD = '''"""{cls}: written for one client; Ownview trains thousands of them at once."""

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

import ownview as ov


@dataclass(frozen=True)
class {cls}(ov.Method):
    """score = u . q_i, u private; cross-entropy over the client's items and drawn negatives."""

    name: ClassVar[str] = "{name}"
    summary: ClassVar[str] = "matrix factorisation"
    paper: ClassVar[str] = "none yet"

    embedding_size: int = ov.setting(16, "length of user and item vectors", low=1, search=ov.OneOf((8, 16, 32)))
    learning_rate: float = ov.setting(0.03, "Adam's rate", above=0, search=ov.Between(1e-3, 0.3, log=True))

    def params(self, world: ov.World) -> dict[str, ov.Param]:
        """What a client has, by role: a role is the only way anything leaves it."""
        small = ov.Normal(0.1)
        items = ov.table(ov.shared(self.embedding_size, initial=small))
        return {{"user": ov.private(self.embedding_size, initial=small), "items": items}}

    def phases(self, world: ov.World) -> tuple[ov.Phase, ...]:
        """What moves, and how."""
        step = ov.Step(("user", "items"), ov.Adam(self.learning_rate))
        return (ov.Phase((step,), self.local_epochs),)

    def scores(self, p: ov.Params) -> Tensor:
        """[R] the score of every row at hand."""
        return p["items"] @ p["user"]
'''

_TEST = '''"""What every method must keep to."""

import pytest
from ownview.testing import CHECKS

from {module} import {cls}


@pytest.mark.parametrize("check", CHECKS)
def test_it_conforms(check: str) -> None:
    CHECKS[check]({cls}())
'''

_README = """# {name}

    pip install -e ".[test]"
    pytest
    ownview run {name} --rounds 20
    ownview compare popularity fedmf {name} --rounds 20 --seeds 3

How to write a method: docs/write-a-method.md of Ownview.
"""


def command(
    kind: Annotated[str, typer.Argument(help="method.")],
    name: Annotated[str, typer.Argument(help="Of the method: small letters, digits and hyphens.")],
    out: Annotated[Path | None, typer.Option("-o", "--out", help="Folder for the package; NAME if not given.")] = None,
) -> None:
    """Begin a package of your own: a method that installs, conforms and has tests."""
    if kind != "method":
        raise SettingError(f"new {kind}: expected method, as in: ownview new method my-method")
    if not re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", name) or len(name) > 64:
        raise SettingError(f"new method {name!r}: expected small letters, digits and hyphens, such as my-method")
    if offers_model(name):
        raise SettingError(f"new method {name}: there is a method of that name; choose another")
    folder = Path(name) if out is None else out
    if folder.exists():
        raise OutputError(f"{folder}: already exists; choose another --out")
    module = name.replace("-", "_")
    words = {"name": name, "module": module, "cls": "".join(part.capitalize() for part in name.split("-"))}
    files = {
        "pyproject.toml": _PROJECT,
        "README.md": _README,
        f"src/{module}/__init__.py": _METHOD,
        "tests/test_conforms.py": _TEST,
    }
    for place, text in files.items():
        make_folder((folder / place).parent)
        write_text(folder / place, text.format(**words))
    typer.echo(f"{folder}: a package; next: cd {folder} && pip install -e '.[test]' && pytest")
