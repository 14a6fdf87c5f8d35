"""Models that are trained on everything: without a figure, with word of where their settings come from."""

from __future__ import annotations

import json
import shutil
import signal
from pathlib import Path
from typing import Any

import pytest
import torch

import ownview as ov
from ownview.base.errors import OutputError, SettingError
from ownview.data import Interactions
from ownview.engine.machine import Machine
from ownview.evaluation.named_protocols import HONEST, NEXT_SITTING, on_everything
from ownview.federation.options import FederationOptions
from ownview.registry import build
from ownview.round.federation import Federation
from ownview.runs.blended_runs import blend_of
from ownview.runs.experiment import Experiment
from ownview.runs.files.data_copy import HISTORIES
from ownview.runs.files.folder import RunFolder
from ownview.runs.files.tensor_files import read_tensors, write_tensors
from ownview.runs.files.versions import in_use, publish, version
from ownview.runs.full_fit import fit_like, fit_of
from ownview.runs.run import Run, resume, run
from ownview.runs.training.training_rounds import InterruptedRunError
from tests.outcome import signalled
from tests.shop import EACH, ITEMS, USERS, shop

SMALL = {"embedding_size": 4, "local_epochs": 1}


@pytest.fixture(scope="module")
def data() -> Interactions:
    return shop()


@pytest.fixture(scope="module")
def measured(data: Interactions, tmp_path_factory: pytest.TempPathFactory) -> Run:
    return ov.run(build("fedmf", SMALL), data, rounds=4, seed=2, out=tmp_path_factory.mktemp("runs") / "measured")


def test_it_trains_on_every_interaction_and_has_no_figure(data: Interactions) -> None:
    fitted = ov.fit("popularity", data)
    assert int(fitted.loaded().setup.split.train.lengths.sum()) == USERS * EACH
    assert not fitted.folder.has_tensors("recommended"), "lists are made when they are asked for"
    assert not fitted.measured
    assert fitted.result["no_test_figure"].startswith("trained on everything: nothing was held out")
    assert not {"test", "validation", "interval_95", "groups", "users_ranked"} & set(fitted.result)
    assert not (fitted.folder.path / "users.csv").exists()
    assert "validation" not in fitted.rounds[0]
    with pytest.raises(OutputError, match="trained on everything: nothing was held out, so there is no test figure"):
        _ = fitted.metrics
    assert "no test figure" in repr(fitted)
    assert "no test figure" in fitted._repr_html_()
    opened = ov.open_run(fitted.folder.path, data)
    assert opened.recommend("u1") == fitted.recommend("u1")
    mine = set(data.items[data.item[data.of(1)]].tolist())
    assert len(opened.recommend("u1", ITEMS)) == ITEMS - EACH
    assert mine.isdisjoint(one.item for one in opened.recommend("u1", ITEMS))


def test_a_member_gets_the_list_that_somebody_new_with_the_same_history_gets(data: Interactions) -> None:
    fitted = ov.fit(ov.FedEASE(), data)
    for user in range(3):
        history = [f"id:{item}" for item in data.items[data.item[data.of(user)]].tolist()]
        member, new = fitted.recommend(f"u{user}", 5), fitted.recommend(fitted.newcomer(history), 5)
        assert [one.item for one in member] == [one.item for one in new]
        assert [one.score for one in member] == pytest.approx([one.score for one in new], rel=1e-5)


def test_like_a_run_it_takes_what_that_was_and_the_round_it_chose(data: Interactions, measured: Run) -> None:
    fitted = ov.fit(like=measured)
    chosen = measured.result["chosen_round"]
    assert fitted.experiment.settings == measured.experiment.settings
    assert (fitted.experiment.seed, fitted.experiment.method) == (2, "fedmf")
    assert fitted.result["rounds"] == fitted.result["chosen_round"] == len(fitted.rounds) == chosen
    origin = fitted.result["settings_from"]
    assert (fitted.folder.path / origin["run"]).resolve() == measured.folder.path.resolve()
    assert not Path(origin["run"]).is_absolute()
    assert (origin["protocol"], origin["chosen_round"], origin["rounds"]) == ("honest", chosen, 4)
    assert origin["test"] == {name: measured.metrics[name] for name in ("HR@10", "NDCG@10")}
    same = ov.fit(build("fedmf", SMALL), data, rounds=chosen, seed=2)
    assert same.recommend_many().equals(fitted.recommend_many())
    assert "settings_from" not in same.result
    assert origin["run"] in fitted._repr_html_()


