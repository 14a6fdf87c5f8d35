"""The run folder: what is in it, and what stays of it when something goes wrong."""

from __future__ import annotations

import csv
import errno
import json
import os
import random
import re
import signal
import stat
import subprocess
import sys
import tomllib
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from safetensors import safe_open

from ownview.base.errors import OutputError, TrainingError
from ownview.base.files import (
    append_line,
    drop_unfinished,
    write_bytes,
    write_folder,
    write_json,
    write_text,
    write_whole,
    writing,
)
from ownview.federation.options import FederationOptions
from ownview.runs.batch import run_all
from ownview.runs.experiment import Experiment
from ownview.runs.files import folder as folder_module
from ownview.runs.files.folder import RunFolder
from ownview.runs.run import open_run, resume, run
from tests.apart import Apart, files_up_to
from tests.outcome import Outcome

USERS, ITEMS, SIZE = 30, 60, 4


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every item occurs, so that the universe has exactly ITEMS items."""
    path = tmp_path_factory.mktemp("data") / "world.csv"
    chance = random.Random(1)
    rows = ["user,item,rating,timestamp"]
    for user in range(USERS):
        chosen = {2 * user % ITEMS, (2 * user + 1) % ITEMS, *chance.sample(range(ITEMS), 8)}
        rows += [f"u{user},i{item},3,{chance.randint(0, 5000)}" for item in sorted(chosen)]
    path.write_text("\n".join(rows) + "\n")
    return path


def experiment_of(method: str, world: Path, rounds: int = 3, **settings: Any) -> Experiment:
    return Experiment(
        method=method,
        data=str(world),
        rounds=rounds,
        settings={"embedding_size": SIZE, "local_epochs": 1, **settings} if method != "popularity" else {},
    )


def rounds_of(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "rounds.jsonl").read_text().splitlines()]


def _append(path: Path, content: bytes) -> None:
    append_line(path, content.decode())


class TestWriteWhole:
    def test_writes_what_it_is_given(self, tmp_path: Path) -> None:
        write_text(tmp_path / "a.txt", "née\n")
        write_bytes(tmp_path / "b.bin", b"\0\1")
        assert (tmp_path / "a.txt").read_bytes() == "née\n".encode()
        assert (tmp_path / "b.bin").read_bytes() == b"\0\1"
        assert sorted(path.name for path in tmp_path.iterdir()) == ["a.txt", "b.bin"]

    @pytest.mark.parametrize("old", [None, "before"])
    @pytest.mark.parametrize("failure", [OSError(28, "No space left on device"), ValueError("x"), KeyboardInterrupt()])
    def test_failure_leaves_the_old_content_and_no_temporary(
        self, old: str | None, failure: BaseException, tmp_path: Path
    ) -> None:
        path = tmp_path / "result.json"
        if old is not None:
            path.write_text(old)

        def half(temporary: Path) -> None:
            temporary.write_text("hal")
            raise failure

        with pytest.raises(OutputError if isinstance(failure, OSError) else type(failure)):
            write_whole(path, half)
        assert {one.name: one.read_text() for one in tmp_path.iterdir()} == ({} if old is None else {path.name: old})

    def test_a_name_reaches_the_disk_after_what_it_names(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """A power cut after the call returned must not take the new name back."""
        done: list[object] = []
        replace, fsync = Path.replace, os.fsync

        def named_anew(one: Path, other: Path) -> Path:
            done.append("named")
            return replace(one, other)

        def flushed(handle: int) -> None:
            done.append(os.fstat(handle).st_ino)
            fsync(handle)

        monkeypatch.setattr(Path, "replace", named_anew)
        monkeypatch.setattr(os, "fsync", flushed)
        folder, file = tmp_path.stat().st_ino, tmp_path / "x"
        for write, named in ((write_bytes, ["named"]), (partial(write_bytes, private=True), ["named"]), (_append, [])):
            write(file, b"content")
            assert done == [file.stat().st_ino, *named, folder], write
            done.clear()
            if write is not _append:
                file.unlink()
        append_line(file, "more")
        assert done == [file.stat().st_ino], "the name was there already"
        done.clear()
        write_folder(tmp_path / "made", lambda temporary: (temporary / "inside").touch())
        made = tmp_path / "made"
        assert done == [(made / "inside").stat().st_ino, made.stat().st_ino, folder]

    def test_a_secret_is_its_owners_alone_and_leaves_nothing_behind(self, tmp_path: Path) -> None:
        write_bytes(tmp_path / "key", b"old", private=True)
        write_bytes(tmp_path / "key", b"new", private=True)
        assert (tmp_path / "key").read_bytes() == b"new"
        assert stat.S_IMODE((tmp_path / "key").stat().st_mode) == 0o600
        assert [one.name for one in tmp_path.iterdir()] == ["key"]

    def test_a_killed_write_leaves_nothing_that_is_not_dropped(self, tmp_path: Path) -> None:
        """Libraries write to temporary files of their own beside the one they are given."""
        program = """
