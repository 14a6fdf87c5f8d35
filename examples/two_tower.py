"""Two towers: a user tower of what a client knows of its user, an item tower of what is known of items.

Both towers are shared; features of items are public, those of users stay at home. New items are scored as any others.

Run it:   ownview run examples/two_tower.py --rounds 20 --protocol new-items
Test it:  python -c "from ownview.testing import conform; from examples.two_tower import TwoTower; conform(TwoTower())"
"""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

import ownview as ov


@dataclass(frozen=True)
class TwoTower(ov.Method):
    """score = (u + tanh(A g)) . (B f_i), f_i features of the item, g of the user where there are any, u private."""

    name: ClassVar[str] = "two-tower"
    title: ClassVar[str] = "TwoTower"
    summary: ClassVar[str] = "features of items and users, a tower each"
    paper: ClassVar[str] = "an example"
    speaks_of_new: ClassVar[bool] = True

    embedding_size: int = ov.setting(16, "length of what towers make", low=1)
    features: int = ov.setting(512, "features of items at most, those that most items have", low=1)
    learning_rate: float = ov.setting(0.01, "Adam's rate", above=0)

    def params(self, world: ov.World) -> dict[str, ov.Param]:
        """Features, two shared towers, and a vector of the client's own."""
        small, about = ov.Normal(0.1), ov.item_features(world, most=self.features)
        params = {
            "about": about,
            "item_tower": ov.shared(*about.shape, self.embedding_size, initial=small),
            "user": ov.private(self.embedding_size, initial=small),
        }
        if world.user_columns:
            params["person"] = ov.user_features(world, size=16)
            params["user_tower"] = ov.shared(16, self.embedding_size, initial=small)
        return params

    def phases(self, world: ov.World) -> tuple[ov.Phase, ...]:
        """Everything moves but features."""
        moving = tuple(name for name in self.params(world) if name not in ("about", "person"))
        return (ov.Phase((ov.Step(moving, ov.Adam(self.learning_rate)),), self.local_epochs),)

    def scores(self, p: ov.Params) -> Tensor:
        """[R] one score for every row at hand."""
        user = p["user"] + torch.tanh(p["person"] @ p["user_tower"]) if "person" in p else p["user"]
        return (p["about"] @ p["item_tower"]) @ user