def test_like_keeps_plugins_federation_and_what_the_protocol_says_of_the_data(data: Interactions) -> None:
    model = build("fedmf", SMALL, (("dual-personalisation", {}),))
    one = ov.run(model, data, rounds=1, federation={"clients": "0.5"})
    fitted = ov.fit(like=one)
    assert fitted.experiment.plugins == one.experiment.plugins
    assert fitted.experiment.federation == one.experiment.federation
    sittings = Experiment(method="popularity", protocol=NEXT_SITTING)
    assert fit_of(sittings, None).protocol.moment == "later"


def test_identity_does_not_ask_where_settings_come_from(measured: Run) -> None:
    one = fit_like(measured.folder.path, model=measured.model)
    assert one.like
    assert Experiment.from_toml(one.to_toml()) == one
    assert "like" not in one.identity()


def test_stopped_and_resumed_it_ends_as_if_it_never_was(data: Interactions, tmp_path: Path) -> None:
    asked = fit_of(Experiment(method="fedmf", data="shop", settings=SMALL), 3)
    whole, stopped = tmp_path / "whole", tmp_path / "stopped"
    run(asked, data=data, out=whole)
    with (
        signalled(signal.SIGTERM, RunFolder, "append_round", 2),
        pytest.raises(InterruptedRunError, match=f"go on with: ownview run --resume {stopped}"),
    ):
        run(asked, data=data, out=stopped)
    assert len(RunFolder(stopped).read_rounds()) == 2
    resume(stopped, data=data)
    for name in ("experiment.toml", "model.safetensors"):
        assert (stopped / name).read_bytes() == (whole / name).read_bytes(), name
    results = [json.loads((folder / "result.json").read_text()) for folder in (whole, stopped)]
    assert _lasting(results[0]) == _lasting(results[1])
    assert sorted(one.name for one in whole.iterdir()) == sorted(one.name for one in stopped.iterdir())


def _lasting(result: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in result.items() if name not in ("seconds", "peak_memory_bytes", "cost")}


def test_what_cannot_be_fitted_is_refused_in_words(data: Interactions, measured: Run, tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="pfedrec trains round by round, and here nothing is held out to choose"):
        ov.fit("pfedrec", data)
    with pytest.raises(SettingError, match="fedease trains round by round"):
        ov.fit("fedease", data, federation={"clients": "0.5"})
    with pytest.raises(SettingError, match="blend chooses its weights on validation, and here nothing is held out"):
        ov.fit("blend", data, out=tmp_path / "never")
    assert not (tmp_path / "never").exists()
    with pytest.raises(SettingError, match="expected a method, or like=RUN, and not both"):
        ov.fit("fedmf", data, like=measured)
    with pytest.raises(SettingError, match="those of the run with like=RUN"):
        ov.fit(like=measured, rounds=3)
    fitted = ov.fit("popularity", data)
    with pytest.raises(SettingError, match="is itself trained on everything and chose no round"):
        ov.fit(like=fitted)
    with pytest.raises(SettingError, match="was trained on everything, held-out items included; a blend takes"):
        ov.run(build("blend", {"parts": ("fedease", f"popularity @{fitted.folder.path}")}), data)
    with pytest.raises(SettingError, match="blend chooses its weights on validation"):
        run(blend_of([fitted.folder.path, fitted.folder.path]), data=data)


