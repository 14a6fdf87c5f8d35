"""FedCIA: clients send how similar they find items, and fit their own tables to the mean of that.

Han et al., "FedCIA: Federated Collaborative Information Aggregation for Privacy-Preserving Recommendation", SIGIR 2025.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn.functional import softplus

from ownview.config.search import Between, OneOf
from ownview.config.settings import setting
from ownview.seam.client import Product, Reporting, Summand, Summands
from ownview.seam.initial import Normal
from ownview.seam.memory import Memory
from ownview.seam.method import ReportingMethod
from ownview.seam.optimizers import Adam
from ownview.seam.roles import Param, private, received, table
from ownview.seam.server import Arrived, Server
from ownview.seam.training import Batch, Context, Params, World


@dataclass(frozen=True)
class FedCIA(ReportingMethod):
    """score = u . v_i with a private user vector u and a private item table V.

    A round: u and V train on the client's samples; S = V V^T + Laplace(noise) leaves, m x m; the server takes the mean
    F of all S; then V takes `fit_steps` steps of SGD on |V V^T - F| (Frobenius) + decay / 2 |V|^2. V V^T does not
    change when V is turned, so clients need not agree on the axes of their tables.
    """

    name: ClassVar[str] = "fedcia"
    title: ClassVar[str] = "FedCIA"
    summary: ClassVar[str] = "private item tables, fitted to the mean of all clients' item similarities"
    paper: ClassVar[str] = "Han et al., SIGIR 2025"

    embedding_size: int = setting(16, "length of user and item vectors", low=1, search=OneOf((8, 16, 32, 64)))
    negatives: int = setting(
        4, "negatives drawn for every positive, anew each round", low=1, high=100, search=Between(1, 10)
    )
    local_epochs: int = setting(
        1, "steps of Adam on all the client's samples in a round", low=1, search=OneOf((1, 2, 5, 10))
    )
    learning_rate: float = setting(0.01, "Adam's rate at home", above=0, search=Between(1e-3, 0.3, log=True))
    loss: str = setting(
        "cross-entropy", "of a sample: of its score, or, as released, a square in every dimension",
        choices=("cross-entropy", "squares", "released"),
    )  # fmt: skip
    fit_steps: int = setting(100, "steps of SGD that fit V V^T to the mean", low=0)
    fit_rate: float = setting(0.1, "SGD's rate in the fit", above=0, search=Between(0.01, 1.0, log=True))
    decay: float = setting(
        1e-3, "weight of the squares of the vectors, at home and in the fit", low=0, search=Between(1e-5, 0.1, log=True)
    )
    noise: float = setting(1e-3, "scale of the Laplace noise on the similarities; 0 for none", low=0)
    initial_scale: float = setting(0.1, "standard deviation of the initial values", above=0)

    def params(self, world: World) -> dict[str, Param]:
        """A private user vector u and item table V; the mean F of all similarities goes to everybody."""
        m, d, start = world.num_items, self.embedding_size, Normal(self.initial_scale)
        return {
            "user": private(d, initial=start),
            "items": table(private(d, initial=start)),
            "similarities": received(m, m),
        }

    def sends(self, world: World) -> dict[str, Summand]:
        """S, m x m."""
        what = "item-item similarity matrix of each client, m x m"
        return {"similarities": Summand((world.num_items, world.num_items), what, symmetric=True)}

    def reporting(self, world: World) -> Reporting:
        """Train, report, and fit once the mean is there."""
        return replace(
            super().reporting(world), negatives=self.negatives, prepare_download=self._axes, receives_after=True,
            after_round=self._fitted,
        )  # fmt: skip

    def memory(self, world: World) -> Memory:
        """Ten copies of the table at one client, as in every training by Adam; five m x m matrices to find axes."""
        m, d = world.num_items, self.embedding_size
        advice = "raise --memory, lower embedding_size, or take data with fewer items: similarities are items by items"
        return Memory(10 * m * d, 5 * m**2, advice)

    def server(self, world: World) -> Server:
        """The mean, with the method's own noise."""
        return Server(self.memory(world).sums(self.combine, f"laplace:{self.noise}" if self.noise else "none"))

    def report(self, p: Params, batch: Batch, context: Context) -> tuple[Summands, Params]:
        """Train at home, then send V V^T."""
        trained = self._trained({"user": p["user"], "items": p["items"]}, batch)
        sides = trained["items"].T
        return {"similarities": Product(sides, sides)}, trained

    def combine(self, sums: Params, values: Params, arrived: Arrived) -> Params:
        """The mean; of noise only the symmetric half could ever be fitted."""
        mean = sums["similarities"] / arrived.clients
        return {"similarities": (mean + mean.T) / 2}

    def _axes(self, received: Params) -> Params:
        """F = Q diag(w) Q^T: in the axes Q a step of the fit costs m d^2 instead of m^2 d."""
        strengths, axes = torch.linalg.eigh(received["similarities"].double())
        kind = received["similarities"].dtype
        return {"axes": axes.to(kind), "strengths": strengths.to(kind)}

    def _fitted(self, p: Params) -> Params:
        """Steps of SGD, here of T = Q^T V: T ((1 - rate decay) I - s T^T T) + s diag(w) T, s = 2 rate / |V V^T - F|."""
        axes, strengths = p["axes"], p["strengths"][:, None]
        turned, size = (p["items"].T @ axes).T, strengths.square().sum()
        shrunk = (1 - self.fit_rate * self.decay) * torch.eye(self.embedding_size).to(turned)
        for _ in range(self.fit_steps):
            pulled, square = strengths * turned, turned.T @ turned
            distance = square.square().sum() - 2 * (turned.T @ pulled).diagonal().sum() + size
            # Nearer than |F| / 1000 counts as that: rounding empties the difference, and V would be thrown to infinity.
            step = 2 * self.fit_rate / distance.clamp(min=1e-6 * size + 1e-12).sqrt()
            turned = turned @ (shrunk - step * square) + step * pulled
        return {"items": (turned.T @ axes.T).T}

    def scores(self, p: Params) -> Tensor:
        """[m] u . v_i."""
        return p["items"] @ p["user"]

    def _trained(self, values: Params, batch: Batch) -> Params:
        """Steps of Adam, which starts fresh in every round."""
        rule = Adam(self.learning_rate)
        factors = torch.tensor(rule.factors(self.local_epochs, 1), dtype=torch.float64).to(values["user"])
        state = {name: [x, torch.zeros_like(x), torch.zeros_like(x)] for name, x in values.items()}
        for step in range(self.local_epochs):
            gradient = torch.func.grad(self._loss)({name: one[0] for name, one in state.items()}, batch)
            state = {name: rule.moved(x, gradient[name], rest, factors[:, step]) for name, (x, *rest) in state.items()}
        return {name: one[0] for name, one in state.items()}

    def _loss(self, values: Params, batch: Batch) -> Tensor:
        """[] mean over samples; a row that stands c times in them, y times as a positive, counts so often."""
        user, items = values["user"], values["items"]
        counts, positives = batch.counts, batch.positives
        squares = user.square().sum() + (counts * items.square().sum(-1)).sum() / counts.sum()
        if self.loss == "released":
            scores, counts, positives = items * user, counts.unsqueeze(-1), positives.unsqueeze(-1)
        else:
            scores = items @ user
        if self.loss == "cross-entropy":
            total = counts * softplus(scores) - positives * scores
        else:
            total = counts * scores.square() - 2 * positives * scores + positives
        return total.sum() / (counts.sum() * total.numel() / total.shape[0]) + self.decay / 2 * squares