import os, pathlib, signal, sys
from ownview.base.files import write_whole

def half(temporary):
    temporary.write_text("hal")
    temporary.with_name(".tmpOfALibrary").write_text("ha")
    os.kill(os.getpid(), signal.SIGKILL)

write_whole(pathlib.Path(sys.argv[1]), half)
"""
        path = tmp_path / "model.safetensors"
        path.write_text("before")
        killed = subprocess.run([sys.executable, "-c", program, path], check=False)
        assert killed.returncode == -signal.SIGKILL
        assert path.read_text() == "before"
        assert len(list(tmp_path.iterdir())) == 2
        drop_unfinished(path)
        assert [one.name for one in tmp_path.iterdir()] == [path.name]

    def test_error_names_the_file_and_the_reason(self, tmp_path: Path) -> None:
        def full(temporary: Path) -> None:
            raise OSError(28, "No space left on device")

        with pytest.raises(OutputError, match=re.escape(f"{tmp_path / 'x'}: cannot be written: No space left on")):
            write_whole(tmp_path / "x", full)

    def test_missing_parent_is_named(self, tmp_path: Path) -> None:
        with pytest.raises(
            OutputError, match=r"nowhere/x: cannot be written: the folder \S+/nowhere does not exist; make it"
        ):
            write_text(tmp_path / "nowhere" / "x", "")

    def test_json_refuses_numbers_that_are_not_finite(self, tmp_path: Path) -> None:
        with pytest.raises(ValueError, match="not JSON compliant"):
            write_json(tmp_path / "x.json", {"HR@10": float("nan")})
        assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("method", ["fedmf", "pfedrec", "local-only", "popularity"])
def test_finished_folder_holds_what_its_documentation_lists(method: str, world: Path, tmp_path: Path) -> None:
    run(experiment_of(method, world), out=tmp_path / "run")
    documented = set(re.findall(r"^([a-z]+\.[a-z]+)  ", folder_module.__doc__ or "", re.MULTILINE))
    gone = {"checkpoint.safetensors", "histories.safetensors", "audit.json", "attack.json", "privacy.json", "noise.key"}
    gone |= {"cost.json"} if method == "popularity" else set()
    assert {path.name for path in (tmp_path / "run").iterdir()} == documented - gone
    assert documented > {"result.json", "rounds.jsonl", "users.csv", "cost.json"}


def test_experiment_and_provenance_say_everything(world: Path, tmp_path: Path) -> None:
    run(experiment_of("fedmf", world), out=tmp_path / "run")
    written = tomllib.loads((tmp_path / "run" / "experiment.toml").read_text())
    assert (
        written["settings"] | {"embedding_size": SIZE, "local_epochs": 1, "learning_rate": 0.01} == written["settings"]
    )
    assert written["protocol"]["name"] == "honest"
    assert written["device"] in ("cpu", "cuda")
    known = json.loads((tmp_path / "run" / "provenance.json").read_text())
    assert known["data"] | {"name": "world", "users": USERS, "items": ITEMS} == known["data"]
    assert {"ownview", "revision", "python", "packages", "machine"} <= set(known)
    assert known["machine"]["engine"] == "vector"


def test_result_names_protocol_seed_settings_and_choice(world: Path, tmp_path: Path) -> None:
    finished = run(experiment_of("fedmf", world), out=tmp_path / "run")
    result = json.loads((tmp_path / "run" / "result.json").read_text())
    assert finished.result == result
    assert result["method"] == "fedmf"
    assert result["protocol"] == "honest"
    assert result["seed"] == 0
    assert result["settings"]["embedding_size"] == SIZE
    assert result["chosen_on"] == "validation"
    assert result["rounds"] == 3
    assert 1 <= result["chosen_round"] <= 3
    low, high = result["interval_95"]["HR@10"]
    assert low <= result["test"]["HR@10"] <= high
    lines = rounds_of(tmp_path / "run")
    assert result["validation"] == lines[result["chosen_round"] - 1]["validation"]
    assert result["seconds"] == pytest.approx(sum(sum(line["seconds"].values()) for line in lines), abs=1e-3)
    assert result["peak_memory_bytes"] == max(line["peak_memory_bytes"] for line in lines)


ENVELOPE = 16
TABLE = 12 + ITEMS * SIZE * 4
NAMED = 1 + len("items")
"""Bytes of a message without tables, of a whole table with its header, and of the name before it."""


@pytest.mark.parametrize(("method", "table"), [("fedmf", TABLE), ("pfedrec", TABLE), ("local-only", 0)])
def test_rounds_have_loss_metrics_seconds_traffic_and_memory(
    method: str, table: int, world: Path, tmp_path: Path
) -> None:
    run(experiment_of(method, world), out=tmp_path / "run")
    lines = rounds_of(tmp_path / "run")
    assert [line["round"] for line in lines] == [1, 2, 3]
    for line in lines:
        assert line["clients"] == USERS
        assert 0 < line["loss"] < 10
        assert {"HR@5", "NDCG@5", "HR@10", "NDCG@10", "HR@20", "NDCG@20", "MRR", "AUC"} == set(line["validation"])
        assert set(line["seconds"]) == {"sample", "train", "server", "evaluate"}
        assert all(value >= 0 for value in line["seconds"].values())
        assert line["seconds"]["train"] > 0
        down, up = line["bytes_down_per_client"], line["bytes_up_per_client"]
        assert line["bytes_dense_per_client"] == table
        assert down == ENVELOPE + (NAMED + table if table else 0)
        # Clients send the rows they touched: 8 positives each and at most 4 negatives for each of those.
        row = 4 + SIZE * 4
        assert ENVELOPE + NAMED + 16 + 12 * row < up < down if table else up == 0
        assert set(line["sparsity"]) == ({"items"} if table else set())
        assert all(0 == of["zero"] <= of["below_0.001"] < 0.1 for of in line["sparsity"].values())
        assert line["peak_memory_bytes"] > 2**20
    result = json.loads((tmp_path / "run" / "result.json").read_text())
    for way in ("bytes_up_per_client", "bytes_down_per_client"):
        found = [line[way] for line in lines]
        assert result[way] == round(sum(found) / len(found)), "as many clients take part in every round"


@pytest.mark.parametrize("method", ["fedmf", "popularity"])
def test_users_file_has_every_ranked_user_and_the_results_means(method: str, world: Path, tmp_path: Path) -> None:
    finished = run(experiment_of(method, world), out=tmp_path / "run")
    with (tmp_path / "run" / "users.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == finished.result["users_ranked"] == USERS
    assert {row["user"] for row in rows} == {f"u{user}" for user in range(USERS)}
    for name, value in finished.metrics.items():
        if name not in ("coverage@10", "Gini@10"):
            assert sum(float(row[name]) for row in rows) / len(rows) == pytest.approx(value, abs=1e-9)
    assert all(int(row["better"]) + int(row["tied"]) < int(row["candidates"]) <= ITEMS for row in rows)


def test_disk_that_fills_up_is_one_line_and_the_run_can_go_on(world: Path, tmp_path: Path) -> None:
    """Few clients take part in a round, so that states grow: the first checkpoint fits, later ones do not."""

    def few(rounds: int) -> Experiment:
        whole = experiment_of("pfedrec", world, rounds, embedding_size=16)
        # Measured once, in the end: the last round is chosen, whose state passes the limit wherever checkpoints fall.
        return replace(whole, federation=FederationOptions(clients="0.1"), measure_every=rounds)

    experiment = few(60)
    run(few(1), out=tmp_path / "one")
    limit = (tmp_path / "one" / "model.safetensors").stat().st_size * 2
    outcome = _limited(experiment, tmp_path, limit)
    folder = tmp_path / "run"
    assert outcome.code == 2
    assert outcome.out == ""
    full = outcome.err.removeprefix(f"ownview: {folder}/").partition(": cannot be written: ")
    assert re.fullmatch(r"(checkpoint|model)\.safetensors", full[0]), outcome.err
    assert "File too large" in full[2]
    assert outcome.err.endswith(f"go on with: ownview run --resume {folder}\n")
    assert outcome.err.count("\n") == 1
    assert list(folder.glob(".*")) == []
    with safe_open(folder / "checkpoint.safetensors", framework="pt") as stored:
        assert json.loads(stored.metadata()["about"])["round"] >= 1
    _assert_same_result(resume(folder).result, run(experiment).result)


def test_disk_that_fills_up_in_the_rounds_file_is_one_line_too(
    world: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The checkpoint, which holds the rounds too, is always larger; so the limit is put on this file alone."""
    experiment = experiment_of("fedmf", world, 20)
    folder = tmp_path / "run"

    def limited(path: Path, line: str) -> None:
        with writing(path):
            if path.is_file() and path.stat().st_size > 4000:
                raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))
        append_line(path, line)

    with monkeypatch.context() as patch:
        patch.setattr(folder_module, "append_line", limited)
        with pytest.raises(OutputError, match=r"rounds\.jsonl: cannot be written: File too large.*--resume"):
            run(experiment, out=folder)
        with pytest.raises(OutputError, match=r"cannot be written: File too large; [^;]*; then this command goes on$"):
            run_all([(experiment, folder)], jobs=1, memory="auto", data_dir=None, go_on="this command goes on")
    _assert_same_result(resume(folder).result, run(experiment).result)