def test_settings_are_told_by_folder_alone_once_the_run_is_gone(data: Interactions, tmp_path: Path) -> None:
    origin = ov.run("popularity", data, out=tmp_path / "origin")
    asked = fit_like(origin.folder.path)
    (tmp_path / "origin" / "result.json").unlink()
    assert run(asked, data=data, out=tmp_path / "model").result["settings_from"] == {"run": "../origin"}


def test_a_private_model_that_is_fitted_makes_all_of_its_releases(data: Interactions, tmp_path: Path) -> None:
    """It stopped after the first of two, and noisy popularity was called FedEASE: now the lists are the measured ones.

    The same noise on the same data: a run that holds nothing out beside `fit`.
    """
    federation = {"privacy": "central:epsilon=50,noise=seeded"}
    fitted = ov.fit(ov.FedEASE(), data, federation=federation)
    assert fitted.result["rounds"] == fitted.result["chosen_round"] == 2
    assert "over 2 rounds" in fitted.result["privacy"]["headline"]
    assert bool(fitted.folder.read_tensors("model")[0]["shared.weights"].any())
    split = on_everything(HONEST).prepare(data, 1)
    other = Federation(
        ov.FedEASE(), split, split.training_items(), FederationOptions.of(federation), 0, Machine(torch.device("cpu"))
    )
    for number in (1, 2):
        other.round(number)
    weights = fitted.folder.read_tensors("model")[0]["shared.weights"]
    assert torch.equal(weights, other.server.shared["weights"])


def test_a_model_moves_with_its_data_and_names_no_place_of_this_machine(data: Interactions, tmp_path: Path) -> None:
    file = tmp_path / "here" / "shop.csv"
    file.parent.mkdir()
    pairs = zip(data.users[data.user], data.items[data.item], strict=True)
    file.write_text("user,item\n" + "".join(f"{user},{item}\n" for user, item in pairs))
    made = ov.fit("fedease", str(file), out=tmp_path / "here" / "model")
    expected = made.recommend_many()
    file.unlink()
    moved = (tmp_path / "here").rename(tmp_path / "there") / "model"
    assert ov.open_run(moved).recommend_many().equals(expected)
    for one in moved.iterdir():
        assert str(tmp_path).encode() not in one.read_bytes(), one.name


def test_a_copy_of_the_data_that_does_not_hold_together_is_refused(data: Interactions, tmp_path: Path) -> None:
    model = ov.fit("popularity", data, out=tmp_path / "model").folder.path
    tensors, about, _ = read_tensors(model / HISTORIES)
    for name, value in (("item", tensors["item"] + ITEMS), ("offsets", tensors["offsets"][1:])):
        write_tensors(model / HISTORIES, {**tensors, name: value}, about, {})
        with pytest.raises(OutputError, match=r"histories\.safetensors: is damaged"):
            ov.open_run(model)


def test_a_version_is_put_in_use_whole_and_the_others_go(data: Interactions, tmp_path: Path) -> None:
    model = ov.fit("popularity", data, out=tmp_path / "model").folder.path
    before = ov.open_run(model)
    expected = before.recommend_many()

    def fill(place: Path) -> None:
        for one in in_use(model).iterdir():
            if one.is_file() and one.name != "notes.txt":
                shutil.copy(one, place)

    (model / "notes.txt").write_text("the owner's own")
    assert version(model) == "v000000"
    publish(model, fill)
    publish(model, fill)
    assert version(model) == "v000002"
    assert sorted(one.name for one in model.iterdir()) == ["current", "notes.txt", "versions"]
    assert [one.name for one in (model / "versions").iterdir()] == ["v000002"]
    assert ov.open_run(model).recommend_many().equals(expected)
    with pytest.raises(RuntimeError, match="no"):
        publish(model, lambda place: (_ for _ in ()).throw(RuntimeError("no")))
    assert version(model) == "v000002"
    (model / "current").write_text("../../etc\n")
    with pytest.raises(OutputError, match="current: is damaged"):
        ov.open_run(model)
