"""Real, small runs that the report's tests look at: made once for each test process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ownview.reports.gather import gather
from ownview.reports.reading import find_runs
from tests.reports.worlds import HOSTILE, make_runs, make_sittings


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of run folders; tests that change one copy it first."""
    return make_runs(tmp_path_factory.mktemp("report"))


@pytest.fixture(scope="session")
def sittings(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of runs at two cuts of next-sitting."""
    return make_sittings(tmp_path_factory.mktemp("sittings"))


@pytest.fixture(scope="session")
def model(runs: Path) -> dict[str, Any]:
    """What the page of all these runs shows."""
    return gather(find_runs([runs]), title=HOSTILE)
