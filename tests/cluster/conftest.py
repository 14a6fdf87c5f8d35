"""Two workers that all tests here share: Ray starts once."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from ownview.engine.machine import Workers


@pytest.fixture(scope="session")
def two() -> Iterator[Workers]:
    """Two workers on this machine."""
    pytest.importorskip("ray", reason="Ray is not here: pip install -e '.[ray]'")
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("two workers need two CPUs")
    from ownview.cluster.pool import close_pools, pool_of

    pool_of(Workers(2), on_gpu=False, handed_over=0)
    yield Workers(2)
    close_pools()
