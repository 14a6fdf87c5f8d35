"""A client that does not answer, or answers with anything else than an upload, is left out, and the round goes on."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from ownview.methods.fedmf import FedMF
from ownview.round.alone import SILENT, Process, ProcessFederation, SameProcess
from ownview.testing.worlds import federation, small_world
from tests.round.alike import counting

METHOD = FedMF(embedding_size=2, local_epochs=1)


@pytest.mark.parametrize("together", [False, True], ids=["killed", "garbage"])
def test_whoever_fails_is_left_out(together: bool, tmp_path: Path) -> None:
    split = small_world(num_users=6)
    one = federation(METHOD, split)
    agreed = METHOD, one.world, one.options, one.seed, one.machine
    with ProcessFederation(agreed, split, split.training_items(), tmp_path, together=together) as apart:
        apart.round(1)
        victim = apart.processes[2]
        if isinstance(victim, Process):
            victim.process.kill()
            victim.process.join()
        else:
            assert isinstance(victim, SameProcess)
            victim.device.round = lambda *given: b"no upload"  # type: ignore[method-assign]
        report = apart.round(2)
    assert list(report.left_out) == [2]
    expected = "client 2: answered wrongly: a damaged message" if together else SILENT
    assert report.left_out[2].startswith(expected)
    one.round(1)
    counting(one, lambda number: torch.tensor([0, 1, 3, 4, 5]))
    assert one.round(2).clients == report.clients == 5
    for name, value in one.server.shared.items():
        assert torch.allclose(apart.server.shared[name], value, atol=1e-10), name
