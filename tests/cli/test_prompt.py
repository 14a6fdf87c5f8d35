"""A person at a terminal is asked whether a file that is not sound is read all the same."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pty = pytest.importorskip("pty", reason="terminals of other systems are not made like this")

ROWS = "user,item,timestamp\n" + "".join(f"u{k % 4},i{k % 5},{k + 1}\n" for k in range(20))


def answered(command: list[str], answer: bytes, folder: Path) -> tuple[int, str]:
    """Exit code and what stood on the terminal, when a person answers the first question."""
    master, slave = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "200", "OWNVIEW_PROGRESS": "off"}
    process = subprocess.Popen(
        [sys.executable, "-m", "ownview", *command],
        stdin=slave, stdout=slave, stderr=slave, cwd=folder, env=environment, close_fds=True,
    )  # fmt: skip
    os.close(slave)
    seen, said = b"", False
    try:
        while True:
            try:
                part = os.read(master, 4096)
            except OSError:  # Linux: nothing is connected to the other end any more
                break
            if not part:
                break
            seen += part
            if not said and b"[y/N]" in seen:
                os.write(master, answer)
                said = True
        return process.wait(timeout=60), seen.decode()
    finally:
        process.kill()
        process.wait()
        os.close(master)


@pytest.fixture
def unsound(tmp_path: Path) -> Path:
    (tmp_path / "mine.csv").write_text(ROWS + "u1,i2\nu2,i3,noon\n")
    return tmp_path


def test_yes_reads_it(unsound: Path) -> None:
    code, seen = answered(["data", "describe", "mine.csv"], b"y\n", unsound)
    assert code == 0
    assert "what is wrong with it" in seen
    assert "Read it that way? [y/N]" in seen
    assert "20" in seen.partition("[y/N]")[2]


@pytest.mark.parametrize("answer", [b"n\n", b"\n"])
def test_no_and_nothing_leave_it_with_the_command_that_would(unsound: Path, answer: bytes) -> None:
    code, seen = answered(["data", "describe", "mine.csv"], answer, unsound)
    assert code == 2
    assert "ownview data describe mine.csv --tolerant" in seen
    assert "Traceback" not in seen


def test_without_a_terminal_nothing_is_asked(unsound: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "ownview", "data", "describe", "mine.csv"],
        cwd=unsound, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode == 2
    assert "[y/N]" not in done.stdout + done.stderr
