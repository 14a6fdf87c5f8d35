"""Tunings of real models on a small world: what they choose, what they may see, and how they go on."""

from __future__ import annotations

import json
import tomllib
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from ownview import FedMF, Protocol
from ownview.base.errors import OutputError, SettingError, TrainingError
from ownview.config.settings import own_settings
from ownview.runs.experiment import Experiment
from ownview.runs.run import run
from ownview.studies.tuning.trials import COMPLETE, FAILED, PRUNED, Trial, TuningFolder, best_of, ranked, recorded
from ownview.studies.tuning.tune import Tuning, searched, tune
from tests.studies.worlds import write_world

ROUNDS = 6


class CrashError(Exception):
    pass


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_world(tmp_path_factory.mktemp("data") / "world.csv")


def tuning_of(world: Path, trials: int = 10, **changed: Any) -> Tuning:
    search = changed.pop("search", ["server_optimizer=plain,adam", "embedding_size=2:8", "local_epochs=1,3"])
    options = {name: changed.pop(name) for name in ("metric", "pruner") if name in changed}
    base = Experiment(method=changed.pop("method", "fedmf"), data=str(world), rounds=ROUNDS, device="cpu", **changed)
    plugins = [name for name, _ in base.plugins]
    return Tuning(base, searched(base.method, plugins, base.settings, search), trials, **options)


def comparable(trials: list[Trial]) -> list[dict[str, Any]]:
    return [{name: value for name, value in asdict(trial).items() if name != "seconds"} for trial in trials]


@pytest.mark.parametrize("pruner", ["median", "halving", "none"])
def test_a_tuning_that_crashed_again_and_again_ends_as_one_that_never_did(
    world: Path, tmp_path: Path, pruner: str
) -> None:
    tuning = tuning_of(world, pruner=pruner)
    whole = tune(tuning, TuningFolder(tmp_path / "whole"))

    def crash_in(trial_number: int, after: int) -> None:
        def on_round(trial: int, number: int, value: float) -> None:
            if (trial, number) == (trial_number, after):
                raise CrashError

        with pytest.raises(CrashError):
            tune(tuning, TuningFolder(tmp_path / "torn"), on_round=on_round)

    crash_in(1, 3)
    crash_in(4, 1)
    crash_in(8, 1)
    with (tmp_path / "torn" / "trials.jsonl").open("a") as lines:
        lines.write('{"number": 8, "state": "comp')  # the crash came in the middle of a line
    torn = tune(tuning, TuningFolder(tmp_path / "torn"))
    assert comparable(torn) == comparable(whole)
    assert [trial.number for trial in torn] == list(range(1, 11))
    assert (tmp_path / "torn" / "best.toml").read_text() == (tmp_path / "whole" / "best.toml").read_text()
    assert comparable(TuningFolder(tmp_path / "torn").trials()) == comparable(whole)
    if pruner == "none":
        assert {trial.state for trial in whole} == {COMPLETE}
    else:
        assert {trial.state for trial in whole} == {COMPLETE, PRUNED}
        assert all((trial.state == PRUNED) == (len(trial.values) < ROUNDS) for trial in whole)


def test_more_trials_can_be_asked_for_later(world: Path, tmp_path: Path) -> None:
    few = tune(tuning_of(world, trials=3), TuningFolder(tmp_path / "one"))
    more = tune(tuning_of(world, trials=7), TuningFolder(tmp_path / "one"))
    assert comparable(more[:3]) == comparable(few)
    assert comparable(more) == comparable(tune(tuning_of(world, trials=7), TuningFolder(tmp_path / "two")))
    assert comparable(tune(tuning_of(world, trials=2), TuningFolder(tmp_path / "one"))) == comparable(more)


def test_every_trial_goes_into_a_record(world: Path, tmp_path: Path) -> None:
    folder = TuningFolder(tmp_path / "tuning")
    ended = tune(tuning_of(world, 3), folder)
    recorded(folder, tmp_path / "records" / "fedmf.json")
    found = json.loads((tmp_path / "records" / "fedmf.json").read_text(encoding="utf-8"))
    assert [(one["settings"], one["value"]) for one in found["trials"]] == [(one.settings, one.value) for one in ended]
    assert found["question"] == json.loads((tmp_path / "tuning" / "question.json").read_text(encoding="utf-8"))


def test_other_seeds_search_elsewhere(world: Path, tmp_path: Path) -> None:
    one, two = (tune(tuning_of(world, trials=3, seed=seed), TuningFolder(tmp_path / str(seed))) for seed in (0, 1))
    assert one[1].settings != two[1].settings


