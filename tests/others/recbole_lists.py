"""Run by RecBole's own Python: SPLIT FOLDER. Lists of two of its models, and what its own evaluation says of them.

Prints {"version": ..., MODEL: {metric: value}}; writes FOLDER/MODEL.inter, an atomic file.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import recbole
import torch
from recbole.config import Config
from recbole.data import create_dataset, data_preparation
from recbole.data.interaction import Interaction
from recbole.trainer import Trainer
from recbole.utils import get_model, get_trainer, init_seed

LONGEST = 20


def main(split: Path, out: Path) -> dict[str, Any]:
    """Train on NAME.train.inter, recommend to everybody in NAME.test.inter, and measure."""
    figures: dict[str, Any] = {"version": recbole.__version__}
    (train,) = split.glob("*.train.inter")
    name = train.name.partition(".")[0]
    for model in ("BPR", "EASE"):
        with tempfile.TemporaryDirectory() as place:
            figures[model] = _one(model, name, split, out / f"{model}.inter", place)
    return figures


def _one(model_name: str, name: str, split: Path, target: Path, place: str) -> dict[str, float]:
    folder = Path(place) / name  # RecBole looks for PATH/NAME/NAME.PART.inter
    folder.symlink_to(split.resolve(), target_is_directory=True)
    asked = {
        "data_path": place, "benchmark_filename": ["train", "valid", "test"], "checkpoint_dir": f"{place}/saved",
        "load_col": {"inter": ["user_id", "item_id"]}, "epochs": 5, "stopping_step": 5, "seed": 0,
        "metrics": ["Hit", "NDCG", "Recall"], "topk": [5, 10, LONGEST], "valid_metric": "NDCG@10",
        "metric_decimal_place": 15, "show_progress": False, "use_gpu": False, "state": "WARNING",
        "eval_args": {"split": {"RS": [8, 1, 1]}, "order": "RO", "group_by": "user", "mode": "full"},
    }  # fmt: skip
    config = Config(model=model_name, dataset=name, config_dict=asked)
    init_seed(config["seed"], reproducibility=True)
    dataset = create_dataset(config)
    train, valid, test = data_preparation(config, dataset)
    model = get_model(model_name)(config, train.dataset)
    trainer: Trainer = get_trainer(config["MODEL_TYPE"], model_name)(config, model)
    trainer.fit(train, valid, saved=False, show_progress=False)
    model.double()  # so that one user's scores and a batch's are in the same order
    result = trainer.evaluate(test, load_best_model=False, show_progress=False)
    users = dataset.token2id("user_id", _tokens(split / f"{name}.test.inter"))
    rows = ["user_id:token\titem_id:token\tscore:float"]
    for user in np.unique(users):
        scores = _scores(model, test, int(user))
        best = torch.topk(scores, LONGEST)
        own = dataset.id2token("user_id", int(user))
        items = dataset.id2token("item_id", best.indices.numpy())
        rows += [f"{own}\t{item}\t{float(score)!r}" for item, score in zip(items, best.values, strict=True)]
    target.write_text("\n".join([*rows, ""]), encoding="utf-8")
    return {metric: float(value) for metric, value in result.items()}


def _scores(model: Any, test: Any, user: int) -> torch.Tensor:
    """[n] of all items for one user, as its evaluation has them: padding and what is known are the least."""
    model.eval()
    with torch.no_grad():
        asked = Interaction({"user_id": torch.tensor([user])})
        try:
            found = model.full_sort_predict(asked)
        except NotImplementedError:
            found = model.predict(asked.repeat_interleave(test.dataset.item_num))
    scores = torch.as_tensor(found).reshape(-1).clone()
    scores[0] = -torch.inf
    scores[test.uid2history_item[user]] = -torch.inf
    return scores


def _tokens(path: Path) -> np.ndarray:
    lines = path.read_text(encoding="utf-8").splitlines()[1:]
    return np.array([line.partition("\t")[0] for line in lines])


if __name__ == "__main__":
    print(json.dumps(main(*map(Path, sys.argv[1:]))))
