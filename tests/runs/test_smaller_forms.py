"""A method that does not fit the memory takes its smaller form, and says so; a form that was chosen is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ownview.base.errors import DeviceError, OutputError
from ownview.data.interactions import Interactions
from ownview.runs.batch import run_all
from ownview.runs.experiment import Experiment
from ownview.runs.run import open_run, run


@pytest.fixture(scope="module")
def data() -> Interactions:
    draw = np.random.default_rng(0)
    user = np.repeat(np.arange(60), 20)
    item = np.concatenate([draw.permutation(900)[:20] for _ in range(60)])
    return Interactions.from_rows("wide", user, item, timestamp=np.arange(len(user)) * 50_000)


def test_fednext_takes_the_rank_that_fits(data: Interactions, tmp_path: Path) -> None:
    made = run(Experiment("fednext", rounds=1), data=data, memory="30MB", out=tmp_path / "small")
    rank = made.experiment.settings["rank"]
    assert isinstance(rank, int)
    assert rank in (64, 128, 256)
    assert made.experiment.rounds == 6, "item vectors take five rounds and the sums one"
    assert made.result["test"]["NDCG@10"] >= 0
    again = open_run(tmp_path / "small", data)
    assert again.experiment.settings["rank"] == rank
    assert run(Experiment("fednext", rounds=1), data=data, memory="4GB").experiment.settings["rank"] == 0


def test_a_batch_goes_on_with_the_form_that_its_run_took(data: Interactions, tmp_path: Path) -> None:
    file = tmp_path / "wide.csv"
    assert data.timestamp is not None
    rows = zip(data.users[data.user].tolist(), data.items[data.item].tolist(), data.timestamp.tolist(), strict=True)
    file.write_text("user,item,timestamp\n" + "".join(f"{u},{i},{t}\n" for u, i, t in rows), encoding="utf-8")
    tasks = [(Experiment("fednext", data=str(file), rounds=1), tmp_path / "run")]
    first = run_all(tasks, jobs=1, memory="30MB", data_dir=None)[0]
    assert first.experiment.settings["rank"] != 0
    again = run_all(tasks, jobs=1, memory="4GB", data_dir=None)[0]
    assert again.experiment == first.experiment, "memory may differ when a run goes on; its form does not"
    other = [(Experiment("fednext", data=str(file), rounds=1, settings={"horizon": 2.0}), tmp_path / "run")]
    with pytest.raises(OutputError, match="this run has"):
        run_all(other, jobs=1, memory="30MB", data_dir=None)


def test_a_form_that_was_asked_for_is_refused_where_it_does_not_fit(data: Interactions, tmp_path: Path) -> None:
    for rank in (0, 512):
        with pytest.raises(DeviceError, match="standing values need"):
            run(Experiment("fednext", settings={"rank": rank}), data=data, memory="30MB", out=tmp_path / "none")
    assert not (tmp_path / "none").exists()


def test_where_takers_are_counted_there_is_no_smaller_form_and_memory_is_what_lacks(data: Interactions) -> None:
    with pytest.raises(DeviceError, match="standing values need"):
        run(Experiment("fednext", rounds=1, settings={"takers": 3}), data=data, memory="30MB")
