"""FedNCF: federated neural collaborative filtering, a shared network over user and item vector.

Perifanis and Efraimidis, "Federated Neural Collaborative Filtering", Knowledge-Based Systems 2022.
Settings as PFedCLR's and FedEM's papers run it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from ownview.config.search import Between, OneOf
from ownview.config.settings import setting
from ownview.parts.network import Network
from ownview.seam.method import Method
from ownview.seam.roles import SHARED, Param, private, shared, table
from ownview.seam.training import Params, Phase, World


@dataclass(frozen=True)
class FedNCF(Method):
    """score = MLP([u, q_i]), ReLU inside, with a private user vector u; the item table and the MLP are shared.

    Everything is trained together. The default network is 2d-d-d/2-d/4-1.
    """

    name: ClassVar[str] = "fedncf"
    title: ClassVar[str] = "FedNCF"
    summary: ClassVar[str] = "private user vector; item table and a network over both shared"
    paper: ClassVar[str] = "Perifanis and Efraimidis 2022"

    embedding_size: int = setting(16, "d, length of user and item vectors", low=4, search=OneOf((8, 16, 32, 64)))
    hidden_layers: tuple[int, ...] = setting((), "widths of hidden layers; none given: d, d/2, d/4", low=1)
    optimizer: str = setting("adam", "of everything", choices=("adam", "sgd"))
    learning_rate: float = setting(0.01, "the optimiser's rate", above=0, search=Between(1e-4, 0.1, log=True))
    rate_factor: float = setting(
        80.0,
        "SGD's rates: of the user vector learning_rate times this, of the table also times the number of items",
        above=0,
    )

    @property
    def network(self) -> Network:
        """MLP([u, q_i]), which makes the score."""
        size = self.embedding_size
        return Network(size, self.hidden_layers or (size, size // 2, size // 4))

    def params(self, world: World) -> dict[str, Param]:
        """A private user vector; the item table and the network are shared."""
        size = self.embedding_size
        return {"user": private(size), "items": table(shared(size)), **self.network.params(SHARED)}

    def phases(self, world: World) -> tuple[Phase, ...]:
        """Everything moves together."""
        step = self.network.step(self.optimizer, self.learning_rate, self.rate_factor, world.num_items)
        return (Phase((step,), self.local_epochs),)

    def scores(self, p: Params) -> Tensor:
        """[R] MLP([u, q_i])."""
        return self.network.scores(p)
