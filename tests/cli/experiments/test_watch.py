"""`ownview watch`: real runs in processes of their own, followed while they go on."""

from __future__ import annotations

import os
import pty
import re
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ownview.base.lock import at_work, sole_worker
from ownview.cli.experiments.watch import Followed, curve
from tests.apart import PATIENCE, Apart
from tests.outcome import Outcome
from tests.reproduction.worlds import store_world

STARTED: list[Apart] = []
"""None of them outlives its test."""
RUN = ("run", "fedmf", "--data", "ml-100k", "--data-dir", "store", "--set", "embedding_size=4")


@pytest.fixture(autouse=True)
def _world(own_folder: Path) -> Iterator[None]:
    store_world(own_folder / "store", "ml-100k")
    yield
    while STARTED:
        process = STARTED.pop()
        process.kill()
        process.wait()


def start(*arguments: str, terminal: int | None = None) -> Apart:
    surroundings = {"COLUMNS": "100", "LINES": "40", "TERM": "xterm"}
    STARTED.append(Apart(*arguments, environment=surroundings, out=terminal, err=terminal))
    return STARTED[-1]


def wait_until(ready: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not ready():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_run_is_followed_line_by_line_to_its_end() -> None:
    running = start(*RUN, "--rounds", "12", "--out", "mine")
    wait_until(Path("mine/experiment.toml").is_file)
    watching = start("watch", "mine")
    assert (watching.wait(), watching.said()) == (0, "")
    lines = watching.printed().splitlines()
    assert [line.split(" loss ")[0] for line in lines[:-1]] == [f"mine: round {n} of 12" for n in range(1, 13)]
    assert all(re.search(r"loss \d\.\d{4} validation HR@10 \d\.\d{4} NDCG@10 \d\.\d{4}$", line) for line in lines[:-1])
    assert re.match(r"mine: finished, round 12 of 12, validation HR@10 .* test HR@10 \d\.\d{4}$", lines[-1])
    assert running.wait() == 0


def test_ctrl_c_ends_the_looking_and_not_the_run(ownview: Callable[..., Outcome]) -> None:
    running = start(*RUN, "--rounds", "100000", "--out", "mine")
    wait_until(Path("mine/rounds.jsonl").is_file)
    watching = start("watch", "mine")
    wait_until(lambda: "\n" in watching.printed())
    assert watching.printed().startswith("mine: round 1 of 100000")
    watching.send_signal(signal.SIGINT)
    assert (watching.wait(), watching.said()) == (0, "")
    assert running.poll() is None
    running.send_signal(signal.SIGTERM)
    running.wait()

    stopped = ownview("watch", "mine")
    assert stopped.code == 0
    assert stopped.out.splitlines()[-1] == "mine: no process is at work on it; go on with: ownview run --resume mine"
    assert "mine: stopped, round " in stopped.out


def test_several_runs_on_a_terminal_are_plotted(ownview: Callable[..., Outcome]) -> None:
    for seed in ("0", "1"):
        assert ownview(*RUN, "--rounds", "5", "--seed", seed, "--out", f"all/seed{seed}").code == 0
    terminal, inside = pty.openpty()
    watching = start("watch", "all", terminal=inside)
    os.close(inside)
    shown = b""
    try:
        while part := os.read(terminal, 65536):
            shown += part
    except OSError:  # how a terminal says that the other side is gone
        pass
    assert watching.wait() == 0
    text = shown.decode()
    assert "seed0: finished, round 5 of 5" in text
    assert "seed1: finished, round 5 of 5" in text
    assert text.count("loss") >= 2
    assert any("⠀" < letter <= "⣿" for letter in text), "braille dots"


def test_once_tells_how_things_stand(ownview: Callable[..., Outcome]) -> None:
    assert ownview(*RUN, "--rounds", "3", "--out", "all/mine").code == 0
    assert ownview("run", "popularity", *RUN[2:6], "--out", "all/popular").code == 0
    once = ownview("watch", "all", "--once")
    assert (once.code, once.err) == (0, "")
    assert [line.split(",")[0] for line in once.out.splitlines()] == ["mine: finished", "popular: finished"]
    assert "popular: finished, round 1 of 1, validation HR@10 " in once.out


def test_bad_folders(ownview: Callable[..., Outcome]) -> None:
    assert ownview("watch", "nowhere").err == "ownview: nowhere: no such run folder\n"
    Path("mine").mkdir()
    Path("mein.csv").touch()
    for command in (("watch", "mien"), ("recommend", "mien", "--user", "u1"), ("report", "mien")):
        assert ownview(*command).err == "ownview: mien: no such run folder; did you mean 'mine'?\n"
    message = "ownview: rnus/mine: no such run folder; the folder rnus is not there either\n"
    assert ownview("watch", "rnus/mine").err == message
    Path("empty").mkdir()
    assert ownview("watch", "empty").err.startswith("ownview: empty: no run in it; expected a run's folder")


def test_a_folder_has_one_worker_at_a_time(ownview: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ownview.base.lock._PATIENCE", 0.1)
    assert ownview(*RUN, "--rounds", "2", "--out", "mine").code == 0
    assert not at_work(Path("mine"))
    with sole_worker(Path("mine")):
        assert at_work(Path("mine"))
        assert ownview("run", "--resume", "mine").err == (
            "ownview: mine: another process is at work there; wait for it, or stop it\n"
        )
    assert not at_work(Path("mine"))


def test_curves_go_from_corner_to_corner() -> None:
    rising = curve([0.0, 1.0], 3, 2)
    assert [len(line) for line in rising] == [3, 3]
    assert rising[1][0] == chr(0x2800 + 0x40 + 0x80), "two dots at the bottom left"
    assert rising[0][2] == chr(0x2800 + 0x01 + 0x08), "two dots at the top right"
    assert curve([], 2, 2) == ["⠀⠀", "⠀⠀"]
    assert curve([5.0], 2, 1) == ["⣀⣀"]
    assert curve([2.0, 2.0, 2.0], 2, 1) == ["⣀⣀"]
    steep = curve([0.0, 1.0], 1, 1)
    assert steep == [chr(0x2800 + 0x40 + 0x20 + 0x10 + 0x08)], "joined up"
    assert [len(line) for line in curve([float(n) for n in range(100)], 8, 1)] == [8], "many rounds fit a line"


def test_of_rounds_that_were_not_measured_only_the_loss_is_told() -> None:
    lines: list[dict[str, Any]] = [{"round": number, "loss": 1 / number} for number in (1, 2, 3)]
    lines[1]["validation"] = {"HR@10": 0.25, "NDCG@10": 0.125}
    one = Followed(Path("run"), "run", rounds=4, lines=lines)
    assert one.head() == "run: running, round 3 of 4, validation HR@10 0.2500 (best 0.2500, round 2)"
    assert one.news() == [
        "run: round 1 of 4 loss 1.0000",
        "run: round 2 of 4 loss 0.5000 validation HR@10 0.2500 NDCG@10 0.1250",
        "run: round 3 of 4 loss 0.3333",
    ]
    assert Followed(Path("run"), "run", rounds=4, lines=lines[:1]).head() == "run: running, round 1 of 4"
