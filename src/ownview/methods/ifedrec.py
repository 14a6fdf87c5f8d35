"""IFedRec: items without any interaction get their vectors from a network over item attributes.

Zhang, Long, Zhou, Zhang, Yan and Yang, "When Federated Recommendation Meets Cold-Start Problem: Separating Item
Attributes and User Interactions", WWW 2024. The variant whose clients are those of PFedRec.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from ownview.config.search import Between, OneOf
from ownview.config.settings import setting
from ownview.parts.server_adam import adam_moved, moments
from ownview.seam.features import items_known, number_of_terms, terms_of
from ownview.seam.initial import Uniform
from ownview.seam.method import Method
from ownview.seam.optimizers import Sgd
from ownview.seam.roles import Param, held, private, shared, table
from ownview.seam.server import Draw, Mean, Server
from ownview.seam.training import Params, Phase, Step, World

_LAYERS = ("hidden_weight", "hidden_bias", "out_weight", "out_bias")


@dataclass(frozen=True)
class IFedRec(Method):
    """score = w_u . q_i + b_u, with a private w_u and b_u, and an item table q that is averaged.

    The server learns a network r = tanh(V relu(U a + c) + d) from attributes a of items to the averaged table of the
    taken items, by Adam on the mean squared error. It brings the table nearer to r before it sends it,
    q <- q + alpha (r - q), alpha = min(1, 2 penalty learning_rate table_rate_factor / embedding_size), and a new item
    has r itself for its row. Attributes are the terms of the items' text (`base.items.item_text`).
    """

    name: ClassVar[str] = "ifedrec"
    title: ClassVar[str] = "IFedRec"
    summary: ClassVar[str] = "PFedRec's clients; the server learns a network from attributes to vectors of new items"
    paper: ClassVar[str] = "Zhang et al., WWW 2024"
    speaks_of_new: ClassVar[bool] = True

    negatives: int = setting(5, "negatives drawn for every positive, anew each round", low=1, high=100)
    local_epochs: int = setting(1, "passes over the client's samples in a round", low=1)
    embedding_size: int = setting(200, "length of item vectors", low=1, search=OneOf((32, 64, 128, 200)))
    learning_rate: float = setting(
        0.1, "SGD's rate for the score function", above=0, search=Between(0.01, 1.0, log=True)
    )
    table_rate_factor: float = setting(
        80.0, "the table's rate is learning_rate * number of taken items * this factor",
        above=0, search=Between(1.0, 1000.0, log=True),
    )  # fmt: skip
    penalty: float = setting(
        10.0, "weight of the mean squared distance between a client's table and the network's output",
        low=0, search=Between(0.1, 20.0, log=True),
    )  # fmt: skip
    hidden_size: int = setting(300, "width of the network's hidden layer", low=1)
    server_rate: float = setting(0.005, "Adam's rate for the network", above=0, search=Between(5e-4, 0.02, log=True))
    server_epochs: int = setting(1, "steps of the network after a round", low=1, search=OneOf((1, 5, 20)))

    def params(self, world: World) -> dict[str, Param]:
        """A client has its score function and the item table; the server keeps the network and Adam's moments."""
        size, hidden, terms = self.embedding_size, self.hidden_size, number_of_terms(world)
        own, inside = Uniform(1 / math.sqrt(size)), Uniform(1 / math.sqrt(hidden))
        first = Uniform(1 / math.sqrt(max(terms, 1)))
        network = {
            "hidden_weight": held(terms, hidden, initial=first),
            "hidden_bias": held(hidden, initial=first),
            "out_weight": held(hidden, size, initial=inside),
            "out_bias": held(size, initial=inside),
        }
        client = {"weight": private(size, initial=own), "bias": private(initial=own), "items": table(shared(size))}
        return {**client, **network, **moments(network), "text": items_known(world)}

    def phases(self, world: World) -> tuple[Phase, ...]:
        """Score function, then table, on every batch."""
        rate = self.learning_rate * (world.num_items - world.num_new) * self.table_rate_factor
        steps = (Step(("weight", "bias"), Sgd(self.learning_rate)), Step(("items",), Sgd(rate)))
        return (Phase(steps, self.local_epochs),)

    def scores(self, p: Params) -> Tensor:
        """[R] w . q_i + b."""
        return p["items"] @ p["weight"] + p["bias"]

    def server(self, world: World) -> Server:
        """The plain mean of the tables, and then the network's turn."""
        pull = min(1.0, 2 * self.penalty * self.learning_rate * self.table_rate_factor / self.embedding_size)
        taken = world.num_items - world.num_new

        def after(values: Params, draw: Draw) -> Params:
            items, new = values["items"], {name: values[name] for name in values if name not in ("items", "text")}
            attributes, known = terms_of(world, items), items[:taken]
            for _ in range(self.server_epochs):
                new |= adam_moved(new, _gradient(new, attributes, known), self.server_rate)
            made = _network(new, attributes)
            return {**new, "items": torch.cat([known + pull * (made[: len(known)] - known), made[len(known) :]])}

        return Server(Mean("uniform"), after=after)


def _network(layers: Params, attributes: Tensor) -> Tensor:
    """[m, d] vectors of attributes [m, terms], which are sparse."""
    hidden = torch.relu(torch.sparse.mm(attributes, layers["hidden_weight"]) + layers["hidden_bias"])
    return torch.tanh(hidden @ layers["out_weight"] + layers["out_bias"])


def _gradient(values: Params, attributes: Tensor, target: Tensor) -> Params:
    """Gradient, by layer, of the mean squared distance between the network's vectors and `target`."""
    with torch.enable_grad():
        layers = {name: values[name].detach().clone().requires_grad_() for name in _LAYERS}
        loss = (_network(layers, attributes)[: len(target)] - target).square().mean()
        slopes = torch.autograd.grad(loss, list(layers.values()))
    return dict(zip(layers, slopes, strict=True))
