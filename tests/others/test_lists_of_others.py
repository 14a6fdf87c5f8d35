"""Lists that LensKit and RecBole make themselves are measured as their own evaluation measures them, to 1e-9."""

from __future__ import annotations

from pathlib import Path

import pytest

import ownview as ov
from ownview.data.lists import write_split
from tests.others.environment import run_program


def test_lenskit_measures_its_lists_as_we_do(tmp_path: Path) -> None:
    """Where it does not: its NDCG divides by max(log2 rank, 1) unless told otherwise, so that ranks 1 and 2 count the
    same, and its reciprocal rank is 0 behind a list's end, where ours goes on.
    """
    write_split(ov.HONEST.prepare(ov.load("goodbooks"), None), tmp_path / "split", "lenskit")
    theirs = run_program("lenskit", tmp_path / "split", tmp_path)
    pairs = {"NDCG@10": "NDCG@10", "NDCG@20": "NDCG@20", "HR@10": "Hit@10", "HR@20": "Recall@20"}
    for name in ("pop", "knn"):
        assert theirs[name]["Recall@20"] > 0
        for layout in ("native", "flat"):
            ours = ov.score(tmp_path / f"{name}-{layout}.parquet", "goodbooks").metrics
            for mine, its in pairs.items():
                assert ours[mine] == pytest.approx(theirs[name][its], abs=1e-9), (name, layout, mine)


def test_recbole_measures_its_lists_as_we_do(tmp_path: Path) -> None:
    """It leaves out what is known in training and validation, as `honest` does at test, and has one right answer."""
    write_split(ov.HONEST.prepare(ov.load("goodbooks"), None), tmp_path / "split", "recbole")
    theirs = run_program("recbole", tmp_path / "split", tmp_path)
    pairs = {f"{mine}@{k}": f"{its}@{k}" for mine, its in (("HR", "hit"), ("NDCG", "ndcg")) for k in (5, 10, 20)}
    for name in ("BPR", "EASE"):
        assert theirs[name]["recall@20"] == theirs[name]["hit@20"] > 0
        ours = ov.score(tmp_path / f"{name}.inter", "goodbooks", name=f"recbole-{name.lower()}").metrics
        for mine, its in pairs.items():
            assert ours[mine] == pytest.approx(theirs[name][its], abs=1e-9), (name, mine)
