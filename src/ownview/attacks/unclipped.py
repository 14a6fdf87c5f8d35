"""Laplace noise without clipping: no epsilon holds for all users, but each upload has one of its own.

Noise of scale S on every number hides a change of absolute sum A with epsilon A / S and no less: that is the largest
ratio of densities with and without the change. Nothing bounds A, so a guarantee for all users does not exist; what a
round costs those who are watched can be read off their uploads before the noise.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from ownview.attacks.guesses import Inapplicable
from ownview.attacks.scoring import AttackFinding, without
from ownview.attacks.view import Scene, watch

NAME, SEES = "epsilon of laplace", "one upload"


def measured(scene: Scene, clients: Tensor) -> AttackFinding:
    """A / S of the first round's uploads of some clients; no other client takes part.

    Args:
        scene: whose privacy is laplace:SCALE.
        clients: [V] whose uploads are looked at.
    """
    scale = float(scene.options.privacy.partition(":")[2])
    bare = replace(scene, options=replace(scene.options, privacy="none"))
    view, _ = watch(bare, clients, 1, cohort=clients)
    if not view.evidence:
        return without(NAME, SEES, Inapplicable("clients send nothing"))
    each = torch.tensor([one.absolute for one in view.evidence], dtype=torch.float64) / scale
    low, middle, high = (float(one) for one in (each.min(), each.median(), each.max()))
    sentence = (
        f"nothing is clipped, so that no epsilon holds for everybody; one round costs the median of {len(each)} users "
        f"an epsilon of {middle:,.0f}, from {low:,.0f} to {high:,.0f}"
    )
    values = {"epsilon of the median user": middle, "least epsilon": low, "largest epsilon": high}
    return AttackFinding(NAME, SEES, True, middle > 1, sentence, {**values, "clients": float(len(each))})
