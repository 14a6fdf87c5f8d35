"""A run that was stopped, killed or cut off goes on to the result it would have had."""

from __future__ import annotations

import json
import random
import shutil
import signal
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from ownview.base.errors import OutputError
from ownview.runs.batch import BatchError, run_all
from ownview.runs.experiment import Experiment
from ownview.runs.files.folder import RunFolder
from ownview.runs.run import resume, run
from ownview.runs.training import training_rounds
from ownview.runs.training.training_rounds import Training
from tests.apart import killed
from tests.outcome import Outcome, signalled

FEW = 6

VARIANTS: dict[str, dict[str, Any]] = {
    "fedmf": {"method": "fedmf", "settings": {"local_epochs": 1, "embedding_size": 4}},
    "pfedrec": {"method": "pfedrec", "settings": {"embedding_size": 4}},
    "mf": {"method": "mf", "settings": {"embedding_size": 4, "batch_size": 64}},
    "lightgcn": {"method": "lightgcn", "settings": {"embedding_size": 4, "batch_size": 64}},
    "local-only": {"method": "local-only", "settings": {"local_epochs": 1, "embedding_size": 4}},
    "server-adam": {
        "method": "fedmf",
        "settings": {"local_epochs": 1, "embedding_size": 4},
        "federation": {"server_optimizer": "adam", "server_learning_rate": 0.01},
    },
    "in-turns-and-measured-now-and-then": {
        "method": "fedsasrec",
        "settings": {"embedding_size": 4, "length": 5},
        "federation": {"clients": "turns:8"},
        "measure_every": 4,
    },
    "half-the-clients-by-clusters": {
        "method": "fedfast",
        "settings": {"local_epochs": 1, "embedding_size": 4},
        "federation": {"clients": "0.5"},
    },
    "half-the-clients": {
        "method": "pfedrec",
        "settings": {"embedding_size": 4},
        "federation": {"clients": "0.5"},
        "inactive": "6:9",
    },
}


class CrashError(Exception):
    """Stands for whatever ends a process between a round's line and its checkpoint."""


def write_world(path: Path, seed: int = 1) -> Path:
    chance = random.Random(seed)
    rows = ["user,item,rating,timestamp"]
    for user in range(30):
        chosen = chance.sample(range(60), chance.randint(6, 14))
        rows += [f"u{user},i{item},{chance.randint(1, 5)},{chance.randint(0, 5000)}" for item in chosen]
    path.write_text("\n".join(rows) + "\n")
    return path


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_world(tmp_path_factory.mktemp("data") / "world.csv")


@pytest.fixture(scope="module")
def whole(world: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, int], Path]:
    """Folders of runs that nothing interrupted."""

    @cache
    def folder(variant: str, rounds: int) -> Path:
        path = tmp_path_factory.mktemp("whole") / variant
        run(experiment_of(variant, world, rounds), out=path)
        return path

    return folder


def experiment_of(variant: str, world: Path, rounds: int, seed: int = 0) -> Experiment:
    return Experiment.from_dict({**VARIANTS[variant], "data": str(world), "rounds": rounds, "seed": seed})


def crash(experiment: Experiment, folder: Path, after: int) -> Path:
    """Begin a run that ends after the line of round `after` and before the round's checkpoint."""

    def on_round(number: int, metrics: dict[str, float]) -> None:
        if number == after:
            raise CrashError

    with pytest.raises(CrashError):
        run(experiment, out=folder, on_round=on_round)
    return folder


def lines(folder: Path) -> list[dict[str, Any]]:
    """rounds.jsonl without what no two runs share."""
    found = [json.loads(line) for line in (folder / "rounds.jsonl").read_text().splitlines()]
    return [{k: v for k, v in line.items() if k not in ("seconds", "peak_memory_bytes")} for line in found]


def assert_same_run(found: Path, expected: Path) -> None:
    assert sorted(path.name for path in found.iterdir()) == sorted(path.name for path in expected.iterdir())
    for name in ("experiment.toml", "model.safetensors", "users.csv", "recommended.safetensors"):
        assert (found / name).read_bytes() == (expected / name).read_bytes(), name
    assert json.dumps(lines(found)) == json.dumps(lines(expected)), "names in their order too"
    results = [json.loads((folder / "result.json").read_text()) for folder in (found, expected)]
    for result in results:
        del result["seconds"], result["peak_memory_bytes"]
        if "cost" in result:
            del result["cost"]["seconds"]
    assert json.dumps(results[0]) == json.dumps(results[1]), "names in their order too"
    if "cost" not in results[0]:  # not federated: nothing is sent
        return
    costs = [json.loads((folder / "cost.json").read_text()) for folder in (found, expected)]
    for cost in costs:
        assert cost["measured"].pop("seconds")["round"] > 0
    assert costs[0] == costs[1]


