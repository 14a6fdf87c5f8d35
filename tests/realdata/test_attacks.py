"""What one upload gives away on MovieLens 100K, with and without noise."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from tests.attacks.scenes import noise_for

from ownview.attacks.suite import from_one_upload, single_uploads
from ownview.attacks.view import Scene, victims, watch
from ownview.data import Interactions
from ownview.engine.machine import Machine
from ownview.evaluation.named_protocols import HONEST
from ownview.federation.options import FederationOptions
from ownview.registry import METHODS

RealData = Callable[[str], Interactions]


def _scene(data: Interactions, method: str, privacy: str = "none") -> Scene:
    split = HONEST.prepare(data)
    options, machine = FederationOptions(privacy=privacy), Machine(torch.device("cpu"))
    return Scene(METHODS[method](), split, HONEST.training_exclusions(split), options, 0, machine)


@pytest.mark.realdata
@pytest.mark.parametrize("method", ["fedmf", "fedrap", "pfedclr", "fedease"])
def test_the_server_reads_items_from_one_upload(real_data: RealData, method: str) -> None:
    found = from_one_upload(_scene(real_data("ml-100k"), method), 20)
    assert min(found.values["precision"], found.values["recall"]) >= 0.99, found.sentence
    assert max(found.values["shuffled precision"], found.values["shuffled recall"]) <= 0.3, found.sentence


@pytest.mark.realdata
def test_local_noise_of_epsilon_8_leaves_next_to_nothing(real_data: RealData) -> None:
    """Neither to the server nor to an attacker who knows the user's own vector."""
    for method in ("fedmf", "fedrap", "pfedclr"):
        one = _scene(real_data("ml-100k"), method, f"gaussian:clip=0.1,noise={noise_for(8):.4f}")
        chosen = victims(one.split.num_users, 20, 0)
        view, federation = watch(one, chosen, 1, cohort=chosen)
        found = {each.attack: each for each in single_uploads(view, federation, one, 0)}
        assert found["sign"].values["AUC"] <= 0.56, found["sign"].sentence
        assert found["sign, vector told"].values["AUC"] <= 0.56, found["sign, vector told"].sentence
