"""Checks of models that are not federated. Each runs the model for real and raises `AssertionError`."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch

from ownview.baselines.central import Central
from ownview.testing.learning import central_learns
from ownview.testing.shared_checks import (
    Say,
    at_work,
    experiment_round_trips,
    repeats_exactly,
    resumes_exactly,
    rounds_of,
    run_checks,
    scores_of,
    trained,
)
from ownview.testing.worlds import small_world

CentralCheck = Callable[[Central], None]


def conform_central(model: Central, say: Say = print) -> None:
    """Run every check, saying what is checked as it goes."""
    run_checks(model, CENTRAL_CHECKS, say)


def scores_are_numbers(model: Central) -> None:
    """[B, m] finite scores, which do not depend on who else is asked about."""
    split = small_world()
    one = trained(at_work(model, split), 1, rounds_of(model, 2))
    every = scores_of(one, split)
    assert every.shape == (split.num_users, split.num_items), f"scores have shape {tuple(every.shape)}"
    assert bool(torch.isfinite(every).all()), "some scores are not finite"
    some, scorer = torch.tensor([5, 2]), one.asked(split.test)
    # Single precision: sums of up to 60 products, in whatever order the matrix product takes them.
    difference = float((scorer.scores(some, None) - every[some]).abs().max()) / max(1.0, float(every.abs().max()))
    assert difference <= 1e-5, f"scores of a user change by {difference:.1e} with who else is asked about"
    chosen = torch.tensor([[3, 0], [1, 1]])
    both = scorer.scores(some, chosen), scorer.scores(some, None).gather(1, chosen)
    assert torch.equal(*both), "chosen items score others"


CENTRAL_CHECKS: Mapping[str, CentralCheck] = {
    "scores are numbers": scores_are_numbers,
    "repeats exactly": repeats_exactly,
    "resumes exactly": resumes_exactly,
    "experiment round-trips": experiment_round_trips,
    "learns": central_learns,
}
