"""Which engine trains a block of clients."""

from __future__ import annotations

from typing import Protocol

from torch import Tensor

from ownview.data.interactions import IdArray
from ownview.engine.local import Opened
from ownview.engine.loop import LoopEngine
from ownview.engine.machine import Machine
from ownview.engine.replay import Recorder
from ownview.engine.samples import Samples
from ownview.engine.vector import VectorEngine
from ownview.seam.client import Client
from ownview.seam.training import Context, Params, Phase


class Engine(Protocol):
    """Trains a stack of clients."""

    phases: tuple[Phase, ...]
    recorder: Recorder

    def train(
        self, params: Params, samples: Samples, context: Context, tables: frozenset[str]
    ) -> tuple[Tensor, tuple[Opened, ...]]:
        """Train `params` in place; returns every client's mean loss and the openings of phases."""


def engine(
    client: Client, name: str, seed: int, machine: Machine, users: IdArray, *, preparing: bool = False
) -> Engine:
    """The engine that the machine's settings name.

    Args:
        client: the method's.
        name: of the method, for errors.
        seed: of the run.
        machine: where it runs.
        users: whose clients they are, by position, for errors.
        preparing: whether it runs what clients do before they predict, or a round's work.
    """
    if machine.engine == "loop":
        return LoopEngine(client, name, seed, machine.device, users, preparing=preparing)
    return VectorEngine(client, name, seed, machine.device, preparing=preparing)
