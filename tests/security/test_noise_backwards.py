"""Noise of a budget run backwards, against a real place and a real coordinator.

It worked while noise came from SplitMix64: from what a place sent under `local:epsilon=1` its stream was found, and
with it which items each of its users had; from the popularity that a coordinator published under `central:epsilon=1`
the exact sum. Now noise comes from a key of 32 bytes through ChaCha20, in whole steps, and there is no stream to find.
The attack still works where noise comes from the seed on purpose, which shows that it is one.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from ownview import FedEASE
from ownview.deploy.coordinator import Coordinator
from ownview.deploy.envelopes.envelope import Envelope, Kind
from ownview.deploy.place import Place
from ownview.federation.options import FederationOptions
from ownview.messages.upload import Upload
from ownview.testing.worlds import federation, small_world
from tests.deploy.in_process import InProcess
from tests.deploy.world import ITEMS, QUICK, agreement, write_homes
from tests.security.backwards import noise_of, stream_behind

_UNRATED = 40
"""Items of the catalogue that nobody has rated."""
_MANY = 120
"""Items of a world in which nobody has most of them."""


def _coordinator(tmp_path: Path, privacy: str) -> tuple[Coordinator, list[Envelope]]:
    """Over one place of five users, and all that the place answers."""
    home = write_homes(tmp_path, ("north",), users=5)["north"]
    place, heard = Place(home), list[Envelope]()

    class Heard:
        def answer(self, message: bytes) -> bytes:
            answer = place.answer(message)
            heard.append(Envelope.unpack(answer))
            return answer

    options = FederationOptions(privacy=privacy).for_rounds(2)
    items = tuple(f"i{k}" for k in range(ITEMS + _UNRATED))
    agreed = replace(agreement("fedease", room=5), federation=options, items=items)
    return Coordinator(agreed, InProcess({"north": Heard()}), tmp_path / "server", QUICK), heard


def _scale(coordinator: Coordinator) -> float:
    plan = coordinator.terms.world.protection
    assert plan is not None
    return plan.of_changes(1) * plan.clip


def test_a_place_s_uploads_do_not_give_its_users_away(tmp_path: Path) -> None:
    coordinator, heard = _coordinator(tmp_path, "local:epsilon=1")
    coordinator.round(1)
    work = next(one for one in heard if one.kind is Kind.WORK)
    for client, part in enumerate(work.parts[:2]):
        sent = coordinator.terms.codec.read_upload(part, client).written_out()["popular"]
        assert stream_behind(sent[0].double().numpy(), _scale(coordinator)) is None


def test_a_coordinator_s_sums_do_not_come_back_without_their_noise(tmp_path: Path) -> None:
    coordinator, _ = _coordinator(tmp_path, "central:epsilon=1")
    coordinator.round(1)
    published = coordinator.server.shared["popular"].double().numpy()
    assert stream_behind(published, _scale(coordinator), rest=5.0) is None


def test_the_attack_works_on_noise_from_the_seed_that_has_no_epsilon() -> None:
    """`gaussian:` repeats a paper's noise and says of itself that it is not private: its user's items come out."""
    options = FederationOptions(privacy="gaussian:clip=1,noise=4")
    one = federation(FedEASE(), small_world(num_users=3, num_items=_MANY), options=options)
    uploads: dict[int, torch.Tensor] = {}

    def take(upload: Upload) -> None:
        for client, pairs in zip(upload.clients.tolist(), upload.written_out()["pairs"], strict=True):
            uploads[client] = pairs.clone()

    one.server.take = take  # type: ignore[method-assign]
    one.round(1)
    for client, pairs in uploads.items():
        noisy = pairs.double().flatten().numpy()
        stream = stream_behind(noisy, 4.0)
        assert stream is not None
        left = np.abs(noisy - noise_of(stream, len(noisy), 4.0)).reshape(pairs.shape) > 1e-6
        assert set(np.flatnonzero(left.any(0)).tolist()) == set(one.split.train.of(client).tolist())
