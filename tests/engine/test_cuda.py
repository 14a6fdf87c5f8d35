"""The same on a GPU: equal to the loop engine on the CPU, the same on every run, and resumed bit for bit."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from ownview.testing import CHECKS
from tests.test_conformance import COMBINATIONS, OPTIONS

EVERYTHING = {**COMBINATIONS, **OPTIONS}
ON_A_DEVICE = (
    "loop equals vector", "touched equals dense", "blocks change nothing", "resumes exactly", "repeats exactly"
)  # fmt: skip


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("check", ON_A_DEVICE)
@pytest.mark.parametrize("name", EVERYTHING)
def test_conforms_on_cuda(name: str, check: str) -> None:
    run: Any = CHECKS[check]
    run(EVERYTHING[name], device="cuda")