def _limited(experiment: Experiment, place: Path, limit: int) -> Outcome:
    """Run in a process that may not write files larger than `limit` bytes."""
    config, within = place / "experiment.toml", partial(files_up_to, limit)
    config.write_text(experiment.to_toml())
    one = Apart("run", "--config", config, "--out", place / "run", within=within)
    return Outcome(one.wait(), one.printed(), one.said())


def _assert_same_result(found: Any, expected: Any) -> None:
    timeless = [
        {k: v for k, v in one.items() if k not in ("seconds", "peak_memory_bytes", "cost")} for one in (found, expected)
    ]
    assert timeless[0] == timeless[1]


def test_folder_that_exists_is_refused_and_left_alone(
    world: Path, ownview: Callable[..., Outcome], tmp_path: Path
) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("keep")
    outcome = ownview("run", "popularity", "--data", world, "--out", tmp_path / "mine")
    assert outcome == Outcome(2, "", f"ownview: {tmp_path / 'mine'}: already exists; choose another --out\n")
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["notes.txt"]


def test_folder_that_holds_a_run_is_refused_with_the_way_on(
    world: Path, ownview: Callable[..., Outcome], tmp_path: Path
) -> None:
    arguments = ("run", "popularity", "--data", world, "--out", tmp_path / "run")
    assert ownview(*arguments).code == 0
    message = f"ownview: {tmp_path}/run: already exists; choose another --out"
    assert ownview(*arguments) == Outcome(2, "", f"{message}\n")
    (tmp_path / "run" / "result.json").unlink()
    go_on = f"go on with: ownview run --resume {tmp_path}/run"
    assert ownview(*arguments) == Outcome(2, "", f"{message}, or {go_on}\n")


