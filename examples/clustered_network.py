"""Clustered federated learning: clients of one cluster share one scoring network, all share the item table.

The server clusters the user vectors that clients report, and has for each client the mean network of its cluster.

Run it:   ownview run examples/clustered_network.py --rounds 20 --set clusters=3
"""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

import ownview as ov

SMALL = ov.Normal(0.1)


@dataclass(frozen=True)
class ClusteredNetwork(ov.Method):
    """score = v . relu(W (u * q_i)) + u . q_i, W and v the cluster's."""

    name: ClassVar[str] = "clustered-network"
    summary: ClassVar[str] = "one network a cluster of users, clusters by reported user vectors"
    paper: ClassVar[str] = "Ghosh et al. 2020, Luo et al. 2022 (clusters); an example"

    size: int = ov.setting(16, "length of vectors", low=1)
    clusters: int = ov.setting(3, "of users", low=1)
    learning_rate: float = ov.setting(0.03, "Adam's rate", above=0)

    def params(self, world: ov.World) -> dict[str, ov.Param]:
        """Two layers of the client's own, and beside each what the server has for it."""
        return {
            "user": ov.reported(self.size, initial=SMALL),
            "items": ov.table(ov.shared(self.size, initial=SMALL)),
            "hidden": ov.personal(self.size, 8, received_as="hidden of cluster", initial=SMALL, rows=False),
            "output": ov.personal(8, received_as="output of cluster", initial=SMALL, rows=False),
        }

    def phases(self, world: ov.World) -> tuple[ov.Phase, ...]:
        """A round begins with the cluster's network."""
        step = ov.Step(("user", "items", "hidden", "output"), ov.Adam(self.learning_rate))
        return (ov.Phase((step,), self.local_epochs, opening=self.received),)

    def received(self, p: ov.Params, context: ov.Context) -> ov.Params:
        """Both layers as they were received."""
        return {name: p[f"{name} of cluster"] for name in ("hidden", "output")}

    def scores(self, p: ov.Params) -> Tensor:
        """[R] one score for every row at hand."""
        both = p["items"] * p["user"]
        return torch.relu(both @ p["hidden"]) @ p["output"] + both.sum(-1)

    def server(self, world: ov.World) -> ov.Server:
        """The mean of each cluster, for both layers alike."""
        return ov.Server(mixing=ov.ClusterMean("user", self.clusters))
