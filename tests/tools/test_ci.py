"""What `.ci/run` says of its own gaps. Its steps, minutes of work each, are stood in for."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from tools.lock import ROOT

STEPS = {"apt-get": "", "chromium": "", "make": 'case "$*" in *others-recbole*) exit ${LACKING:-0} ;; esac'}


@pytest.mark.parametrize(("ci", "lacking", "loud"), [("true", "1", True), ("true", "0", False), ("", "1", False)])
def test_packages_that_were_not_installed_stand_in_the_closing_lines(
    ci: str, lacking: str, loud: bool, tmp_path: Path
) -> None:
    for name, script in STEPS.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / name).chmod(0o755)
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    values = {**os.environ, "PATH": path, "CI": ci, "LACKING": lacking}
    done = subprocess.run([ROOT / ".ci" / "run"], env=values, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    closing = done.stdout.splitlines()[-2:]
    assert (closing[0] if closing else "").startswith("!!! NOT RUN, could not be installed: recbole") is loud
    assert ("(tests/others) was not tested in this run" in done.stdout) is loud
