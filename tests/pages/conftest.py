"""Finished runs that tests of pages share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ownview.runs.run import Run
from tests.pages.worlds import KINDS, finished


@pytest.fixture(scope="session")
def runs_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("taken")


@pytest.fixture(scope="session")
def made(runs_folder: Path) -> Callable[..., Run]:
    """A run by method and settings."""
    return lambda method, **settings: finished(runs_folder, method, **settings)


@pytest.fixture(scope="session")
def run_of(runs_folder: Path) -> Callable[[str], Run]:
    """A run by the kind of form that its model has."""

    def one(kind: str) -> Run:
        method, settings = KINDS[kind]
        named: dict[str, Any] = settings
        return finished(runs_folder, method, **named)

    return one