def test_a_tuning_sees_nothing_of_test(world: Path, tmp_path: Path) -> None:
    """Two worlds that differ in nothing but test items lead to the same trials, to the last digit."""
    other = write_world(tmp_path / "world.csv", other_test_items=True)
    assert other.read_text() != world.read_text()
    first, second = (
        tune(tuning_of(path, trials=6), TuningFolder(tmp_path / name)) for name, path in (("a", world), ("b", other))
    )
    assert comparable(first) == comparable(second)
    results = [run(tuning_of(path).base, out=tmp_path / f"run-{name}") for name, path in (("a", world), ("b", other))]
    assert results[0].metrics != results[1].metrics  # a run does look at them, once


@pytest.mark.parametrize("metric", ["NDCG@10", "HR@10"])
def test_the_best_file_run_again_has_the_validation_value_it_was_chosen_for(
    world: Path, tmp_path: Path, metric: str
) -> None:
    ended = tune(tuning_of(world, trials=8, metric=metric), TuningFolder(tmp_path / "tuning"))
    best = best_of(ended)
    assert best.value == max(trial.value for trial in ended if trial.state == COMPLETE and trial.value is not None)
    path = tmp_path / "tuning" / "best.toml"
    text = path.read_text()
    assert f"# Found by ownview tune: trial {best.number} of 8 (" in text
    assert f"# Validation {metric} {best.value:.6f} at round {best.round} of {ROUNDS}, protocol honest, seed 0." in text
    finished = run(Experiment.load(path), out=tmp_path / "run")
    assert finished.result["validation"][metric] == pytest.approx(best.value, abs=1e-12)
    assert finished.result["chosen_round"] == best.round
    written = tomllib.loads(text)
    assert set(written["settings"]) == set(own_settings(FedMF))
    assert str(written["federation"]["server_optimizer"]) == best.settings["server_optimizer"]
    assert str(written["settings"]["embedding_size"]) == best.settings["embedding_size"]


def test_the_first_trial_has_the_defaults(world: Path, tmp_path: Path) -> None:
    (first,) = tune(
        tuning_of(world, trials=1, search=["local_epochs=1,10", "server_optimizer"]), TuningFolder(tmp_path / "t")
    )
    defaults = {"negatives": "4", "local_epochs": "10", "embedding_size": "16", "learning_rate": "0.01"}
    assert defaults.items() <= first.settings.items()
    assert (first.settings["initial_scale"], first.settings["server_optimizer"]) == ("1.0", "plain")


def test_pinned_settings_stay_and_plugins_are_searched_by_their_names(world: Path, tmp_path: Path) -> None:
    pinned = {"embedding_size": 3, "local_epochs": 1, "negatives": 2}
    tuning = tuning_of(
        world, trials=3, settings=pinned, plugins=(("elastic-merging", {}),), search=["elastic-merging.rho=0:1"]
    )
    ended = tune(tuning, TuningFolder(tmp_path / "t"))
    names = {"learning_rate", "initial_scale", "regularization", "elastic-merging.adapter_rate", "elastic-merging.rho"}
    assert all(set(trial.settings) == names for trial in ended)
    best = tomllib.loads((tmp_path / "t" / "best.toml").read_text())
    assert {name: best["settings"][name] for name in pinned} == pinned
    assert best["plugins"][0]["settings"]["rho"] == float(best_of(ended).settings["elastic-merging.rho"])


def test_lists_can_be_searched(world: Path, tmp_path: Path) -> None:
    tuning = tuning_of(world, trials=4, method="pfedrec", search=["hidden_layers=4/8,4", "embedding_size=4"])
    ended = tune(tuning, TuningFolder(tmp_path / "t"))
    assert {trial.settings["hidden_layers"] for trial in ended} == {"4", "8,4"}
    best = tomllib.loads((tmp_path / "t" / "best.toml").read_text())
    assert best["settings"]["hidden_layers"] == [int(n) for n in best_of(ended).settings["hidden_layers"].split(",")]


def test_a_model_that_is_not_federated_has_one_round(world: Path, tmp_path: Path) -> None:
    tuning = tuning_of(world, trials=2, method="centrap", search=["epochs=1:2", "embedding_size=2,4"])
    ended = tune(tuning, TuningFolder(tmp_path / "t"))
    assert [len(trial.values) for trial in ended] == [1, 1]