def config_of(experiment: Experiment, path: Path) -> Path:
    path.write_text(experiment.to_toml())
    return path


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("variant", VARIANTS)
def test_stopped_then_resumed_equals_uninterrupted(
    variant: str,
    number: signal.Signals,
    world: Path,
    whole: Callable[[str, int], Path],
    ownview: Callable[..., Outcome],
    tmp_path: Path,
) -> None:
    folder = tmp_path / "run"
    config = config_of(experiment_of(variant, world, FEW), tmp_path / "experiment.toml")
    with signalled(number, RunFolder, "append_round", times=2):
        stopped = ownview("run", "--config", config, "--out", folder, "--json")
    message = f"ownview: stopped after round 2; go on with: ownview run --resume {folder}\n"
    assert stopped == Outcome(128 + number, "", message)
    resume(folder)
    assert_same_run(folder, whole(variant, FEW))


def test_killed_then_resumed_equals_uninterrupted(
    world: Path, whole: Callable[[str, int], Path], tmp_path: Path
) -> None:
    """Killed for good after a round's line, then in a process that resumes, right after a file was put in place."""
    folder = tmp_path / "run"
    config = config_of(experiment_of("server-adam", world, FEW), tmp_path / "experiment.toml")
    killed(RunFolder, "append_round", 3, "run", "--config", config, "--out", folder)
    assert len(lines(folder)) == 3
    killed(Path, "replace", 2, "run", "--resume", folder)
    assert not (folder / "result.json").exists()
    resume(folder)
    assert_same_run(folder, whole("server-adam", FEW))


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("after", [1, FEW - 1])
def test_crash_before_a_checkpoint_loses_nothing(
    variant: str, after: int, world: Path, whole: Callable[[str, int], Path], tmp_path: Path
) -> None:
    folder = crash(experiment_of(variant, world, FEW), tmp_path / "run", after)
    assert (folder / "checkpoint.safetensors").exists() == (after > 1)
    resume(folder)
    assert_same_run(folder, whole(variant, FEW))


@pytest.mark.parametrize("garbage", [b'{"round": 6, "cli', b"\xff\xfe\x80\n", b"\0" * 300, b"17\n", b"\n\n"], ids=repr)
def test_what_a_crash_left_in_the_rounds_file_is_dropped(
    garbage: bytes, world: Path, whole: Callable[[str, int], Path], tmp_path: Path
) -> None:
    folder = crash(experiment_of("fedmf", world, FEW), tmp_path / "run", 4)
    with (folder / "rounds.jsonl").open("ab") as rounds:
        rounds.write(garbage)
    resume(folder)
    assert_same_run(folder, whole("fedmf", FEW))


def test_killed_before_provenance_was_written_still_ends_whole(
    world: Path, whole: Callable[[str, int], Path], tmp_path: Path
) -> None:
    folder = crash(experiment_of("fedmf", world, FEW), tmp_path / "run", 1)
    for name in ("provenance.json", "rounds.jsonl"):
        (folder / name).unlink()
    resume(folder)
    assert_same_run(folder, whole("fedmf", FEW))
    known = [json.loads((path / "provenance.json").read_text()) for path in (folder, whole("fedmf", FEW))]
    assert known[0]["data"] == known[1]["data"]


def test_temporary_files_of_a_killed_process_go_and_other_files_stay(world: Path, tmp_path: Path) -> None:
    folder = crash(experiment_of("fedmf", world, FEW), tmp_path / "run", 3)
    left = folder / ".checkpoint.safetensors.01234567"
    left.mkdir()
    (left / "checkpoint.safetensors").write_bytes(b"half")
    (left / ".tmpOfALibrary").write_bytes(b"half of it")
    (folder / ".gitignore").write_text("*\n")
    resume(folder)
    assert [path.name for path in folder.glob(".*")] == [".gitignore"]


