"""BPR: matrix factorisation that puts a user's items before others; implicit's.

Rendle, Freudenthaler, Gantner and Schmidt-Thieme, "BPR: Bayesian Personalized Ranking from Implicit Feedback",
UAI 2009.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from ownview.base.errors import TrainingError
from ownview.baselines.parts.central import Asked, OneShot
from ownview.baselines.parts.packages import one_thread, package, package_seed, training_matrix
from ownview.config.search import Between, OneOf
from ownview.config.settings import setting
from ownview.data.ragged import Ragged
from ownview.data.splitting.splits import Split
from ownview.seam.training import Params


@dataclass(frozen=True)
class BPR(OneShot):
    """score = u . q_i + b_i, by SGD on softplus(score of another item - score of a user's item) and a penalty.

    The package draws the other items itself, in proportion to their popularity, and skips those the user has in
    training: held-out items are drawn like any others, under every protocol.
    """

    name: ClassVar[str] = "bpr"
    title: ClassVar[str] = "BPR"
    summary: ClassVar[str] = "matrix factorisation that ranks pairs of items"
    paper: ClassVar[str] = "Rendle et al., UAI 2009"

    embedding_size: int = setting(64, "length of user and item vectors", low=1, search=OneOf((16, 32, 64, 128)))
    learning_rate: float = setting(0.01, "SGD's rate", above=0, search=Between(1e-3, 0.3, log=True))
    strength: float = setting(0.01, "of the penalty on what a step touches", low=0, search=Between(1e-4, 0.1, log=True))
    epochs: int = setting(100, "passes of as many draws as there are training pairs", low=1, search=Between(20, 200))

    def require_packages(self) -> None:
        """The package must be there."""
        package("implicit", self.name)

    def fit(self, split: Split, excluded: Ragged, seed: int) -> Params:
        """Both tables; the last of an item's values is its bias, and of a user's 1."""
        made = package("implicit.bpr", self.name).BayesianPersonalizedRanking(
            factors=self.embedding_size,
            learning_rate=self.learning_rate,
            regularization=self.strength,
            iterations=self.epochs,
            verify_negative_samples=True,
            num_threads=1,  # with several, threads overwrite each other's steps and no run is like another
            random_state=package_seed(seed, self.name),
            use_gpu=False,
        )
        try:
            with one_thread():
                made.fit(training_matrix(split).astype(np.float32), show_progress=False)
        except package("implicit.recommender_base", self.name).ModelFitError as error:
            raise TrainingError(
                f"{self.name} diverged ({error}); lower the settings learning_rate or strength"
            ) from error
        return {"users": torch.from_numpy(made.user_factors), "items": torch.from_numpy(made.item_factors)}

    def scores(self, learned: Params, asked: Asked) -> Tensor:
        """[B, m] u . q_i + b_i."""
        return learned["users"][asked.users] @ learned["items"].T
