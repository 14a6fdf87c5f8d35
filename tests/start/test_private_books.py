"""`ownview start --private` on the books that come with the library: what it recommends is worth its name."""

from __future__ import annotations

import importlib.resources
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from ownview.runs.run import open_run
from tests.outcome import Outcome


@pytest.mark.slow
def test_what_is_recommended_on_goodbooks_has_at_least_the_figure_of_text_at_home(
    tmp_path: Path, ownview: Callable[..., Outcome]
) -> None:
    books = importlib.resources.files("ownview.data") / "goodbooks"
    words = ("start", books / "interactions.csv.gz", "--items", books / "items.csv.gz", "--private")
    outcome = ownview(*words, "--out", tmp_path / "start")
    assert outcome.code == 0, outcome.err
    way = json.loads((tmp_path / "start" / "verdict.json").read_text(encoding="utf-8"))["numbers"]["way"]
    taken, home = (open_run(tmp_path / "start" / "comparison" / one) for one in (way.replace(" ", "-"), "nothing-sent"))
    for part in ("validation", "test"):
        assert taken.result[part]["NDCG@10"] >= home.result[part]["NDCG@10"], part
    for one in ("nothing sent", "sums hidden", "epsilon 8", "epsilon 1"):
        assert one in outcome.out
