"""Methods whose clients send sums on a GPU: equal to the loop engine on the CPU, and the same on every run."""

from __future__ import annotations

import pytest
import torch

from ownview.registry import GATHERINGS
from ownview.seam.gathering import Gathering
from ownview.testing import gathering, small_world
from ownview.testing.gatherings import loop_equals_vector
from tests.test_gathering_conformance import GENTLE, VARIANTS

EVERY: dict[str, Gathering] = {**{name: cls() for name, cls in GATHERINGS.items()}, **GENTLE, **VARIANTS}

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device is available"),
]


@pytest.mark.parametrize("method", EVERY.values(), ids=list(EVERY))
def test_vector_engine_on_cuda_equals_loop_engine_on_cpu(method: Gathering) -> None:
    loop_equals_vector(method, device="cuda")


@pytest.mark.parametrize("method", EVERY.values(), ids=list(EVERY))
def test_two_runs_on_cuda_agree_bit_for_bit(method: Gathering) -> None:
    ends = []
    for _ in range(2):
        one = gathering(method, small_world(200, 300), dtype=torch.float32, device="cuda")
        for number in range(1, 6):
            one.round(number)
        ends.append(one.scores(torch.arange(200, device="cuda"), None))
    assert torch.equal(*ends)
