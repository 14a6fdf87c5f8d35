"""The page of a start: where weights are missing, one of twice the size takes its place."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from benchmarks.shop import orders, write

from ownview.pages.page import Page, page
from ownview.start import steps
from tests.outcome import Outcome


def test_a_page_that_lacks_weights_is_made_of_twice_the_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ownview: Callable[..., Outcome]
) -> None:
    write(orders(600, 400, 9_000), tmp_path / "orders.csv")
    monkeypatch.chdir(tmp_path)
    sizes: list[float] = []

    def noted(*given: Any, **named: Any) -> Page:
        sizes.append(named["megabytes"])
        return page(*given, **named)

    monkeypatch.setattr(steps, "page", noted)
    for megabytes, wanted in ((0.095, [0.095, 0.19]), (5.0, [5.0])):
        sizes.clear()
        monkeypatch.setattr(steps, "MEGABYTES", megabytes)
        outcome = ownview("start", "orders.csv", "--method", "fedease", "--out", f"out-{megabytes}")
        assert outcome.code == 0, outcome.err
        assert sizes == wanted, outcome.out
        assert Path(f"out-{megabytes}", "page.html").stat().st_size <= 1e6 * wanted[-1]
