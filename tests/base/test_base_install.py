"""What `pip install .` brings is enough to learn, to recommend and to make pages: extras are for more than that."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.apart import PATIENCE

EXTRAS = (
    *("cryptography", "dp_accounting", "fastexcel", "flwr", "h11", "httptools", "implicit", "irspack", "onnx"),
    *("onnxruntime", "optuna", "pg8000", "ray", "sklearn", "starlette", "tensorboard", "uvicorn"),
)
PROGRAM = f"""
import sys
sys.modules.update(dict.fromkeys({EXTRAS!r}))  # as if they were not installed
import ownview as ov
from ownview.cli.main import entry
import ownview.start.growing, ownview.start.steps
rows = "".join(f"u{{u}},i{{(u * u + k) % 23}},{{1000 + k}}\\n" for u in range(40) for k in range(6))
open("shop.csv", "w").write("user,item,timestamp\\n" + rows)
run = ov.run("fedease", "shop.csv", out="run")
ov.page(run, "of-python.html", min_people=1)
ov.export(run, "exported", min_people=1)
ov.report(["run"], "report.html")
sys.argv = ["ownview", "page", "run", "-o", "page.html", "--min-people", "1"]
entry()
"""


def test_a_page_a_report_and_an_export_need_no_extra(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert done.returncode == 0, done.stderr
    for name in ("of-python.html", "page.html", "report.html", "exported/model.json"):
        assert (tmp_path / name).stat().st_size
