"""A federated method: settings, and the two halves that follow from them.

Most methods are a `Method`, whose clients train: write `params`, `phases` and `scores` for one client. A method whose
clients send statistics is a `ReportingMethod`. Code that runs, weighs, checks or ships a method sees the two halves
alone.

Tables in `p` hold the rows at hand, not all items, and where clients are stacked, padding rows too. A penalty on rows
must therefore weigh them by `batch.counts`, which is 0 for rows that are not in the batch.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor
from torch.nn.functional import softplus

from ownview.config.search import Between, OneOf
from ownview.config.settings import Settings, Value, setting
from ownview.seam.client import Client, Reporting, Summand, Summands, Training
from ownview.seam.memory import Memory
from ownview.seam.portable import Portable, Refusal
from ownview.seam.roles import Param
from ownview.seam.server import Arrived, Server
from ownview.seam.training import Batch, Context, Params, Phase, World


@dataclass(frozen=True)
class Federated(Settings):
    """A federated recommender. Settings are the dataclass's fields."""

    name: ClassVar[str]
    summary: ClassVar[str]
    paper: ClassVar[str] = "none"
    federated: ClassVar[bool] = True
    speaks_of_new: ClassVar[bool] = False
    """Whether clients score items without interactions by themselves; for all others text carries scores to them."""
    enough: ClassVar[int | None] = None
    """Rounds after which nothing changes any more if everybody takes part; None where every round matters."""
    releases: ClassVar[tuple[float, ...]] = ()
    """Under an accounted budget, where the method has a form of its own for it: the share of the budget (in mu^2) that
    each of its rounds takes. What its clients send then has norm 1 at most."""

    @abstractmethod
    def client(self, world: World) -> Client:
        """The client's half."""

    def notes(self, world: World) -> tuple[str, ...]:
        """Warnings to print with results, such as parts of the method that such data cannot use."""
        return ()

    def smaller(self) -> Mapping[str, Value]:
        """Settings of a form that takes less memory, for data that this one does not fit; empty where there is none."""
        return {}

    def server(self, world: World) -> Server:
        """The server's half; the mean of changes by samples unless a method says otherwise."""
        return Server()

    def portable(self, received: Params, world: World) -> Portable:
        """Its scores as a function of a history and the model alone; a refusal unless a method overrides it.

        Args:
            received: the first download of a new client; tables are whole.
            world: of the data.
        """
        return Refusal()


@dataclass(frozen=True)
class Method(Federated):
    """A method whose clients train and send what training changed."""

    pairs: ClassVar[bool] = False
    """Whether batches say which positive each negative was drawn for (`Batch.partners`)."""
    negatives: int = setting(
        4, "negatives drawn for every positive, anew each round", low=1, high=100, search=Between(1, 10)
    )
    batch_size: int = setting(256, "samples in a batch", low=1)
    local_epochs: int = setting(10, "passes over the client's samples in a round", low=1, search=OneOf((1, 2, 5, 10)))

    @abstractmethod
    def params(self, world: World) -> dict[str, Param]:
        """What a client has, by name and role."""

    @abstractmethod
    def phases(self, world: World) -> tuple[Phase, ...]:
        """What local training does, in order."""

    @abstractmethod
    def scores(self, p: Params) -> Tensor:
        """[R] the score (logit) of every row at hand: touched rows in training, candidates in ranking."""

    def loss(self, p: Params, batch: Batch, context: Context) -> Tensor:
        """[] mean over the batch; binary cross-entropy unless a method says otherwise."""
        return cross_entropy(self.scores(p), batch)

    def by_round(self, number: int) -> Mapping[str, float]:
        """Numbers that depend on the round, by name; a loss reads them from `context.numbers`."""
        return {}

    def readings(self, p: Params) -> Params:
        """Diagnostics of a watched client; `p` has whole tables [m, ...]."""
        return {}

    def client(self, world: World) -> Client:
        """The client's half, from what is written for one client."""
        work = Training(self.phases(world), self.loss, self.negatives, self.batch_size, self.pairs, self.by_round)
        return Client(self.params(world), work, self.scores, readings=self.readings)


@dataclass(frozen=True)
class ReportingMethod(Federated):
    """A method whose clients send statistics, of which the server sees sums over clients.

    Where the sums are all that a central model needs, the federated model IS the central one.
    """

    @abstractmethod
    def params(self, world: World) -> dict[str, Param]:
        """Parameters of client and server, by name and role: history, private, received and held."""

    @abstractmethod
    def sends(self, world: World) -> dict[str, Summand]:
        """What leaves a client, by name."""

    @abstractmethod
    def report(self, p: Params, batch: Batch, context: Context) -> tuple[Summands, Params]:
        """What the client sends in this round, and new values for some of its own; tables are whole."""

    @abstractmethod
    def combine(self, sums: Params, values: Params, arrived: Arrived) -> Params:
        """New values for some of the server's, received or held, from the sums over the clients that took part."""

    @abstractmethod
    def scores(self, p: Params) -> Tensor:
        """[m] the client's score of every item; tables are whole."""

    def memory(self, world: World) -> Memory:
        """Numbers held by a client and by the server beyond parameters and sums."""
        return Memory(client=4 * world.num_items)

    def reporting(self, world: World) -> Reporting:
        """The client's work; a method that needs more than its report adds it here."""
        return Reporting(self.sends(world), self.report, working=self.memory(world).client)

    def client(self, world: World) -> Client:
        """The client's half, from what is written for one client."""
        return Client(self.params(world), self.reporting(world), self.scores, whole_rows=True)

    def server(self, world: World) -> Server:
        """Sums, and what follows from them."""
        return Server(self.memory(world).sums(self.combine))


def cross_entropy(scores: Tensor, batch: Batch) -> Tensor:
    """[] mean over the batch's samples of -y log s(x) - (1 - y) log(1 - s(x)), s the logistic function.

    Written over rows, not samples: a row that stands c times in the batch, y times as a positive, contributes
    c softplus(x) - y x. No gather, hence no scatter in the backward pass: faster, and the same on every run.
    """
    total = (batch.counts * softplus(scores) - batch.positives * scores).sum()
    return total / batch.mask.sum()