def test_the_way_on_is_a_line_for_a_shell() -> None:
    assert RunFolder(Path("my runs/it's")).go_on == "go on with: ownview run --resume 'my runs/it'\"'\"'s'"


def test_folder_below_a_file_is_refused(world: Path, ownview: Callable[..., Outcome], tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    outcome = ownview("run", "popularity", "--data", world, "--out", tmp_path / "file" / "run")
    assert outcome.code == 2
    assert outcome.err.startswith(f"ownview: {tmp_path / 'file' / 'run'}: cannot be written: Not a directory")


def test_bad_input_leaves_no_folder_behind(world: Path, ownview: Callable[..., Outcome], tmp_path: Path) -> None:
    for wrong in (["--data", tmp_path / "none.csv"], ["--data", world, "--set", "embedding_size=0"]):
        assert ownview("run", "fedmf", *wrong, "--out", tmp_path / "run").code == 2
        assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(("method", "rate"), [("pfedrec", 100.0), ("fedmf", 1e19)])
def test_divergence_names_round_client_and_parameter_and_keeps_the_checkpoint(
    method: str, rate: float, world: Path, ownview: Callable[..., Outcome], tmp_path: Path
) -> None:
    (tmp_path / "e.toml").write_text(experiment_of(method, world, 30, learning_rate=rate).to_toml())
    folder = tmp_path / "run"
    outcome = ownview("run", "--config", tmp_path / "e.toml", "--out", folder)
    assert outcome.code == 3
    assert outcome.out == ""
    message = re.fullmatch(
        rf"ownview: {method} diverged in round (\d+): (the loss|\w+) of client (u\d+) is not finite; "
        r"lower the learning rate or the initial scale\n",
        outcome.err,
    )
    assert message is not None, outcome.err
    assert len(rounds_of(folder)) == int(message[1]) - 1 >= 1
    assert not (folder / "result.json").exists()
    with safe_open(folder / "checkpoint.safetensors", framework="pt") as stored:
        assert 1 <= json.loads(stored.metadata()["about"])["round"] < int(message[1])
        assert all(bool(stored.get_tensor(key).isfinite().all()) for key in stored.keys())  # noqa: SIM118
    assert ownview("run", "--resume", folder) == outcome


def test_scores_that_overflow_name_the_round(world: Path, tmp_path: Path) -> None:
    with pytest.raises(TrainingError, match=r"after round 2 .*not finite.*; lower the learning rate"):
        run(experiment_of("pfedrec", world, 8, learning_rate=1e6), out=tmp_path / "run")


@pytest.mark.parametrize("name", ["result.json", "provenance.json"])
@pytest.mark.parametrize("content", ["{", "[1, 2]", "7"])
def test_damaged_json_is_named(name: str, content: str, world: Path, tmp_path: Path) -> None:
    finished = run(experiment_of("popularity", world), out=tmp_path / "run")
    (tmp_path / "run" / name).write_text(content)
    with pytest.raises(OutputError, match=re.escape(f"{name}: is damaged")):
        open_run(tmp_path / "run") if name == "result.json" else finished.recommend("u1")
