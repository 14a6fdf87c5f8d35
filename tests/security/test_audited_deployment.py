"""The canary audit of a deployment: rounds of messages over HTTPS, with an auditor who lacks the secrets and no more.

A real coordinator asks real places over loopback, with mutual TLS, masks where they were agreed on, and noise from the
secrets in their folders. One place has users whose uploads are canaries, orthogonal directions as long as the clip lets
through; everything behind that is what any place does. The auditor knows data, code, seed, agreement and canaries, and
what honest users send before noise, which it takes off. It looks at uploads as they arrive at the server (`local`), or
at what the server sends to places after a round (`central`, `distributed`), over all rounds that the budget is for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import torch
from torch import Tensor

from ownview.attacks.canaries import LowerBound, Space, lower_bound
from ownview.deploy.agreement import Agreement
from ownview.deploy.coordinator import Coordinator
from ownview.deploy.envelopes.envelope import Envelope, Kind
from ownview.deploy.https.server import HttpsTransport
from ownview.deploy.identities.keys import KnownKeys
from ownview.deploy.place import Place
from ownview.deploy.settings import CoordinatorSettings
from ownview.federation.options import FederationOptions
from ownview.messages.upload import Upload
from tests.attacks.scenes import DELTA
from tests.deploy.lines import PATIENCE, Running, enrolled, wait_for
from tests.deploy.world import write_homes

EPSILON, CLIP, ROUNDS = 4, 0.1, 2
CANARIES, HONEST, DEPLOYMENTS = 15, 5, 3
ITEMS = 600
PATIENT = CoordinatorSettings(resend=1.0, greeting=PATIENCE, deadline=PATIENCE)
SURE = 1 - 1e-9
"""Of the bound: noise is new in every run, and no run may fail by chance."""


class AuditedPlace(Place):
    """A place whose users send canaries, or, where it has none, whose uploads before noise the auditor knows."""

    known: list[Upload]
    space: Space | None = None
    canaries = False

    def _agree(self, agreement: Agreement) -> None:
        super()._agree(agreement)
        self.known, honest = [], self.terms.sent

        def sent(upload: Upload, *given: object) -> Upload:
            example = upload.spread(ITEMS)
            if self.space is None:
                self.space = Space.of(example, self.terms, seed=1)
            leaving = self.space.canary(int(upload.clients), 1e4 * CLIP, example) if self.canaries else upload
            self.known.append(leaving)
            return honest(leaving, *given)  # type: ignore[arg-type]

        object.__setattr__(self.terms, "sent", sent)


class CanaryPlace(AuditedPlace):
    canaries = True


@dataclass
class Overheard:
    """A coordinator's transport, and every answer that it receives."""

    line: HttpsTransport
    answers: list[tuple[str, Envelope]] = field(default_factory=list)

    def places(self) -> Sequence[str]:
        return self.line.places()

    def send(self, place: str, message: bytes) -> None:
        self.line.send(place, message)

    def receive(self, patience: float) -> list[tuple[str, bytes]]:
        came = self.line.receive(patience)
        self.answers += [(place, Envelope.unpack(answer)) for place, answer in came]
        return came

    def close(self) -> None:
        self.line.close()


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, KnownKeys]:
    return enrolled(tmp_path_factory.mktemp("certificates"), ("canaries", "north"))


def _agreement(privacy: str) -> Agreement:
    items = tuple(f"i{k}" for k in range(ITEMS))
    settings = {"embedding_size": 8, "local_epochs": 1}
    options = FederationOptions(privacy=privacy)
    options = options if "clip=" in privacy and "epsilon" not in privacy else options.for_rounds(ROUNDS)
    return Agreement("fedmf", CANARIES + HONEST, items, settings=settings, federation=options, precision="float64")


