"""Run by LensKit's own Python: SPLIT FOLDER. Lists of two of its models, and what its own metrics say of them.

Prints {"version": ..., MODEL: {metric: value}}; writes FOLDER/MODEL-LAYOUT.parquet.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import lenskit
import numpy as np
import pandas as pd  # type: ignore[import-untyped]
from lenskit.basic import PopScorer
from lenskit.batch import recommend
from lenskit.data import ItemList, ItemListCollection, from_interactions_df
from lenskit.knn import ItemKNNScorer
from lenskit.metrics import NDCG, Hit, Recall, RunAnalysis
from lenskit.pipeline import topn_pipeline


def usual(rank: Any) -> Any:
    """The discount of NDCG that the field uses; LensKit's own is max(log2 rank, 1)."""
    return np.log2(np.asarray(rank) + 1)


def main(split: Path, out: Path) -> dict[str, Any]:
    """Train on train.csv, recommend to everybody in test.csv, and measure."""
    train, valid, test = (pd.read_csv(split / f"{name}.csv") for name in ("train", "valid", "test"))
    asked = ItemListCollection.from_df(test, ["user_id"])
    known = set(valid.itertuples(index=False, name=None))
    figures: dict[str, Any] = {"version": lenskit.__version__}
    for name, scorer in (("pop", PopScorer()), ("knn", ItemKNNScorer(max_nbrs=20, feedback="implicit"))):
        pipeline = topn_pipeline(scorer)
        pipeline.train(from_interactions_df(train))
        found = recommend(pipeline, [key.user_id for key, _ in asked], n=50, n_jobs=1).to_df()
        # Under `honest` the item of validation is known by test time: a list that recommends it has a place to spare.
        fresh = [pair not in known for pair in zip(found["user_id"], found["item_id"], strict=True)]
        lists = ItemListCollection.from_df(found[fresh].drop(columns=["rank"], errors="ignore"), ["user_id"])
        lists = ItemListCollection.from_dict({key: ItemList(one, ordered=True) for key, one in lists}, ["user_id"])
        analysis = RunAnalysis()
        for metric in (NDCG(n=10, discount=usual), NDCG(n=20, discount=usual), Hit(n=10), Recall(n=20)):
            analysis.add_metric(metric)
        means = analysis.measure(lists, asked).list_summary()["mean"]
        figures[name] = {label: float(means[label]) for label in ("NDCG@10", "NDCG@20", "Hit@10", "Recall@20")}
        for layout in ("native", "flat"):
            lists.save_parquet(out / f"{name}-{layout}.parquet", layout=layout)
    return figures


if __name__ == "__main__":
    print(json.dumps(main(*map(Path, sys.argv[1:]))))
