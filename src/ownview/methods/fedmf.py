"""FedMF: federated matrix factorisation, the backbone of the field.

Chai, Wang, Chen and Yang, "Secure Federated Matrix Factorization", IEEE Intelligent Systems 2020.
Settings as PFedCLR's and FedEM's papers run it; PFedRec's and PLGC's papers run it with SGD.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from ownview.base.errors import SettingError
from ownview.config.search import Between, OneOf
from ownview.config.settings import setting
from ownview.parts.products import row_products
from ownview.seam.initial import Normal
from ownview.seam.method import Method, cross_entropy
from ownview.seam.optimizers import Adam, Optimizer, Sgd
from ownview.seam.portable import Factors, Logistic, Portable
from ownview.seam.roles import Param, private, shared, table
from ownview.seam.training import Batch, Context, Params, Phase, Step, World


@dataclass(frozen=True)
class FedMF(Method):
    """score = u . q_i with a private user vector u and a shared item table Q, trained together."""

    name: ClassVar[str] = "fedmf"
    title: ClassVar[str] = "FedMF"
    summary: ClassVar[str] = "matrix factorisation: private user vector, shared item table"
    paper: ClassVar[str] = "Chai et al. 2020"

    embedding_size: int = setting(16, "length of user and item vectors", low=1, search=OneOf((8, 16, 32, 64)))
    optimizer: str = setting("adam", "of user vector and item table", choices=("adam", "sgd"))
    learning_rate: float = setting(0.01, "the optimiser's rate", above=0, search=Between(1e-3, 0.3, log=True))
    table_rate: float = setting(0.0, "rate of the item table where it differs; 0 for the same", low=0)
    table_rate_factor: float = setting(
        0.0, "the table's rate is learning_rate * number of items * this factor; 0 for table_rate", low=0
    )
    step_decay: float = setting(1.0, "factor on SGD's rates after every batch of a round", above=0, high=1)
    round_decay: float = setting(1.0, "factor on SGD's rates after every round", above=0, high=1)
    initial_scale: float = setting(
        1.0, "standard deviation of the initial values", low=0, search=Between(0.01, 1.0, log=True)
    )
    regularization: float = setting(
        0.0, "weight of |u|^2 + |q_i|^2 in the loss of every sample", low=0, search=Between(1e-6, 0.1, log=True)
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.table_rate and self.table_rate_factor:
            raise SettingError(
                f"FedMF settings table_rate = {self.table_rate:g} and table_rate_factor = {self.table_rate_factor:g} "
                "both set the item table's rate; leave one of them at 0"
            )

    def params(self, world: World) -> dict[str, Param]:
        """A private user vector u and a shared item table Q."""
        size, initial = self.embedding_size, Normal(self.initial_scale)
        return {"user": private(size, initial=initial), "items": table(shared(size, initial=initial))}

    def phases(self, world: World) -> tuple[Phase, ...]:
        """Everything moves together, by one forward pass."""
        scaled = self.learning_rate * world.num_items * self.table_rate_factor
        items = Step(("items",), self._optimizer(scaled or self.table_rate or self.learning_rate))
        return (Phase((Step(("user",), self._optimizer(self.learning_rate), alongside=items),), self.local_epochs),)

    def _optimizer(self, rate: float) -> Optimizer:
        return Adam(rate) if self.optimizer == "adam" else Sgd(rate, self.step_decay, self.round_decay)

    def scores(self, p: Params) -> Tensor:
        """[R] u . q_i."""
        return p["items"] @ p["user"]

    def portable(self, received: Params, world: World) -> Portable:
        """The shared table; a new device fits its vector to it."""
        return Factors(received["items"], Logistic(self.negatives))

    def loss(self, p: Params, batch: Batch, context: Context) -> Tensor:
        """[] mean over the batch's samples of cross-entropy + regularization (|u|^2 + |q_i|^2).

        Rows that stand c times in the batch weigh c times; rows outside it are left alone.
        """
        plain = cross_entropy(row_products(p["items"], p["user"]), batch)
        if self.regularization == 0:
            return plain
        rows = (batch.counts * p["items"].square().sum(-1)).sum() / batch.mask.sum()
        return plain + self.regularization * (p["user"].square().sum() + rows)
