"""Models of the small world, as folders that a server reads."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ownview.serve.model import ServedModel
from ownview.serve.served_run import write_served
from tests.serve.worlds import fitted


@pytest.fixture(scope="session")
def served_folder(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """By the kind of form that the model has."""
    base, made = tmp_path_factory.mktemp("served"), dict[str, Path]()

    def one(kind: str) -> Path:
        if kind not in made:
            out = base / f"{kind}-served"
            write_served(fitted(base, kind).folder.path, out)
            made[kind] = out
        return made[kind]

    return one


@pytest.fixture(scope="session")
def model(served_folder: Callable[[str], Path]) -> ServedModel:
    return ServedModel(served_folder("whole"))
