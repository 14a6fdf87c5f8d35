"""Scenes to attack, and what exact accounting says of Gaussian noise."""

from __future__ import annotations

import math
from functools import cache

import torch
from scipy.optimize import brentq
from scipy.stats import norm

from ownview.attacks.view import Scene
from ownview.data.splitting.splits import Split
from ownview.engine.machine import Machine
from ownview.federation.options import FederationOptions
from ownview.registry import METHODS
from ownview.seam.method import Federated
from ownview.testing.worlds import small_world

DELTA = 1e-5


@cache
def sparse_world() -> Split:
    """30 users who have a few of 400 items each: what others have says little of one's own."""
    return small_world(num_users=30, num_items=400)


def scene(method: str | Federated, split: Split | None = None, seed: int = 0, **options: str) -> Scene:
    """A method on a small world, with options of the federation."""
    world = split or sparse_world()
    model = METHODS[method]() if isinstance(method, str) else method
    machine = Machine(torch.device("cpu"))
    return Scene(model, world, world.training_items(), FederationOptions(**options), seed, machine)  # type: ignore[arg-type]


def noise_for(epsilon: float, delta: float = DELTA) -> float:
    """Noise over clip of one release whose epsilon is exactly this (Balle and Wang 2018, theorem 8).

    delta(epsilon) = F(mu / 2 - epsilon / mu) - e^epsilon F(-mu / 2 - epsilon / mu), mu = clip / noise.
    """

    def excess(mu: float) -> float:
        ratio = epsilon / mu
        return float(norm.cdf(mu / 2 - ratio) - math.exp(epsilon) * norm.cdf(-mu / 2 - ratio)) - delta

    return float(1 / brentq(excess, 0.05, 20))
