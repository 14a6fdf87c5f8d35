"""`ownview update`, `forget` and `sums`: what they say, and that what is wrong is one line."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from tests.apart import Apart, files_up_to
from tests.outcome import Outcome

_PROGRAM = "from ownview.__main__ import entry; entry()"


@pytest.fixture(autouse=True)
def _model(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, ownview: Callable[..., Outcome]) -> None:
    monkeypatch.chdir(tmp_path)
    draw = np.random.default_rng(3)
    _write("all.csv", [(f"u{user}", item, 100_000 * k) for user in range(12) for k, item in
                       enumerate(draw.permutation(15)[:6].tolist())])  # fmt: skip
    assert ownview("fit", "fedease", "--data", "all.csv", "--out", "model").code == 0


def _write(name: str, rows: list[tuple[object, ...]]) -> None:
    with Path(name).open("w", newline="") as file:
        csv.writer(file).writerows([("user", "item", "timestamp"), *rows])


def _files() -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in Path("model").rglob("*") if path.is_file()}


def test_a_day_in_the_life(ownview: Callable[..., Outcome]) -> None:
    _write("today.csv", [("u0", 14, 900_000), ("u0", 14, 900_000), ("zoe", 3, 900_001), ("zoe", 77, 900_002)])
    done = ownview("update", "model", "today.csv", "--json")
    assert done.code == 0, done.err
    changed = json.loads(done.out)
    assert changed["version"] == "v000001"
    assert changed["what"] == "3 new rows of 2 people (1 of them new) with 1 new items; 1 rows were known"
    assert "77" in ownview("recommend", "model", "--user", "u3", "-k", "20").words
    shown = ownview("sums", "show", "model", "--json")
    assert json.loads(shown.out)["contributions"] == 13
    solved = ownview("sums", "solve", "model", "--set", "regularization=3")
    assert solved.code == 0, solved.err
    assert "solved with regularization=3.0" in solved.words
    gone = ownview("forget", "model", "zoe")
    assert gone.code == 0, gone.err
    assert "one person was taken out" in gone.words
    assert "are not called back" in gone.words
    receipt = json.loads(next(Path("model/receipts").iterdir()).read_text())
    assert receipt["exact"]
    assert receipt["sha256"]["sums before"] != receipt["sha256"]["sums after"]
    again = ownview("forget", "model", "zoe")
    assert (again.code, again.err.count("\n")) == (2, 1)
    assert "unknown user of this model (a forgotten one is unknown) 'zoe'" in again.err


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (("update", "model", "none.csv"), "none.csv"),
        (("update", "nowhere", "all.csv"), "no such run folder"),
        (("forget", "model", "u99"), "did you mean 'u9'?"),
        (("sums", "solve", "model", "--set", "nearness=2"), "setting nearness: decides what people add"),
        (("sums", "solve", "model", "--set", "lambda=2"), "has a setting 'lambda'"),
        (("sums", "merge", "model", "nowhere"), "nowhere"),
    ],
)
def test_what_is_wrong_is_one_line_and_changes_nothing(
    command: tuple[str, ...], expected: str, ownview: Callable[..., Outcome]
) -> None:
    assert ownview("sums", "show", "model").code == 0
    before = _files()
    outcome = ownview(*command)
    assert (outcome.code, outcome.err.count("\n")) == (2, 1)
    assert expected in outcome.err
    assert _files() == before


def test_a_full_disk_is_one_line_and_the_same_command_goes_on(ownview: Callable[..., Outcome]) -> None:
    _write("today.csv", [("u0", 14, 900_000)])
    assert ownview("sums", "show", "model").code == 0
    stopped = Apart("update", "model", "today.csv", within=partial(files_up_to, 3000))
    assert stopped.wait() == 2
    assert stopped.said().count("\n") == 1
    assert "cannot be written" in stopped.said()
    done = ownview("update", "model", "today.csv")
    assert done.code == 0, done.err
    assert ownview("sums", "show", "model").code == 0
    assert ownview("recommend", "model", "--user", "u0").code == 0


def test_the_line_for_cron_does_what_the_page_says(ownview: Callable[..., Outcome], tmp_path: Path) -> None:
    """The page's own line, with this test's folder in the place of /srv/shop; cron turns \\% into %."""
    page = (Path(__file__).parents[3] / "docs" / "living-sums.md").read_text(encoding="utf-8")
    line = next(one for one in page.splitlines() if one.startswith("30 3 * * * "))
    words = line.removeprefix("30 3 * * * ").replace("\\%", "%").replace("/srv/shop", str(tmp_path))
    program = tmp_path / "venv" / "bin" / "ownview"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\nexec {sys.executable} -c '{_PROGRAM}' \"$@\"\n")
    program.chmod(0o755)
    today = subprocess.run(["date", "+%F"], capture_output=True, text=True, check=True).stdout.strip()
    _write(f"orders-{today}.csv", [("u0", 14, 900_000)])
    subprocess.run(["/bin/sh", "-c", words], env=os.environ | {"PATH": "/usr/bin:/bin"}, check=True, timeout=300)
    assert "1 new rows of 1 people" in (tmp_path / "update.log").read_text()


@pytest.mark.parametrize("module", ["sums", "forget", "update", "serve"])
def test_a_command_that_is_only_asked_about_loads_no_torch(module: str) -> None:
    code = f"import sys, ownview.cli.models.{module}; print({{'torch', 'polars', 'scipy'}} & sys.modules.keys())"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "set()\n"
