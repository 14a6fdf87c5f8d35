"""An auditor who knows everything but the secret: data, settings, code and seed. What it shows stays below the claim.

Where it knows the secret too (`noise=seeded`, with the seed) it knows all noise, and shows as much as it could show.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

import ownview as ov
from ownview.attacks.canaries import SUM, UPLOAD, AuditSettings, LowerBound, audit, lower_bound
from ownview.deploy.places.home import Home, own_key
from ownview.federation.server import AggregationServer
from ownview.federation.terms import Terms
from ownview.messages.upload import Upload
from ownview.privacy.entropy import NoiseKey
from ownview.round.federation import Federation
from ownview.testing.worlds import small_world
from tests.attacks.scenes import DELTA, scene
from tests.shop import shop

_SURE = 1 - 1e-9
"""Of the bound: noise is new in every run, and no run may fail by chance."""
_RELEASES = 300


@pytest.mark.parametrize(
    ("method", "privacy", "sees"),
    [
        ("fedmf", "local:epsilon=4,clip=0.1,rounds=1", UPLOAD),
        ("fedmf", "central:epsilon=4,clip=0.1,rounds=1", SUM),
        ("fedmf", "distributed:epsilon=4,clip=0.1,rounds=1,masks=skipped", SUM),
        ("fedease", "central:epsilon=4", SUM),
    ],
)
def test_the_bound_stays_below_the_claim(method: str, privacy: str, sees: str) -> None:
    rounds = 2 if method == "fedease" else 1
    settings = AuditSettings(rounds=rounds, sees=sees, canaries=15, releases=3, delta=DELTA, confidence=_SURE)
    found = audit(scene(method, privacy=privacy), settings, 0)
    assert isinstance(found, LowerBound)
    assert found.epsilon <= 4 < found.ceiling


def _one_user(federation: Federation) -> Upload:
    """What a user really sends in the first round."""
    download = federation.server.download(1, torch.arange(1))
    return federation.work.do(federation.work.samples(1, torch.arange(1)), download).one(0)


def _scores(sent: Callable[[bool, int], torch.Tensor], direction: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """How much of what is released lies along what the user would add: with the user, and without."""
    return tuple(  # type: ignore[return-value]
        torch.stack([sent(there, k).double().flatten() @ direction for k in range(_RELEASES)])
        for there in (True, False)
    )


def _released_sum(terms: Terms, upload: Upload, noise: NoiseKey, *, there: bool) -> torch.Tensor:
    server = AggregationServer(terms, noise)
    total = server.begin(1)
    if there:
        total.add(terms.sent(upload, 1))
    server.protect(1, total)
    return total.sums["popular"].clone()


def _popular(upload: Upload) -> torch.Tensor:
    found: torch.Tensor = upload.written_out()["popular"][0].double().flatten()
    unit: torch.Tensor = found / found.norm()
    return unit


def test_a_fitted_model_s_sums_keep_its_claim() -> None:
    """The federation that `fit` trains, by its own settings; every release has a key of its own, as every fit has."""
    run = ov.fit(ov.FedEASE(), shop(), federation={"privacy": "central:epsilon=1"})
    federation = run.loaded().trainer.federation
    assert federation is not None
    upload, terms = _one_user(federation), federation.terms
    for seeded in (False, True):

        def sent(there: bool, k: int, seeded: bool = seeded) -> torch.Tensor:
            noise = NoiseKey.from_seed(k) if seeded else NoiseKey.fresh()
            found = _released_sum(terms, upload, noise, there=there)
            # Who knows the seed takes the noise off.
            return found - _released_sum(terms, upload, noise, there=False) if seeded else found

        bound = lower_bound(*_scores(sent, _popular(upload)), DELTA, _SURE)
        assert (bound.epsilon > 1) == seeded


def test_a_deployment_keeps_its_claim(tmp_path: Path) -> None:
    """A place's uploads under its own secret, message by message; a coordinator's sums under its own."""
    for name in ("home", "server"):
        (tmp_path / name).mkdir()
    home, split = Home(tmp_path / "home"), small_world(num_users=5)
    for mode in ("local", "central"):
        one = scene("fedease", split, privacy=f"{mode}:epsilon=1").federation()
        upload, terms = _one_user(one), one.terms

        def sent(there: bool, k: int, mode: str = mode, terms: Terms = terms, mine: Upload = upload) -> torch.Tensor:
            if mode == "local":
                noise = home.noise().derived(f"message {k} {there}")
                kept = mine if there else mine.scaled(torch.zeros(1, dtype=torch.float64))
                return terms.sent(kept, 1, None, noise).written_out()["popular"]
            noise = own_key(tmp_path / "server" / "secret").derived("round", k, str(there))
            return _released_sum(terms, mine, noise, there=there)

        bound = lower_bound(*_scores(sent, _popular(upload)), DELTA, _SURE)
        assert bound.epsilon <= 1 < bound.ceiling
