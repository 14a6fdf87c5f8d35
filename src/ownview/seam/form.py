"""One of several forms of a method of sums: the same settings in one world, with a computation of its own."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from ownview.seam.client import Client, Reporting, Summand, Summands
from ownview.seam.honest_summands import Together
from ownview.seam.memory import Memory
from ownview.seam.portable import Portable
from ownview.seam.roles import Param
from ownview.seam.server import Arrived, Server
from ownview.seam.training import Batch, Context, Params, World


@dataclass(frozen=True)
class Form(ABC):
    """Both halves of a method whose clients send sums; each function is as in `ReportingMethod`.

    Args:
        world: numbers of clients and items, order in time, and the budget where there is one.
    """

    world: World
    receives_after: ClassVar[bool] = False
    """Whether clients receive after the server has combined: what they receive then serves predictions alone."""

    @abstractmethod
    def params(self) -> dict[str, Param]:
        """Parameters of client and server, by name and role."""

    @abstractmethod
    def sends(self) -> dict[str, Summand]:
        """What leaves a client, by name."""

    @abstractmethod
    def report(self, p: Params, batch: Batch, context: Context) -> tuple[Summands, Params]:
        """The client's summands of this round, and new values for some of its own."""

    @abstractmethod
    def combine(self, sums: Params, values: Params, arrived: Arrived) -> Params:
        """New values for some of the server's."""

    @abstractmethod
    def scores(self, p: Params) -> Tensor:
        """[m] the client's score of every item."""

    @abstractmethod
    def memory(self) -> Memory:
        """Numbers held by a client and by the server."""

    @abstractmethod
    def portable(self, received: Params) -> Portable:
        """The scores as a function of a history and received values alone."""

    def together(self) -> Together | None:
        """Joint bounds on the summands of one honest client, for servers that see them; None without."""
        return None

    def client(self) -> Client:
        """The client's half."""
        work = Reporting(
            self.sends(), self.report, receives_after=self.receives_after, working=self.memory().client,
            together=self.together(),
        )  # fmt: skip
        return Client(self.params(), work, self.scores, whole_rows=True)

    def server(self) -> Server:
        """The server's half."""
        return Server(self.memory().sums(self.combine))
