"""The canary audit never accuses a mechanism that keeps its word, and finds one that does not."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest
import torch

from ownview.attacks.canaries import SUM, UPLOAD, AuditSettings, LowerBound, audit, lower_bound, transformed
from ownview.attacks.guesses import Inapplicable
from ownview.attacks.suite import AttackSettings, Claim, audited, claim_of
from ownview.attacks.view import Scene
from ownview.round.federation import Federation
from tests.attacks.scenes import DELTA, noise_for, scene

_SMALL = AuditSettings(canaries=25, delta=DELTA)


def _scores(shift: float, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    random = torch.Generator().manual_seed(seed)
    draw = torch.randn(101_000, generator=random, dtype=torch.float64)
    return draw[:1000] + shift, draw[1000:]


@pytest.mark.parametrize("epsilon", [1.0, 4.0, 8.0])
def test_the_bound_is_below_the_truth_and_finds_noise_divided_by_4(epsilon: float) -> None:
    """Scores of a Gaussian release: in, they are shifted by clip / noise."""
    noise = noise_for(epsilon)
    for seed in range(5):
        kept = lower_bound(*_scores(1 / noise, seed), DELTA)
        quietly_less = lower_bound(*_scores(4 / noise, seed), DELTA)
        assert kept.epsilon <= epsilon < quietly_less.epsilon <= quietly_less.ceiling


@pytest.mark.parametrize("method", ["fedmf", "fedease"])
def test_uploads_with_noise_of_epsilon_8_are_not_accused_and_with_a_quarter_of_it_are(method: str) -> None:
    noise = noise_for(8)
    for seed in range(5 if method == "fedmf" else 1):
        kept = audit(scene(method, privacy=f"gaussian:clip=0.1,noise={noise:.5f}"), _SMALL, seed)
        less = audit(scene(method, privacy=f"gaussian:clip=0.1,noise={noise / 4:.5f}"), _SMALL, seed)
        assert isinstance(kept, LowerBound)
        assert isinstance(less, LowerBound)
        assert kept.epsilon <= 8 < less.epsilon


def test_what_is_not_protected_is_recognised_always() -> None:
    for sees in (_SMALL.sees, SUM):
        found = audit(scene("fedmf"), AuditSettings(canaries=15, sees=sees, releases=2), 0)
        assert isinstance(found, LowerBound)
        assert found.epsilon == pytest.approx(found.ceiling)


def test_who_sends_nothing_cannot_be_audited() -> None:
    assert isinstance(audit(scene("local-only"), _SMALL, 0), Inapplicable)


def test_directions_are_orthonormal() -> None:
    every = torch.stack([transformed(one) for one in torch.eye(16, dtype=torch.float64)])
    assert torch.allclose(every @ every.T, torch.eye(16, dtype=torch.float64))


def test_the_finding_says_what_was_claimed() -> None:
    assert claim_of("central:epsilon=8") == claim_of("distributed:epsilon=8") == Claim(SUM, 8.0)
    assert claim_of("local:epsilon=2.5,delta=1e-6") == Claim(UPLOAD, 2.5, 1e-6)
    found = audited(scene("fedmf"), AttackSettings(rounds=1, audit_seeds=1))
    assert found.succeeds
    assert "nothing is claimed" in found.sentence


class _Quiet(Scene):
    """The same with a quarter of the noise that its budget comes to, while it goes on claiming the budget."""

    def federation(self) -> Federation:
        one = super().federation()
        plan = one.terms.world.protection
        assert plan is not None
        less = replace(plan, noise=tuple(each / 4 for each in plan.noise))
        one.terms = replace(one.terms, world=replace(one.terms.world, protection=less))
        return one


@pytest.mark.parametrize(
    ("method", "privacy", "seeds"),
    [
        ("fedmf", "central:epsilon=8,clip=0.1,rounds=1,noise=seeded", 5),
        ("fedmf", "distributed:epsilon=8,clip=0.1,rounds=1,noise=seeded", 1),
        ("fedmf", "distributed:epsilon=8,clip=0.1,rounds=1,noise=seeded,groups=6", 1),  # every group's sum is opened
        ("fedease", "central:epsilon=8,noise=seeded", 2),
    ],
)
def test_budgets_are_kept_and_a_quarter_of_their_noise_is_found_out(method: str, privacy: str, seeds: int) -> None:
    honest = scene(method, privacy=privacy)
    quiet = _Quiet(**{one.name: getattr(honest, one.name) for one in fields(honest)})
    rounds = 2 if method == "fedease" else 1
    kept = audited(honest, AttackSettings(rounds=rounds, audit_seeds=seeds))
    assert kept.values["epsilon at least"] <= 8, kept.sentence
    assert not kept.succeeds
    broken = audited(quiet, AttackSettings(rounds=rounds, audit_seeds=1))
    assert broken.succeeds, broken.sentence
    assert "is not kept" in broken.sentence
