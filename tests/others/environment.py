"""Programs of others, each in an environment of its own: what they need and what we need exclude each other."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.apart import PATIENCE

HERE = Path(__file__).parent


def run_program(name: str, *words: str | Path) -> dict[str, Any]:
    """What `NAME_lists.py` prints, a JSON object in its last line; skipped where `make others` has not been there.

    The last of `words` is the folder that it writes to, and where it runs: RecBole leaves its logs where it stands.
    """
    place = Path(os.environ.get("OWNVIEW_OTHERS", Path(sys.prefix) / "others"))
    python = place / name / "bin" / "python"
    if not python.is_file():
        pytest.skip(f"{name} is not in {place}: make others installs it there, in an environment of its own")
    done = subprocess.run(
        [python, HERE / f"{name}_lists.py", *words],
        cwd=words[-1],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert isinstance(found, dict)
    return found
