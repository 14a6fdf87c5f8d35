"""FedEM: a client merges its own item table with a global one made for it, item by item.

Chen, Zhang, Zhang, Luo and Li, "Breaking the Aggregation Bottleneck in Federated Recommendation: A Personalized Model
Merging Approach".
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from torch import Tensor

from ownview.base.errors import SettingError
from ownview.config.search import Between, OneOf
from ownview.config.settings import setting
from ownview.parts.merging import MERGED_ROWS, MERGES, Merging
from ownview.parts.products import row_products, rows_at
from ownview.seam.initial import Normal
from ownview.seam.method import Method, cross_entropy
from ownview.seam.mixing import ComponentSimilarity, Similarity
from ownview.seam.optimizers import Adam
from ownview.seam.roles import Param, personal, private
from ownview.seam.server import AMONG, Server
from ownview.seam.training import Batch, Context, Params, Phase, Step, World


@dataclass(frozen=True)
class FedEM(Method):
    """score = u . q_i with a private user vector u and an item table the client goes on from.

    Each round: train the adapter on the merged table Q_m = Q_l + rho (Q_g - Q_l), everything else frozen; replace Q_l
    by Q_m; train u and Q_l; upload Q_l. The server makes Q_g for every client by similarity of uploads.

    `nesting` says how the two trainings lie in each other: by `round` all epochs of one, then of the other; by `epoch`
    an epoch of the adapter, a merge and an epoch of u and Q_l in turn (Algorithm 1), optimisers anew each time; by
    `batch` one merge, then a step of each in turn on every batch, with a merge in every forward pass (released code).

    Variants: `em` rho for every item; `dm` one learnt rho; `sm` a fixed one; `sr` Q_g replaces Q_l (with aggregation by
    similarity: FedSim; by mean: FedMF evaluated on each client's own table).
    """

    name: ClassVar[str] = "fedem"
    title: ClassVar[str] = "FedEM"
    summary: ClassVar[str] = "own item table merged item by item with a global one made for each client"
    paper: ClassVar[str] = "Chen et al. 2025"

    variant: str = setting("em", "elastic, dynamic or static merging, or replacement", choices=MERGES)
    aggregation: str = setting(
        "similarity", "a global table for each client, or a mean", choices=("similarity", "mean")
    )
    alpha: float = setting(0.9, "weight of the similarity of two clients", low=0, search=Between(0.1, 1.5))
    embedding_size: int = setting(16, "length of user and item vectors", low=1, search=OneOf((8, 16, 32, 64)))
    adapter_layers: tuple[int, ...] = setting((16, 8), "widths of the adapter's hidden layers", low=1)
    rho: float = setting(0.5, "weight of the global table in static merging", low=0, high=1)
    learning_rate: float = setting(
        0.1, "Adam's rate for user vector and item table", above=0, search=Between(1e-3, 0.3, log=True)
    )
    adapter_rate: float = setting(0.1, "Adam's rate for the adapter", above=0, search=Between(1e-3, 0.3, log=True))
    similarity: str = setting("tables", "of whole tables, or of their components", choices=("tables", "components"))
    stop_below: float = setting(0.0, "a client ends a phase when its mean loss changes relatively by less", low=0)
    merged_rows: str = setting("all", "rows that are merged: all, or the ones a client trains", choices=MERGED_ROWS)
    initial_scale: float = setting(
        1.0, "standard deviation of the initial vectors", above=0, search=Between(0.01, 1.0, log=True)
    )
    merges_again: bool = setting(False, "merge again in every forward pass, predicting too, as the released code does")
    nesting: str = setting("round", "when adapter and table take turns", choices=("round", "epoch", "batch"))
    mixed_among: str = setting("all", "whose tables a mixture is of: all, or clients that receive", choices=AMONG)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.nesting == "batch" and not self.merges_again:
            raise SettingError(
                "FedEM setting nesting='batch': expected merges_again=True with it, found False: an adapter that is "
                "trained beside the table is part of every forward pass"
            )
        if self.nesting == "epoch" and self.stop_below:
            raise SettingError(
                f"FedEM setting nesting='epoch': expected stop_below=0 with it, found {self.stop_below}: each training "
                "has one epoch at a time"
            )

    def server(self, world: World) -> Server:
        """A table for each client by similarity, unless a mean is wanted."""
        if self.aggregation == "mean":
            return Server()
        by_components = self.similarity == "components"
        rule = ComponentSimilarity(self.alpha, self.embedding_size) if by_components else Similarity(self.alpha)
        return Server(mixing=rule, mixed_among=self.mixed_among)

    @property
    def merging(self) -> Merging:
        """Own and received table, and the adapter between them."""
        return Merging(self.variant, "items", "received", self.embedding_size, self.adapter_layers, self.rho)

    def params(self, world: World) -> dict[str, Param]:
        """A private user vector and adapter, and an item table of the client's own beside the received one."""
        size, start = self.embedding_size, Normal(self.initial_scale)
        return {
            "user": private(size, initial=start),
            "items": personal(size, received_as="received", initial=start),
            **self.merging.params(),
        }

    def phases(self, world: World) -> tuple[Phase, ...]:
        """Adapter, where there is one, and user and table, which begin with the merged table; nested as asked."""
        merging, stop = self.merging, self.stop_below
        everything = Step(("user", "items"), Adam(self.learning_rate))
        adapter = tuple(merging.params())
        training = Phase(
            (everything,), self.local_epochs, opening=merging.opening, everywhere=self.merged_rows == "all",
            tolerance=stop,
        )  # fmt: skip
        if not adapter:
            return (training,)
        learning = Step(adapter, Adam(self.adapter_rate))
        if self.nesting == "batch":
            return (replace(training, steps=(learning, everything)),)
        first = Phase((learning,), self.local_epochs, tolerance=stop)
        if self.nesting == "epoch":
            return (replace(first, epochs=1), replace(training, epochs=1)) * self.local_epochs
        return first, training

    def scores(self, p: Params) -> Tensor:
        """[R] u . q_i on the own table, or on the merged one where it is merged again."""
        return self._scores(p, merged=self.merges_again)

    def readings(self, p: Params) -> Params:
        """[m] rho of every item for the newest table the server has for the client, and [m, d] both tables merged."""
        return {"rho": self.merging.weights(p), "merged": self.merging.merged(p)}

    def loss(self, p: Params, batch: Batch, context: Context) -> Tensor:
        """[] mean cross-entropy, of the merged table while the adapter is trained."""
        training_adapter = context.phase % 2 == 0 and self.merging.learns
        if training_adapter and self.nesting != "batch" and 3 * batch.rows.shape[0] <= 2 * p["items"].shape[0]:
            # Tables stand still, so nothing flows back into rows: those of the batch are enough, which are few here.
            few = {**p, **{name: rows_at(p[name], batch.rows) for name in ("items", "received")}}
            return cross_entropy(
                self._scores(few, merged=True), batch._replace(counts=batch.mask, positives=batch.labels)
            )
        return cross_entropy(self._scores(p, merged=training_adapter or self.merges_again), batch)

    def _scores(self, p: Params, *, merged: bool) -> Tensor:
        own = row_products(p["items"], p["user"])
        if not merged:
            return own
        # Merging is linear in the tables, so scores may be merged instead: one number for a row.
        return own + self.merging.weights(p) * (row_products(p["received"], p["user"]) - own)
