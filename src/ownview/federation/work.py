"""A block's work in a round, training or reporting: draw samples, work, store, send."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from torch import Tensor

from ownview.data.interactions import IdArray
from ownview.data.ragged import Ragged
from ownview.engine.machine import Machine
from ownview.federation.clients import Clients
from ownview.messages.download import Download
from ownview.messages.upload import Upload
from ownview.seam.client import Client
from ownview.seam.training import World


@dataclass(frozen=True, eq=False)
class Household:
    """Clients with their data and machine: everything that their work reads.

    Args:
        name: of the method, for errors.
        client: the method's.
        clients: their values.
        world: number of clients and items.
        train: their training items.
        excluded: items of each that are never drawn as training negatives.
        users: whose clients they are, by position, for errors.
        seed: of the run.
        machine: where they run.
        everybody_sends: whether a client without samples sends too, so that an upload reveals nothing.
    """

    name: str
    client: Client
    clients: Clients
    world: World
    train: Ragged
    excluded: Ragged
    users: IdArray
    seed: int
    machine: Machine
    everybody_sends: bool = False


class Work(Protocol):
    """The work of some clients; `federation.training` and `federation.reporting` are the two kinds."""

    home: Household

    def blocks(self, clients: Tensor) -> Sequence[Tensor]:
        """Positions of clients that work side by side."""

    def samples(self, number: int, block: Tensor) -> Any:
        """Samples of a block for round `number`."""

    def waves(self, blocks: Sequence[Tensor]) -> Sequence[Sequence[Tensor]]:
        """Blocks that are drawn together and work together."""

    def draw(self, number: int, wave: Sequence[Tensor]) -> Sequence[Any]:
        """Samples of the blocks of a wave for round `number`."""

    def do_all(self, drawn: Sequence[Any], downloads: Sequence[Download]) -> Sequence[Upload]:
        """`do` for all blocks of a wave."""

    def do(self, samples: Any, download: Download) -> Upload:
        """Work on a block's samples and store private values; returns uploads."""

    def loss(self, number: int) -> float | None:
        """The mean loss of all clients that worked since the last call, None where there is none.

        Raises `TrainingError` where something is not finite.
        """

    def rehearsal(self, clients: Tensor, number: int, download: Download) -> Callable[[], object]:
        """One client's work in a round as a device does it, ready to run; nothing is kept."""

    def after_round(self, download: Download, clients: Tensor) -> None:
        """Work after the server has combined."""
