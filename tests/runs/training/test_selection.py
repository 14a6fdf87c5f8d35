"""Which round a run reports, and that nobody looks at test before."""

from __future__ import annotations

import json
import random
import weakref
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file

from ownview.base.errors import SettingError
from ownview.evaluation.named_protocols import protocol
from ownview.evaluation.protocol import Protocol
from ownview.reports.reading import read_run
from ownview.reports.results import curve
from ownview.runs.experiment import Experiment
from ownview.runs.run import Run, resume, run
from ownview.runs.training import training_rounds


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Few users: hit rates are eighths, so that rounds tie."""
    path = tmp_path_factory.mktemp("data") / "world.csv"
    chance = random.Random(3)
    rows = ["user,item,rating,timestamp"]
    for user in range(8):
        rows += [f"u{user},i{item},3,{chance.randint(0, 5000)}" for item in chance.sample(range(40), 10)]
    path.write_text("\n".join(rows) + "\n")
    return path


def train(
    world: Path, out: Path, rounds: int = 12, seed: int = 0, measured: Protocol | None = None, rate: float = 0.1
) -> Run:
    settings = {"embedding_size": 4, "learning_rate": rate}
    measured = measured or protocol("honest")
    experiment = Experiment("pfedrec", str(world), settings, protocol=measured, rounds=rounds, seed=seed)
    return run(experiment, out=out)


def custom(place: Path, text: str) -> Protocol:
    (place / "mine.toml").write_text(text)
    return protocol(str(place / "mine.toml"))


def best_of(lines: list[dict[str, Any]], stage: str) -> int:
    return int(max(lines, key=lambda line: (line[stage]["HR@10"], line[stage]["NDCG@10"], -line["round"]))["round"])


def model_round(finished: Run) -> int:
    with safe_open(finished.folder.path / "model.safetensors", framework="pt") as stored:
        return int(json.loads(stored.metadata()["about"])["round"])


def test_the_best_round_of_before_is_let_go_before_the_new_one_is_copied(
    world: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copied: list[weakref.ref[torch.Tensor]] = []
    alive: list[int] = []
    keep = training_rounds._kept

    def watched(packed: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        alive.append(sum(one() is not None for one in copied))
        found = keep(packed)
        copied.extend(weakref.ref(value) for value in found.values())
        return found

    monkeypatch.setattr(training_rounds, "_kept", watched)
    train(world, tmp_path / "run")
    assert len(alive) > 1, "a later round must have been the better one"
    assert not any(alive)


def test_best_validation_round_is_chosen_and_ndcg_decides_among_equals(world: Path, tmp_path: Path) -> None:
    decided_by_ndcg = 0
    for seed in range(8):
        finished = train(world, tmp_path / f"run{seed}", seed=seed)
        lines, chosen = finished.rounds, finished.result["chosen_round"]
        assert chosen == best_of(lines, "validation") == model_round(finished)
        assert finished.result["chosen_on"] == "validation"
        assert finished.result["validation"] == lines[chosen - 1]["validation"]
        hits = [line["validation"]["HR@10"] for line in lines]
        decided_by_ndcg += hits.index(max(hits)) + 1 < chosen
    assert decided_by_ndcg, "no seed had an earlier round with the same HR@10: the test shows nothing"


def test_earliest_of_equal_rounds_is_chosen(world: Path, tmp_path: Path) -> None:
    finished = train(world, tmp_path / "run", rounds=4, rate=1e-30)
    assert len({json.dumps(line["validation"]) for line in finished.rounds}) == 1
    assert finished.result["chosen_round"] == model_round(finished) == 1


def test_reported_test_values_are_those_of_the_chosen_round(world: Path, tmp_path: Path) -> None:
    finished = train(world, tmp_path / "run")
    chosen = finished.result["chosen_round"]
    assert 1 < chosen < 12, "the world must choose a round in the middle"
    last = custom(tmp_path, "selection = 'last'\n")
    shorter = train(world, tmp_path / "shorter", rounds=chosen, measured=last)
    assert shorter.metrics == finished.metrics
    models = [load_file(one.folder.path / "model.safetensors") for one in (finished, shorter)]
    assert models[0].keys() == models[1].keys()
    assert all(torch.equal(models[0][name], models[1][name]) for name in models[0])


@pytest.mark.parametrize("name", ["honest", "paper-like"])
def test_rounds_never_show_test_values_unless_test_chooses(name: str, world: Path, tmp_path: Path) -> None:
    measured = protocol("honest") if name == "honest" else custom(tmp_path, "base = 'paper'\ncandidates = 20\n")
    finished = train(world, tmp_path / "run", rounds=3, measured=measured)
    assert '"test"' not in (tmp_path / "run" / "rounds.jsonl").read_text()
    assert all("validation" in line for line in finished.rounds)
    assert "test_at_choice" not in finished.result


def test_test_may_choose_the_round_and_the_result_says_so(world: Path, tmp_path: Path) -> None:
    measured = custom(tmp_path, "selection = 'test'\n")
    finished = train(world, tmp_path / "run", measured=measured)
    lines, result = finished.rounds, finished.result
    assert all("test" in line and "validation" not in line for line in lines)
    assert result["chosen_round"] == best_of(lines, "test")
    assert (result["protocol"], result["chosen_on"]) == ("mine", "test")
    assert result["test_at_choice"] == lines[result["chosen_round"] - 1]["test"]
    assert {name: result["test"][name] for name in result["test_at_choice"]} == result["test_at_choice"]
    assert "validation" not in result


def test_last_round_may_be_taken_without_choice(world: Path, tmp_path: Path) -> None:
    finished = train(world, tmp_path / "run", measured=custom(tmp_path, "selection = 'last'\n"))
    assert best_of(finished.rounds, "validation") < 12, "the world must not choose the last round anyway"
    assert finished.result["chosen_round"] == model_round(finished) == 12
    assert finished.result["chosen_on"] == "last"
    assert finished.result["validation"] == finished.rounds[-1]["validation"]


@pytest.mark.parametrize("selection", ["validation", "test", "last"])
def test_choice_survives_an_interruption(selection: str, world: Path, tmp_path: Path) -> None:
    measured = custom(tmp_path, f"selection = '{selection}'\n")
    whole = train(world, tmp_path / "whole", measured=measured)

    def crash(number: int, metrics: dict[str, float]) -> None:
        if number == 10:
            raise InterruptedError

    with pytest.raises(InterruptedError):
        run(whole.experiment, out=tmp_path / "cut", on_round=crash)
    again = resume(tmp_path / "cut")
    assert again.result["chosen_round"] == whole.result["chosen_round"]
    assert again.metrics == whole.metrics
    assert (tmp_path / "cut" / "model.safetensors").read_bytes() == (
        tmp_path / "whole" / "model.safetensors"
    ).read_bytes()


def test_changed_protocol_cannot_carry_a_named_ones_name(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match=r"'honest' is taken"):
        custom(tmp_path, "name = 'honest'\nselection = 'test'\n")


def test_rounds_between_measurements_are_not_measured_and_not_chosen(world: Path, tmp_path: Path) -> None:
    """Every third and the last; what is trained does not change with how often it is looked at."""
    measured_at: dict[int, bool] = {}
    experiment = Experiment("pfedrec", str(world), {"embedding_size": 4, "learning_rate": 0.1}, rounds=8)
    sparse = run(
        replace(experiment, measure_every=3), out=tmp_path / "sparse",
        on_round=lambda number, metrics: measured_at.update({number: bool(metrics)}),
    )  # fmt: skip
    every = run(experiment, out=tmp_path / "every").rounds
    measured = [line for line in sparse.rounds if "validation" in line]
    assert [line["round"] for line in measured] == [3, 6, 8]
    assert [line["validation"] for line in measured] == [every[k - 1]["validation"] for k in (3, 6, 8)]
    assert [line["loss"] for line in sparse.rounds] == [line["loss"] for line in every]
    assert sparse.result["chosen_round"] == model_round(sparse) == best_of(measured, "validation")
    assert measured_at == {number: number in (3, 6, 8) for number in range(1, 9)}
    shown = curve([read_run(tmp_path / "sparse")])
    assert shown is not None
    assert (shown["rounds"], shown["stage"]) == ([3, 6, 8], "validation")
