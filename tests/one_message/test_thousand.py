"""A thousand contributors with goodbooks' histories, of whom many misbehave, while servers are killed fifty times."""

from __future__ import annotations

import random
import shutil
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("cryptography.hazmat.primitives.hpke")
pytest.importorskip("starlette")

from ownview.data.datasets.catalog import load
from tests.one_message.federations import Federation, simulated

pytestmark = [pytest.mark.slow, pytest.mark.skipif(shutil.which("node") is None, reason="needs node")]
POPULAR, KILLS = 364, 50
FATES = {"closed": 100, "twice": 50, "back": 30, "update": 20, "plain": 800}
"""Of a thousand: 10 % end in mid-send, 5 % send twice, 3 % take back, 2 % update."""


def test_the_opened_sum_is_the_simulations(tmp_path: Path) -> None:
    data, chance = load("goodbooks"), random.Random(4)
    kept = np.argsort(-np.bincount(data.item), kind="stable")[:POPULAR]
    items = [str(data.items[item]) for item in kept]
    said = [[str(data.items[item]) for item in data.item[data.of(user)].tolist()] for user in range(1000)]
    fates = [fate for fate, count in FATES.items() for _ in range(count)]
    chance.shuffle(fates)
    people: list[dict[str, Any]] = [
        {"history": history, "fate": fate, "later": history[:-5]} for history, fate in zip(said, fates, strict=True)
    ]
    # Who takes back in the same batch does not count for it, so that as many more fill it.
    last: list[dict[str, Any]] = [{"history": said[0], "fate": "plain", "later": []}] * (1 + FATES["back"])
    with Federation(tmp_path, items, fewest=1000 - FATES["closed"] + 1) as servers:
        working, kills = servers.contributors(people, retries=1000), 0
        while kills < KILLS and working.poll() is None:
            time.sleep(2 * chance.random())
            share = chance.choice(("a", "b"))
            servers.kill(share)  # type: ignore[arg-type]
            servers.start(share)  # type: ignore[arg-type]
            kills += 1
        assert '"failed":[]' in working.communicate(timeout=1200)[0]
        assert '"failed":[]' in servers.contributors(last).communicate(timeout=300)[0]
        expected, count = simulated(servers.terms, [*people, *last])
        servers.until_counted(count)
    assert np.array_equal(servers.total(), expected)
    print(f"{count:,} contributions of {1000 + len(last):,} count after {kills} kills")  # noqa: T201 - with -s
