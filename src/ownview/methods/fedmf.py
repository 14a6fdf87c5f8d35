"""FedMF: federated matrix factorisation, the backbone of the field.

Chai, Wang, Chen and Yang, "Secure Federated Matrix Factorization", IEEE Intelligent Systems 2020.
Settings as PFedCLR's and FedEM's papers run it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from ownview.initial import Normal
from ownview.method import Method
from ownview.optimizers import Adam
from ownview.settings import setting
from ownview.types import Param, Params, Phase, Step, World


@dataclass(frozen=True)
class FedMF(Method):
    """score = u . q_i with a private user vector u and a shared item table Q, trained together."""

    name: ClassVar[str] = "fedmf"
    title: ClassVar[str] = "FedMF"
    summary: ClassVar[str] = "matrix factorisation: private user vector, shared item table"
    paper: ClassVar[str] = "Chai et al. 2020"

    embedding_size: int = setting(16, "length of user and item vectors", low=1)
    learning_rate: float = setting(0.01, "Adam's rate for user vector and item table", above=0)
    initial_scale: float = setting(1.0, "standard deviation of the initial values", low=0)

    def params(self, world: World) -> dict[str, Param]:
        """U private, Q shared."""
        initial = Normal(self.initial_scale)
        return {
            "user": Param((self.embedding_size,), initial=initial),
            "items": Param((self.embedding_size,), rows=True, shared=True, initial=initial),
        }

    def phases(self, world: World) -> tuple[Phase, ...]:
        """Everything moves together."""
        return (Phase((Step(("user", "items"), Adam(self.learning_rate)),), self.local_epochs),)

    def scores(self, p: Params) -> Tensor:
        """[R] u . q_i."""
        return p["items"] @ p["user"]
