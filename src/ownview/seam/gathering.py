"""A federated method whose clients send statistics that the server adds up, written for one client.

It stands beside `Method`, whose clients send tables they have trained. Here a client works out summands from its own
history (`report`), the server sees nothing but their sums over clients (`combine`), and what comes of them goes back to
everybody. Where the sums are all that a central model needs, the federated model IS the central one.

Rules for `report`, `settle`, `scores` and `numbers_sent`: pure functions of their arguments; no `.item()`, no `if` on
tensor values; no randomness. Then the engine may run many clients at once. `combine` and `digest` are pure too.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from torch import Tensor

from ownview.config.settings import Settings
from ownview.seam.initial import Constant, Initial
from ownview.seam.training import Context, Params, World


class History(NamedTuple):
    """What one client knows: its own past.

    seen:      [m] 1 for items of its training part, else 0
    positives: [m] how often each item stands in this round's samples as a positive
    counts:    [m] how often it stands there at all, drawn negatives included

    Samples are drawn only for methods with `negatives_each` above 0, and only for training; else both are 0.
    """

    seen: Tensor
    positives: Tensor
    counts: Tensor


class Product(NamedTuple):
    """A summand [a, b] that is left^T right, with left [k, a] and right [k, b].

    Sums of products over clients are one product of stacked factors, so the engine writes a client's summand out only
    where something has to be done to it before it leaves.
    """

    left: Tensor
    right: Tensor


_ZERO = Constant(0.0)

Summands = Mapping[str, Tensor | Product]
"""What one client sends, by name."""


@dataclass(frozen=True)
class Value:
    """A value that the server or a client holds between rounds.

    Args:
        shape: of the whole.
        initial: what it starts from; every client starts from the same draw.
        down: (server) whether clients download it; else it never leaves the server.
    """

    shape: tuple[int, ...]
    initial: Initial = _ZERO
    down: bool = True


@dataclass(frozen=True)
class Summand:
    """What leaves a client: the ONLY way anything does.

    Args:
        shape: of the summand and of the sum; of products the shape left^T right is brought to.
        what: it is, in words for people who ask what leaves their device.
    """

    shape: tuple[int, ...]
    what: str


@dataclass(frozen=True)
class Arrived:
    """What the server knows of a round besides the sums.

    Args:
        round: from 1.
        clients: how many took part; at least one.
    """

    round: int
    clients: int


@dataclass(frozen=True)
class Gathering(Settings):
    """One client's side, and the server's, of a recommender that is learnt from sums."""

    name: ClassVar[str]
    summary: ClassVar[str]
    paper: ClassVar[str]
    federated: ClassVar[bool] = True
    enough: ClassVar[int | None] = None
    """Rounds after which nothing changes any more if everybody takes part; None where every round matters."""

    @abstractmethod
    def server(self, world: World) -> dict[str, Value]:
        """What the server holds between rounds, by name."""

    def own(self, world: World) -> dict[str, Value]:
        """What a client holds between rounds besides its history, by name; it never leaves."""
        return {}

    @abstractmethod
    def summands(self, world: World) -> dict[str, Summand]:
        """What leaves a client, by name."""

    @abstractmethod
    def report(self, history: History, own: Params, server: Params, context: Context) -> tuple[Summands, Params]:
        """What the client sends in this round, and new values for some of its own."""

    @abstractmethod
    def combine(self, sums: Params, server: Params, arrived: Arrived) -> Params:
        """New values for some of the server's, from the sums over the clients that took part."""

    def digest(self, server: Params) -> Params:
        """What clients make of the download before they look at anything of their own: the same for all of them.

        `report`, `settle` and `scores` get what this returns. On devices each client works it out; here it is done
        once a round.
        """
        return server

    def settle(self, own: Params, server: Params) -> Params:
        """New values of the client's own, now that the server has combined; asked of those that took part."""
        return {}

    @abstractmethod
    def scores(self, history: History, own: Params, server: Params) -> Tensor:
        """[m] the client's score of every item."""

    @property
    def negatives_each(self) -> int:
        """Negatives to draw for every positive of `History`; 0 for a method that needs no samples."""
        return 0

    @property
    def privacy(self) -> str:
        """Noise that belongs to the method, as federation setting `privacy` writes it; that setting replaces it."""
        return "none"

    def numbers_sent(self, history: History, own: Params) -> Params:
        """[] by name, how many numbers a summand takes on the way; one that is not named is sent whole.

        A summand that is 0 but at places that follow from the history need not be sent whole, unless noise is added.
        """
        return {}

    def working(self, world: World) -> int:
        """Numbers that one client's `report`, `settle` or `scores` holds at the same time, for the size of blocks."""
        return 4 * world.num_items

    def server_working(self, world: World) -> int:
        """Numbers of the run's precision that `combine` or `digest` holds besides the server's values and the sums."""
        return 0

    def advice(self) -> str:
        """What to do where the data does not fit in memory."""
        return "raise --memory or lower embedding_size"
