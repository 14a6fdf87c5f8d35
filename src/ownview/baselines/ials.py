"""iALS: matrix factorisation of all pairs, observed or not, by alternating least squares; irspack's.

Hu, Koren and Volinsky, "Collaborative Filtering for Implicit Feedback Datasets", ICDM 2008, with the loss and the
regularisation of Rendle, Krichene, Zhang and Koren, "Revisiting the Performance of iALS on Item Recommendation
Benchmarks", RecSys 2022.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from ownview.baselines.parts.central import Asked, OneShot
from ownview.baselines.parts.packages import one_thread, package, package_seed, training_matrix
from ownview.config.search import Between, OneOf
from ownview.config.settings import setting
from ownview.data.ragged import Ragged
from ownview.data.splitting.splits import Split
from ownview.seam.portable import Factors, Portable, Ridge
from ownview.seam.training import Params


@dataclass(frozen=True)
class IALS(OneShot):
    """score = u . q_i, close to 1 for training pairs and, with less weight, to 0 for all.

    The vectors minimise, over the training pairs S and over all pairs,
    sum over S of (u . q - 1)^2 / 2 + unobserved / 2 sum over all of (u . q)^2
    + strength / 2 (sum of |u|^2 (N_u + unobserved m)^nu + sum of |q|^2 (N_i + unobserved n)^nu),
    N_u and N_i counting training pairs. No negatives are drawn, so a protocol's exclusions do not matter.
    """

    name: ClassVar[str] = "ials"
    title: ClassVar[str] = "iALS"
    summary: ClassVar[str] = "matrix factorisation of all pairs by alternating least squares"
    paper: ClassVar[str] = "Hu et al., ICDM 2008; Rendle et al., RecSys 2022"
    by_history: ClassVar[bool] = True

    embedding_size: int = setting(64, "length of user and item vectors", low=1, search=OneOf((16, 32, 64, 128)))
    unobserved: float = setting(
        1.0,
        "weight of a pair that is not observed; one that is has 1 more",
        above=0,
        search=Between(0.03, 3.0, log=True),
    )
    strength: float = setting(0.003, "of the penalty on vectors", above=0, search=Between(1e-4, 0.1, log=True))
    nu: float = setting(1.0, "how the penalty grows with a user's or item's number of pairs", low=0)
    epochs: int = setting(16, "passes over users and items", low=1, search=Between(5, 30))
    steps: int = setting(3, "of conjugate gradients for a vector in a pass", low=1)

    def require_packages(self) -> None:
        """The package must be there."""
        package("irspack", self.name)

    def fit(self, split: Split, excluded: Ragged, seed: int) -> Params:
        """Both tables."""
        made = package("irspack", self.name).IALSRecommender(
            training_matrix(split),
            n_components=self.embedding_size,
            alpha0=self.unobserved,
            reg=self.strength,
            nu=self.nu,
            max_cg_steps=self.steps,
            train_epochs=self.epochs,
            random_seed=package_seed(seed, self.name),
            n_threads=1,
        )
        with one_thread():
            made.start_learning()  # not learn(), which draws a progress bar
            for _ in range(self.epochs):
                made.run_epoch()
        users, items = made.get_user_embedding(), made.get_item_embedding()
        return {"users": torch.from_numpy(users.copy()), "items": torch.from_numpy(items.copy())}

    def scores(self, learned: Params, asked: Asked) -> Tensor:
        """[B, m] u . q_i; u is solved anew for known items other than the training items, and for new users."""
        items = learned["items"]
        return (learned["users"][asked.users] if asked.as_trained else self._solved(items, asked)) @ items.T

    def portable(self, learned: Params) -> Portable:
        """Item vectors; a device solves its own user vector, as for a new user."""
        a, items = self.unobserved, learned["items"]
        solved = Ridge(seen=1.0, every=a, target=1.0, ridge=self.strength, count=a * len(items), exponent=self.nu)
        return Factors(items, solved)

    def _solved(self, items: Tensor, asked: Asked) -> Tensor:
        """[B, d] the vector that minimises the user's part of the loss, the items as they were learnt."""
        history = asked.history(len(items), items)
        weight = self.strength * (history.sum(1) + self.unobserved * len(items)) ** self.nu
        every = torch.diag_embed(weight[:, None].expand(-1, items.shape[1])) + self.unobserved * items.T @ items
        squares = (items[:, :, None] * items[:, None, :]).flatten(1)
        gram = every + (history @ squares).reshape(-1, items.shape[1], items.shape[1])
        vectors: Tensor = torch.linalg.solve(gram, history @ items)
        return vectors
