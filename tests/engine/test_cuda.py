"""The same on a GPU: equal to the loop engine on the CPU, and the same on every run."""

from __future__ import annotations

import pytest
import torch

from ownview import FedEM
from ownview.seam.method import Method
from ownview.testing import federation, small_world
from ownview.testing.conformance import loop_equals_vector
from tests.test_conformance import COMBINATIONS, GENTLE, OPTIONS

EVERY: dict[str, Method] = {
    **COMBINATIONS,
    **GENTLE,
    **OPTIONS,
    # Its first phase differentiates no matrix product, its second does.
    "fedem, one weight": FedEM(variant="dm", learning_rate=0.01, adapter_rate=0.01),
}

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device is available"),
]


@pytest.mark.parametrize("method", EVERY.values(), ids=list(EVERY))
def test_vector_engine_on_cuda_equals_loop_engine_on_cpu(method: Method) -> None:
    loop_equals_vector(method, device="cuda")


@pytest.mark.parametrize("method", EVERY.values(), ids=list(EVERY))
def test_two_runs_on_cuda_agree_bit_for_bit(method: Method) -> None:
    ends = []
    for _ in range(2):
        one = federation(method, small_world(200, 300), dtype=torch.float32, device="cuda")
        for number in range(1, 6):
            one.round(number)
        ends.append(one.state.predicting(torch.arange(200, device="cuda"), None)[0])
    assert all(torch.equal(ends[0][name], ends[1][name]) for name in ends[0])
