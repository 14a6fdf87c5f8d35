"""What one upload gives away on MovieLens 100K, with and without noise."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from tests.attacks.scenes import noise_for

from ownview.attacks.scoring import AttackFinding
from ownview.attacks.suite import from_one_upload
from ownview.attacks.view import Scene
from ownview.data import Interactions
from ownview.engine.machine import Machine
from ownview.evaluation.protocol import HONEST
from ownview.federation.options import FederationOptions
from ownview.registry import METHODS

RealData = Callable[[str], Interactions]


def _found(data: Interactions, method: str, privacy: str = "none") -> AttackFinding:
    split = HONEST.prepare(data)
    machine = Machine(torch.device("cpu"))
    options = FederationOptions(privacy=privacy)
    one = Scene(METHODS[method](), split, HONEST.training_exclusions(split), options, 0, machine)
    return from_one_upload(one, 20)


@pytest.mark.realdata
@pytest.mark.parametrize("method", ["fedmf", "fedrap", "pfedclr", "fedease"])
def test_the_server_reads_items_from_one_upload(real_data: RealData, method: str) -> None:
    found = _found(real_data("ml-100k"), method)
    assert min(found.values["precision"], found.values["recall"]) >= 0.99, found.sentence
    assert max(found.values["shuffled precision"], found.values["shuffled recall"]) <= 0.3, found.sentence


@pytest.mark.realdata
def test_local_noise_of_epsilon_8_leaves_next_to_nothing(real_data: RealData) -> None:
    for method in ("fedmf", "fedrap", "pfedclr"):
        found = _found(real_data("ml-100k"), method, f"gaussian:clip=0.1,noise={noise_for(8):.4f}")
        assert found.values["AUC"] <= 0.56, found.sentence