def test_trials_that_blow_up_are_noted_and_never_chosen(world: Path, tmp_path: Path) -> None:
    """SGD at a rate of 1e30 is not finite after a round; the tuning goes on, and looks elsewhere."""
    settings = {"optimizer": "sgd", "embedding_size": 4, "local_epochs": 2}
    tuning = tuning_of(world, trials=6, settings=settings, search=["learning_rate=0.1,1e30"])
    ended = tune(tuning, TuningFolder(tmp_path / "t"))
    states = {float(trial.settings["learning_rate"]): trial.state for trial in ended}
    assert states[1e30] == FAILED
    assert states[0.1] != FAILED
    failed = next(trial for trial in ended if trial.state == FAILED)
    assert (failed.value, failed.round) == (None, 0)
    assert "finite" in failed.reason
    assert best_of(ended).settings["learning_rate"] == "0.1"
    only = tuning_of(world, trials=2, settings=settings, search=["learning_rate=1e30,1e31"])
    with pytest.raises(TrainingError, match=r"none of 2 trials came to an end: .*finite"):
        tune(only, TuningFolder(tmp_path / "only"))


def test_a_protocol_that_chooses_on_test_is_refused(world: Path) -> None:
    with pytest.raises(SettingError, match=r"protocol mine has selection='test'.*expected selection='validation'"):
        tuning_of(world, protocol=Protocol(name="mine", selection="test"))


def test_a_protocol_that_takes_the_last_round_is_tuned_by_the_last_round(world: Path, tmp_path: Path) -> None:
    tuning = tuning_of(world, trials=3, protocol=Protocol(name="mine", selection="last"))
    for trial in tune(tuning, TuningFolder(tmp_path / "t")):
        assert trial.round == len(trial.values)
        assert trial.value == trial.values[-1]


def test_another_question_in_the_same_folder_is_refused(world: Path, tmp_path: Path) -> None:
    folder = TuningFolder(tmp_path / "t")
    tune(tuning_of(world, trials=1), folder)
    with pytest.raises(OutputError, match=r"began with experiment\.seed=0, not 1; .*another --out"):
        tune(tuning_of(world, trials=1, seed=1), folder)
    with pytest.raises(OutputError, match=r"began with metric='NDCG@10', not 'HR@10'"):
        tune(tuning_of(world, trials=1, metric="HR@10"), folder)
    with pytest.raises(OutputError, match=r"search\.local_epochs='1,3', not '1,2,5,10'"):
        tune(tuning_of(world, trials=1, search=["embedding_size=2:4"]), folder)
    world_now = world.read_text()
    try:
        world.write_text(world_now + "u0,i59,4,5\n")
        with pytest.raises(OutputError, match="data_fingerprint"):
            tune(tuning_of(world, trials=1), folder)
    finally:
        world.write_text(world_now)


def test_a_folder_in_use_or_of_something_else_is_refused(world: Path, tmp_path: Path) -> None:
    folder = TuningFolder(tmp_path / "t")
    with folder.held(), pytest.raises(OutputError, match="another process tunes here"):
        tune(tuning_of(world, trials=1), TuningFolder(tmp_path / "t"))
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "novel.txt").write_text("Call me Ishmael.")
    with pytest.raises(OutputError, match="already exists and is no tuning"):
        tune(tuning_of(world, trials=1), TuningFolder(tmp_path / "other"))
    (tmp_path / "t" / "question.json").write_text("{")
    with pytest.raises(OutputError, match=r"question\.json: is damaged"):
        tune(tuning_of(world, trials=1), folder)


def test_whole_trials_stand_before_pruned_ones_whatever_their_values() -> None:
    whole = Trial(1, COMPLETE, {}, {}, 0.1, 2, [0.0, 0.1], 1.0)
    pruned = replace(whole, number=2, state=PRUNED, value=0.3)
    failed = replace(whole, number=3, state=FAILED, value=None)
    better = replace(whole, number=4, value=0.2)
    assert [trial.number for trial in ranked([failed, pruned, whole, better])] == [4, 1, 2, 3]
    assert best_of([pruned, whole, failed]) is whole


def test_the_record_is_plain_json(world: Path, tmp_path: Path) -> None:
    tune(tuning_of(world, trials=2), TuningFolder(tmp_path / "t"))
    lines = [json.loads(line) for line in (tmp_path / "t" / "trials.jsonl").read_text().splitlines()]
    assert [line["number"] for line in lines] == [1, 2]
    assert all(len(line["values"]) == ROUNDS and line["seconds"] > 0 for line in lines)
    question = json.loads((tmp_path / "t" / "question.json").read_text())
    assert question["search"]["embedding_size"] == "2:8"


def test_rounds_may_be_measured_now_and_then(world: Path, tmp_path: Path) -> None:
    ended = tune(tuning_of(world, trials=2, measure_every=4, pruner="none"), TuningFolder(tmp_path / "tuning"))
    assert [len(trial.values) for trial in ended] == [2, 2]  # after rounds 4 and 6
    assert {trial.round for trial in ended} <= {4, 6}
