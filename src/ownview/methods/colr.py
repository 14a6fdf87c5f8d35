"""CoLR: clients upload a low-rank update of the item table, in a random basis that changes from round to round.

Nguyen et al., "Towards Efficient Communication and Secure Federated Recommendation System via Low-rank Training", WWW
2024. Settings as FedEM's paper runs it: rank 4, the rest as its FedMF.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from ownview.base.errors import SettingError
from ownview.config.search import Between, OneOf
from ownview.config.settings import setting
from ownview.seam.initial import Constant, Normal, Orthonormal
from ownview.seam.method import Method
from ownview.seam.optimizers import Adam
from ownview.seam.roles import Param, private, received, shared, table
from ownview.seam.server import Draw, Mean, Server
from ownview.seam.training import Params, Phase, Step, World


@dataclass(frozen=True)
class CoLR(Method):
    """score = u . (w_i + a_i B) with private u, shared W and B that no client moves, and A, zero at first, uploaded.

    A's row is averaged over the clients that touched it. Then the server merges, W <- W + A B, empties A, and draws
    another B: r orthogonal rows of length sqrt(d / r), so that B^T B is the identity on average.
    """

    name: ClassVar[str] = "colr"
    title: ClassVar[str] = "CoLR"
    summary: ClassVar[str] = "low-rank updates of the item table in a random basis of each round"
    paper: ClassVar[str] = "Nguyen et al., WWW 2024"

    embedding_size: int = setting(16, "length d of user and item vectors", low=1, search=OneOf((8, 16, 32, 64)))
    rank: int = setting(4, "rank r of an update, at most embedding_size", low=1)
    learning_rate: float = setting(
        0.01, "Adam's rate for user vector and update", above=0, search=Between(1e-3, 0.3, log=True)
    )
    initial_scale: float = setting(
        1.0, "standard deviation of initial user and item vectors", low=0, search=Between(0.01, 1.0, log=True)
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.rank > self.embedding_size:
            raise SettingError(
                f"colr: setting rank={self.rank}: there are no more than embedding_size={self.embedding_size} "
                f"orthogonal directions; expected at most {self.embedding_size}"
            )

    def server(self, world: World) -> Server:
        """Every client that touched a row counts once; then the server merges and begins anew."""
        return Server(Mean("uniform", "touched"), after=_merged)

    def params(self, world: World) -> dict[str, Param]:
        """A private user vector, the update A that clients share, and W and B, which only the server changes."""
        size, initial = self.embedding_size, Normal(self.initial_scale)
        return {
            "user": private(size, initial=initial),
            "items": table(received(size, initial=initial)),
            "update": table(shared(self.rank, initial=Constant(0.0))),
            "basis": received(self.rank, size, initial=Orthonormal(math.sqrt(size / self.rank))),
        }

    def phases(self, world: World) -> tuple[Phase, ...]:
        """User vector and update move together."""
        return (Phase((Step(("user", "update"), Adam(self.learning_rate)),), self.local_epochs),)

    def scores(self, p: Params) -> Tensor:
        """[R] u . (w_i + a_i B)."""
        return p["items"] @ p["user"] + p["update"] @ (p["basis"] @ p["user"])


def _merged(shared: Params, draw: Draw) -> Params:
    """W + A B, no A, and another B."""
    merged = shared["items"] + shared["update"] @ shared["basis"]
    return {"items": merged, "update": torch.zeros_like(shared["update"]), "basis": draw("basis")}
