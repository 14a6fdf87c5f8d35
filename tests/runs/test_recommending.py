"""A finished model in use: one user, everybody, and people it has never seen."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import torch

import ownview as ov
from ownview.base.errors import OutputError, SettingError, UnknownNameError
from ownview.config.settings import Value
from ownview.data import Interactions
from ownview.evaluation.named_protocols import NEXT_SITTING, on_everything
from ownview.registry import build
from ownview.runs.experiment import Experiment
from ownview.runs.files.folder import RunFolder
from ownview.runs.recommending import Recommender
from ownview.runs.run import Run
from ownview.runs.run import run as run_experiment
from ownview.runs.summaries.frames import write_frame
from tests.shop import EACH, ITEMS, USERS, shop

SMALL: dict[str, dict[str, Value]] = {
    "fedmf": {"embedding_size": 4, "local_epochs": 1},
    "pfedrec": {"embedding_size": 4},
    "fedrecon": {"embedding_size": 4},
    "mf": {"embedding_size": 4},
    "blend": {"parts": ("fedease", "popularity")},
}
Made = Callable[[str], Run]


@pytest.fixture(scope="module")
def data() -> Interactions:
    return shop()


@pytest.fixture(scope="module")
def made(data: Interactions, tmp_path_factory: pytest.TempPathFactory) -> Made:
    """Finished runs by method, opened from their folders."""

    @cache
    def finished(name: str) -> Run:
        folder = tmp_path_factory.mktemp("runs") / name
        ov.run(build(name, SMALL.get(name, {})), data, rounds=2, out=folder)
        return ov.open_run(str(folder), data)

    return finished


@pytest.mark.parametrize("name", ["popularity", "fedease", "pfedrec", "mf", "blend"])
def test_many_are_recommended_what_each_is_recommended(made: Made, data: Interactions, name: str) -> None:
    run = made(name)
    frame = run.recommend_many(k=5)
    assert frame.columns == ["user", "rank", "item", "title", "score"]
    assert frame["user"].unique(maintain_order=True).to_list() == data.users.tolist()
    assert frame["rank"].to_list() == [1, 2, 3, 4, 5] * USERS
    for user in data.users.tolist():
        mine = frame.filter(pl.col("user") == user)
        alone = run.recommend(user, 5)
        assert mine["score"].to_list() == pytest.approx([one.score for one in alone], rel=1e-5)
        for item, title in zip(mine["item"], mine["title"], strict=True):
            assert title == data.title(data.items.tolist().index(item))
    some = run.recommend_many(["u3", "u1"], k=5)
    assert some["user"].to_list() == ["u3"] * 5 + ["u1"] * 5
    assert some["item"].to_list()[:5] == [one.item for one in run.recommend("u3", 5)]
    assert run.recommend_many([]).height == 0
    with pytest.raises(UnknownNameError, match="unknown user of shop 'u77'"):
        run.recommend_many(["u3", "u77"])


def test_lists_hold_what_there_is_and_no_more(made: Made) -> None:
    run = made("fedease")
    every = run.recommend_many(["u0"], k=10**9)
    assert every.height == ITEMS - EACH + 1, "all but seven items of training and validation"
    assert every["score"].is_sorted(descending=True)


def test_a_model_is_read_once(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    run = ov.open_run(made("fedease").folder.path, made("fedease").data)
    first = run.recommend("u1")

    def refuse(*_: object) -> None:
        raise AssertionError("read a second time")

    monkeypatch.setattr(Recommender, "of", refuse)
    assert run.recommend("u1") == first
    assert run.recommend(run.newcomer("dune"), 3)
    through: list[int] = []
    assert run.recommend_many(on_users=through.append).height == USERS * 10
    assert through == sorted(through)
    assert through[-1] == USERS


@pytest.mark.parametrize("name", ["popularity", "ease", "fedease", "fednext", "fedmf", "mf", "blend"])
def test_values_that_are_handed_on_are_those_of_the_file(
    data: Interactions, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = Experiment(name, data="shop", settings=SMALL.get(name, {}), rounds=2)
    fresh = run_experiment(asked, data=data, out=tmp_path / "run", hand_on=True)
    opened = ov.open_run(tmp_path / "run", data)
    expected, written = opened.recommend_many(), opened.folder.read_tensors("model")[0]
    packed = opened.loaded().trainer.pack()
    monkeypatch.setattr(RunFolder, "read_tensors", lambda *_: pytest.fail("read, though it was written just now"))
    assert fresh.recommend_many().equals(expected)
    found = fresh.loaded().trainer.pack()
    assert found.keys() == packed.keys() >= written.keys()
    for key, value in packed.items():
        assert torch.equal(found[key], value)
        assert found[key].stride() == value.stride()
    assert not fresh._handed_on, "the model at hand has them now"


@pytest.mark.parametrize("hand_on", [False, True])
def test_what_is_read_is_checked_whoever_wrote_it(data: Interactions, tmp_path: Path, hand_on: bool) -> None:
    asked, place = Experiment("fedease", data="shop", rounds=1), tmp_path / "run"
    fresh = run_experiment(asked, data=data, out=place, hand_on=hand_on)
    before = ov.open_run(place, data).recommend_many()
    file = place / "model.safetensors"
    content = bytearray(file.read_bytes())
    content[-5] ^= 1
    file.write_bytes(content)
    with pytest.raises(OutputError, match=r"model\.safetensors: is damaged: its SHA-256 is not the one"):
        ov.open_run(place, data).recommend_many()
    if hand_on:
        assert fresh.recommend_many().equals(before), "what is in memory is what was written"
    else:
        with pytest.raises(OutputError, match="is damaged: its SHA-256"):
            fresh.recommend_many()


def history_of(data: Interactions, run: Run, user: str, path: Path) -> Path:
    """A file with what the model knows of a user when it is asked."""
    split = run.experiment.protocol.prepare(data)
    line, place = split.test.known, data.position_of_user(user)
    assert line.times is not None
    pairs = zip(line.items.of(place).tolist(), line.times.of(place).tolist(), strict=True)
    path.write_text("item,timestamp\n" + "".join(f"{split.data.items[item]},{time}\n" for item, time in pairs))
    return path


@pytest.mark.parametrize("name", ["popularity", "ease", "fedease", "fednext", "markov"])
def test_a_history_scores_as_the_same_history_of_a_member(
    made: Made, data: Interactions, name: str, tmp_path: Path
) -> None:
    run = made(name)
    person = run.newcomer(history_of(data, run, "u2", tmp_path / "me.csv"))
    assert len(person.history) == EACH - 2
    found = {one.item: one.score for one in run.recommend(person, ITEMS)}
    member = {one.item: one.score for one in run.recommend("u2", ITEMS)}
    (only_there,) = found.keys() - member.keys()
    assert only_there == data.items[run.experiment.protocol.prepare(data).validation.answers(2)[0]]
    assert {item: found[item] for item in member} == pytest.approx(member, rel=1e-5, abs=1e-6)
    assert all(not one.held_out for one in run.recommend(person))


def test_order_alone_is_enough_where_places_count(made: Made, data: Interactions, tmp_path: Path) -> None:
    run = made("fedease")
    timed = run.newcomer(history_of(data, run, "u2", tmp_path / "me.csv"))
    ids = [str(data.items[one.position]) for one in timed.history]
    untimed = run.newcomer([f"id:{one}" for one in ids])
    assert run.recommend(untimed) == run.recommend(timed)
    assert run.recommend(run.newcomer([f"id:{one}" for one in reversed(ids)])) != run.recommend(timed)


@pytest.mark.parametrize("name", ["fedmf", "pfedrec", "fedrecon"])
def test_trained_methods_fit_somebody_new_and_change_nothing(made: Made, name: str) -> None:
    run = made(name)
    before = run.recommend("u1")
    first, other = (run.recommend(run.newcomer(said), 5) for said in ("dune; tome 9; tome 8", "emma austen; tome 12"))
    assert len(first) == 5
    assert [one.score for one in first] != [one.score for one in other]
    assert {"i0", "i9", "i8"}.isdisjoint(one.item for one in first)
    assert run.recommend(run.newcomer("dune; tome 9; tome 8"), 5) == first
    assert run.recommend("u1") == before


@pytest.mark.parametrize("name", ["fedease", "fedmf", "fedrecon", "pfedrec"])
@pytest.mark.parametrize("left", [0, 1])
def test_somebody_who_has_next_to_everything_gets_what_is_left(
    made: Made, data: Interactions, name: str, left: int
) -> None:
    run = made(name)
    person = run.newcomer([f"id:{item}" for item in data.items.tolist()[left:]])
    assert [one.item for one in run.recommend(person)] == data.items.tolist()[:left]


def test_models_of_values_by_user_refuse_somebody_new(made: Made, data: Interactions) -> None:
    run = made("mf")
    with pytest.raises(SettingError, match="mf learns values for every user and has none for users that never took"):
        run.recommend(run.newcomer("dune"))
    assert len(made("blend").recommend(made("blend").newcomer("dune"), 3)) == 3
    own = ov.run(build("blend", {**SMALL["blend"], "own": 1.0}), data)
    with pytest.raises(SettingError, match="clients have weights of their own here, and a new user has none"):
        own.recommend(own.newcomer("dune"))


def test_under_next_sitting_everybody_before_the_cut_has_a_list(data: Interactions) -> None:
    spread = shop()
    assert spread.timestamp is not None
    days = Interactions.from_rows(
        "days", spread.users[spread.user], spread.items[spread.item], timestamp=np.array(spread.timestamp) * 48
    )
    run = ov.run(ov.FedEASE(), days, protocol=NEXT_SITTING)
    frame = run.recommend_many(k=3)
    assert frame.columns == ["user", "rank", "item", "score"]
    assert frame["user"].n_unique() == run.experiment.protocol.prepare(days).num_users
    assert len(run.recommend(run.newcomer("i3; i4"), 3)) == 3


def test_a_run_in_a_notebook(made: Made) -> None:
    run = made("pfedrec")
    rounds = run.to_frame()
    assert rounds["round"].to_list() == [1, 2]
    assert rounds["loss"].to_list() == [line["loss"] for line in run.rounds]
    assert rounds["validation HR@10"].to_list() == [line["validation"]["HR@10"] for line in run.rounds]
    text = f"pfedrec on shop, protocol honest, seed 0: HR@10 {run.metrics['HR@10']:.4f}, NDCG@10 "
    assert repr(run).startswith(f"Run({text}")
    assert repr(run).endswith(f"; {run.folder.path})")
    html = run._repr_html_()
    assert text in html
    assert f"<td>{run.metrics['HR@10']:.4f}</td>" in html
    assert str(run.folder.path) in html


def test_rounds_that_were_not_measured_are_empty_in_the_frame(data: Interactions) -> None:
    run = ov.run(build("fedmf", SMALL["fedmf"]), data, rounds=3, measure_every=2)
    assert run.to_frame()["validation HR@10"].is_null().to_list() == [True, False, False]


@pytest.mark.parametrize("ending", [".parquet", ".csv"])
def test_frames_are_written_whole(made: Made, tmp_path: Path, ending: str) -> None:
    frame = made("fedease").recommend_many(k=2)
    write_frame(frame, tmp_path / f"lists{ending}")
    read = pl.read_parquet if ending == ".parquet" else pl.read_csv
    assert read(tmp_path / f"lists{ending}").equals(frame)
    assert len(list(tmp_path.iterdir())) == 1


def test_ids_that_are_numbers_stay_numbers() -> None:
    random = np.random.default_rng(0)
    item = np.concatenate([random.permutation(12)[:6] for _ in range(9)])
    numbers = Interactions.from_rows("numbers", np.repeat(np.arange(9), 6), item)
    frame = ov.fit(ov.Popularity(), numbers).recommend_many(k=2)
    assert frame.schema["user"] == frame.schema["item"] == pl.Int64
    assert on_everything().prepare(numbers).num_users == frame["user"].n_unique()
