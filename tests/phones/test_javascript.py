"""The interface that React Native has, in Node: lists and scores are Python's. Skipped where the packages are not."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

from ownview.phones.checking import Runtime
from ownview.phones.export import as_onnx
from tests.phones.test_forms import FORMS, ITEMS, _histories

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "phones"


def _runs(package: str) -> bool:
    line = ["node", "-e", f"require({package!r})"]
    return shutil.which("node") is not None and not subprocess.run(line, capture_output=True, check=False).returncode


@pytest.mark.parametrize("package", ["onnxruntime-node", "onnxruntime-web"])
@pytest.mark.parametrize("name", ["rows", "logistic", "network", "blend"])
def test_lists_in_node_are_pythons(package: str, name: str, tmp_path: Path) -> None:
    if not _runs(package):
        pytest.skip(f"needs node and {package}: npm install {package}, and NODE_PATH")
    (tmp_path / "model.onnx").write_bytes(as_onnx(FORMS[name], ITEMS, name))
    done = subprocess.run(
        ["node", str(EXAMPLES / "lists.mjs"), package, str(tmp_path)],
        input=json.dumps(_histories()), capture_output=True, text=True, check=True,
    )  # fmt: skip
    runtime = Runtime(tmp_path / "model.onnx")
    for history, found in zip(_histories(), json.loads(done.stdout.splitlines()[-1]), strict=True):
        scores, best = runtime.asked(history)
        assert found["best"] == best
        np.testing.assert_allclose(found["scores"], scores, rtol=1e-4, atol=1e-4 * np.ptp(scores))