def _deployed(folder: Path, privacy: str, certificates: tuple[Path, KnownKeys]) -> tuple[Tensor, Tensor]:
    """Scores in and out of one deployment's rounds."""
    homes = write_homes(folder, ("canaries",), CANARIES) | write_homes(folder, ("north",), HONEST)
    places = {"canaries": CanaryPlace(homes["canaries"]), "north": AuditedPlace(homes["north"])}
    line = Overheard(HttpsTransport(("127.0.0.1", 0), *certificates))
    running = [Running(one, line.line.address, certificates[0], name) for name, one in places.items()]
    try:
        wait_for(lambda: list(line.places()) == sorted(places))
        coordinator = Coordinator(_agreement(privacy), line, folder / "server", PATIENT)
        scores, before = [], coordinator.terms.drawn("items")
        for number in range(1, ROUNDS + 1):
            coordinator.round(number)
            coordinator.share()
            assert all(place.newest.round == number for place in places.values())
            received = coordinator.terms.codec.read_download(places["north"].newest.download).values["items"]
            scores.append(
                _of_uploads(coordinator, line, places["canaries"], number)
                if privacy.startswith(("local", "gaussian"))
                else _of_sum((received - before) * (CANARIES + HONEST), places)
            )
            before = received
    finally:
        line.close()
        for one in running:
            one.end()
    assert {place for place, _ in line.answers} == set(places)
    # The noise of rounds is equally large, so that what they release counts the same.
    return tuple(torch.stack(part).sum(0).flatten() for part in zip(*scores, strict=True))  # type: ignore[return-value]


def _of_uploads(coordinator: Coordinator, line: Overheard, place: AuditedPlace, number: int) -> tuple[Tensor, Tensor]:
    """[K], [K, D - K] of every canary's own message along its direction, and along those of no canary."""
    assert place.space is not None
    asked = [one for name, one in line.answers if (name, one.kind, one.round) == ("canaries", Kind.WORK, number)]
    mine = coordinator.register.places["canaries"]
    uploads = [coordinator.terms.codec.read_upload(part, who) for part, who in zip(asked[-1].parts, mine, strict=True)]
    found = torch.stack([place.space.scores(one.spread(ITEMS).whole["items"]) for one in uploads])
    return found[torch.arange(len(mine)), torch.tensor(mine)], found[:, CANARIES + HONEST :]


def _of_sum(released: Tensor, places: dict[str, AuditedPlace]) -> tuple[Tensor, Tensor]:
    """[K], [D - K] of a sum along the directions of canaries, and along those of none."""
    space = places["canaries"].space
    assert space is not None
    for upload in places["north"].known:
        short = upload.scaled((CLIP / upload.norms()).clamp(max=1))
        released = released - short.spread(ITEMS).whole["items"][0]
    places["north"].known.clear()
    found, mine = space.scores(released), torch.tensor(places["canaries"].members.identities)
    return found[mine], found[CANARIES + HONEST :]


def _bound(folder: Path, privacy: str, certificates: tuple[Path, KnownKeys]) -> LowerBound:
    """Over several deployments, each with folders, and so with secrets, of its own."""
    found = [_deployed(folder / str(number), privacy, certificates) for number in range(DEPLOYMENTS)]
    inside, outside = (torch.cat(part) for part in zip(*found, strict=True))
    assert len(inside) == DEPLOYMENTS * CANARIES
    return lower_bound(inside, outside, DELTA, SURE)


@pytest.mark.parametrize("mode", ["local", "central", "distributed"])
def test_a_deployment_s_messages_keep_its_claim(
    mode: str, tmp_path: Path, certificates: tuple[Path, KnownKeys]
) -> None:
    privacy = f"{mode}:epsilon={EPSILON},delta={DELTA},clip={CLIP},rounds={ROUNDS}"
    bound = _bound(tmp_path, privacy, certificates)
    assert bound.epsilon <= EPSILON < bound.ceiling


@pytest.mark.parametrize("privacy", [f"gaussian:clip={CLIP},noise=0.1", f"masked:clip={CLIP}"])
def test_the_auditor_sees_a_claim_that_is_not_kept(
    privacy: str, tmp_path: Path, certificates: tuple[Path, KnownKeys]
) -> None:
    """With a tenth of the noise in uploads, or sums with none, the same audit shows more than was claimed above."""
    assert _bound(tmp_path, privacy, certificates).epsilon > EPSILON
