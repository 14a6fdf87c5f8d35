"""A client that does not answer, or answers with anything else than an upload, is left out, and the round goes on."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import torch

from ownview import FederationOptions
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


def test_who_is_left_out_before_it_has_worked_keeps_what_it_had(tmp_path: Path) -> None:
    """A client that lives alone has nothing of this round to take back, and must not take back an earlier one."""

    class OneLarge(ProcessFederation):
        def units(self, clients: Iterable[int]) -> list[list[int]]:
            every = sorted(clients)
            return [[one] for one in every] if number == 1 else [every[:8], *([one] for one in every[8:])]

    split, options = small_world(), FederationOptions(privacy="masked:clip=5,groups=4")
    one = federation(METHOD, split, options=options)
    with OneLarge(
        (METHOD, one.world, options, one.seed, one.machine), split, one.excluded, tmp_path, together=True
    ) as apart:
        number = 1
        assert not apart.round(1).left_out
        before = [_own(process) for process in apart.processes]
        number = 2
        assert sorted(apart.round(2).left_out) == list(range(8))
        after = [_own(process) for process in apart.processes]
    assert [torch.equal(old, new) for old, new in zip(before, after, strict=True)] == [one < 8 for one in range(23)]


def _own(process: Any) -> torch.Tensor:
    value: torch.Tensor = process.device.values()["user"].clone()
    return value