def test_killed_between_result_and_clearing_up_counts_as_finished(
    world: Path, whole: Callable[[str, int], Path], tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    shutil.copytree(whole("fedmf", FEW), folder)
    for left in ("checkpoint", "best-2"):
        (folder / f"{left}.safetensors").write_bytes(b"left over")
    (folder / "manifest.json").unlink()
    resume(folder)
    assert_same_run(folder, whole("fedmf", FEW))


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("times", range(1, 6))
def test_cut_off_between_the_files_of_a_checkpoint_loses_nothing(
    times: int, variant: str, world: Path, whole: Callable[[str, int], Path], tmp_path: Path
) -> None:
    """The state of the best round has a file of its own, and the one before stays until nothing refers to it."""
    folder = tmp_path / "run"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(training_rounds, "_CHECKPOINT_SHARE", 10**9)  # after every round
        patch.setattr(RunFolder, "write_tensors", stopped(RunFolder.write_tensors, times))
        with pytest.raises(CrashError):
            run(experiment_of(variant, world, FEW), out=folder)
    resume(folder)
    assert_same_run(folder, whole(variant, FEW))


def stopped(write: Callable[..., None], times: int) -> Callable[..., None]:
    """The same, until it is called so often."""
    calls: list[str] = []

    def counted(folder: RunFolder, name: str, *given: Any) -> None:
        calls.append(name)
        if len(calls) > times:
            raise CrashError
        write(folder, name, *given)

    return counted


def test_a_checkpoint_never_holds_three_states(world: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One trains; a second is the best round's until that is on the disk, then what is packed to be written."""
    held: list[bool] = []
    checkpoint = Training._checkpoint

    def watched(training: Training) -> None:
        pack = training.trainer.pack

        def packed() -> dict[str, Any]:
            held.append(bool(training.best.packed))
            return pack()

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(training.trainer, "pack", packed)
            checkpoint(training)
        held.append(bool(training.best.packed))

    measure = Training._measure

    def third_is_best(training: Training, number: int) -> dict[str, float]:
        return {**measure(training, number), "HR@10": float(number == 3), "NDCG@10": 0.0}

    monkeypatch.setattr(Training, "_measure", third_is_best)
    monkeypatch.setattr(training_rounds, "_CHECKPOINT_SHARE", 10**9)
    monkeypatch.setattr(Training, "_checkpoint", watched)
    assert run(experiment_of("fedmf", world, FEW), out=tmp_path / "run").result["chosen_round"] == 3
    assert len(held) == (FEW - 1) + 3, (
        "after every round but the last; rounds 2, 4 and 5 are none's best and are packed"
    )
    assert not any(held)


def test_damaged_checkpoint_is_named(world: Path, tmp_path: Path) -> None:
    folder = crash(experiment_of("fedmf", world, FEW), tmp_path / "run", 3)
    (folder / "checkpoint.safetensors").write_bytes(b"not a checkpoint")
    with pytest.raises(OutputError, match=r"checkpoint\.safetensors: cannot be read"):
        resume(folder)


def test_a_best_state_of_another_model_is_named(world: Path, tmp_path: Path) -> None:
    """With a checksum that fits, as an attacker makes it."""
    folder = tmp_path / "run"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(training_rounds, "_CHECKPOINT_SHARE", 10**9)
        measure = Training._measure
        patch.setattr(Training, "_measure", lambda one, number: {**measure(one, number), "HR@10": float(number == 1)})
        crash(experiment_of("fedmf", world, FEW), folder, 4)
    kept = RunFolder(folder)
    tensors, about = kept.read_tensors("best-1")
    kept.write_tensors("best-1", {f"{name}x": value for name, value in tensors.items()}, about)
    with pytest.MonkeyPatch.context() as patch:
        measure = Training._measure
        patch.setattr(Training, "_measure", lambda one, number: {**measure(one, number), "HR@10": 0.0})
        with pytest.raises(OutputError, match=r"best-1\.safetensors: does not hold the values of this method"):
            resume(folder)


def test_resume_of_a_finished_run_returns_its_result_and_changes_nothing(
    whole: Callable[[str, int], Path], ownview: Callable[..., Outcome]
) -> None:
    folder = whole("fedmf", FEW)
    before = {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.iterdir()}
    outcome = ownview("run", "--resume", folder, "--json")
    assert (outcome.code, outcome.err) == (0, "")
    assert json.loads(outcome.out) == {**json.loads(before["result.json"][0]), "folder": str(folder)}
    assert {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.iterdir()} == before


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["--rounds", "7"], "rounds=6, not 7"),
        (["--seed", "1"], "seed=0, not 1"),
        (["--data", "goodbooks"], "data='{world}', not 'goodbooks'"),
        (["--protocol", "paper"], "protocol.name='honest', not 'paper'"),
        (["--protocol", "{other}"], "protocol.name='honest', not 'other'"),
        (["--inactive", "6:9"], "inactive='', not '6:9'"),
        (["--engine", "loop"], "engine='vector', not 'loop'"),
        (["pfedrec"], "method='fedmf', not 'pfedrec'"),
        (["--set", "embedding_size=8"], "--set embedding_size=8: not with --resume"),
        (["--plugin", "dual-personalisation"], "--plugin: not with --resume"),
        (["--columns", "user=a,item=b"], "--columns: not with --resume"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_resume_with_other_settings_is_refused(
    arguments: list[str], named: str, world: Path, ownview: Callable[..., Outcome], tmp_path: Path
) -> None:
    folder = crash(experiment_of("fedmf", world, FEW), tmp_path / "run", 2)
    (tmp_path / "other.toml").write_text("ties = 'last'\n")
    outcome = ownview("run", *(a.format(other=tmp_path / "other.toml") for a in arguments), "--resume", folder)
    assert outcome.code == 2
    assert outcome.out == ""
    assert outcome.err.startswith("ownview: ")
    assert outcome.err.count("\n") == 1
    assert named.format(world=world) in outcome.err
    assert not (folder / "result.json").exists()


def test_resume_with_a_protocol_file_changed_since_is_refused(
    world: Path, ownview: Callable[..., Outcome], tmp_path: Path
) -> None:
    protocol = tmp_path / "mine.toml"
    protocol.write_text("ties = 'last'\n")
    arguments = ("run", "fedmf", "--data", world, "--rounds", "2", "--protocol", protocol)
    assert ownview(*arguments, "--out", tmp_path / "run").code == 0
    assert ownview(*arguments, "--resume", tmp_path / "run").code == 0
    protocol.write_text("ties = 'expected'\n")
    outcome = ownview(*arguments, "--resume", tmp_path / "run")
    assert outcome.code == 2
    assert "protocol.ties='last', not 'expected'" in outcome.err


def test_resume_with_the_same_settings_goes_on(
    world: Path, whole: Callable[[str, int], Path], ownview: Callable[..., Outcome], tmp_path: Path
) -> None:
    folder = crash(experiment_of("fedmf", world, FEW), tmp_path / "run", 2)
    arguments = ("fedmf", "--data", world, "--rounds", FEW, "--seed", "0", "--protocol", "honest")
    assert ownview("run", *arguments, "--resume", folder).code == 0
    assert_same_run(folder, whole("fedmf", FEW))


def test_resume_on_changed_data_is_refused_until_the_old_data_is_back(
    whole: Callable[[str, int], Path], ownview: Callable[..., Outcome], tmp_path: Path
) -> None:
    mine = write_world(tmp_path / "world.csv")
    before = mine.read_text()
    folder = crash(experiment_of("pfedrec", mine, FEW), tmp_path / "run", 3)
    mine.write_text(before + "u0,i0,5,9999\nu1,i1,5,9999\n")
    outcome = ownview("run", "--resume", folder)
    assert outcome.code == 2
    assert outcome.err == (
        f"ownview: {folder}: the data {str(mine)!r} has changed since the run began; "
        "start a new run, or bring the old data back\n"
    )
    mine.write_text(before)
    assert ownview("run", "--resume", folder).code == 0
    assert lines(folder) == lines(whole("pfedrec", FEW))


@pytest.mark.parametrize("variant", VARIANTS)
def test_equal_seeds_agree_bit_for_bit_and_others_do_not(
    variant: str, world: Path, whole: Callable[[str, int], Path], tmp_path: Path
) -> None:
    run(experiment_of(variant, world, FEW), out=tmp_path / "again")
    assert_same_run(tmp_path / "again", whole(variant, FEW))
    run(experiment_of(variant, world, FEW, seed=1), out=tmp_path / "other")
    models = [load_file(path / "model.safetensors") for path in (tmp_path / "other", whole(variant, FEW))]
    assert any(not torch.equal(models[0][name], models[1][name]) for name in models[0])
    assert lines(tmp_path / "other") != lines(whole(variant, FEW))


def test_a_signal_in_a_runs_last_round_ends_what_comes_after_it(world: Path, tmp_path: Path) -> None:
    tasks = [(experiment_of("fedmf", world, 2, seed), tmp_path / f"seed{seed}") for seed in (0, 1)]
    before = signal.getsignal(signal.SIGINT)

    def on_round(folder: Path, number: int, metrics: dict[str, float]) -> None:
        if number == 2:
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(BatchError, match="stopped with 1 of 2 runs finished; then this") as stopped:
        run_all(tasks, jobs=1, memory="auto", data_dir=None, on_round=on_round, go_on="then this")
    assert stopped.value.exit_code == 130
    assert [(folder / "result.json").is_file() for _, folder in tasks] == [True, False]
    assert signal.getsignal(signal.SIGINT) is before


def test_a_folder_left_empty_by_a_killed_process_is_begun_anew(world: Path, tmp_path: Path) -> None:
    task = (experiment_of("fedmf", world, 2), tmp_path / "run")
    task[1].mkdir()
    (task[1] / ".experiment.toml.abcdefgh").mkdir()
    (task[1] / ".experiment.toml.abcdefgh" / "experiment.toml").write_text("meth")
    (done,) = run_all([task], jobs=1, memory="auto", data_dir=None)
    assert done.result["rounds"] == 2
    other = tmp_path / "other"
    other.mkdir()
    (other / "notes.txt").write_text("mine")
    with pytest.raises(OutputError, match="already exists"):
        run_all([(task[0], other)], jobs=1, memory="auto", data_dir=None)
    assert (other / "notes.txt").read_text() == "mine"
