"""PFedCLR: calibration of the user vector and personalisation of the items by a low-rank buffer.

"Beyond Personalization: Federated Recommendation with Calibration via Low-rank Decomposition" (PFedCLR).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from ownview.config.search import Between, OneOf
from ownview.config.settings import setting
from ownview.parts.products import row_products
from ownview.seam.initial import Constant
from ownview.seam.method import Method, cross_entropy
from ownview.seam.optimizers import Adam
from ownview.seam.roles import Param, kept, private, table
from ownview.seam.training import Batch, Context, Params, Phase, Step, World

_LOCAL_TRAINING = 0
"""Phase of step 1, on u . q_i; the phase after it has the buffer."""


@dataclass(frozen=True)
class PFedCLR(Method):
    """score = u . (q_i + a_i B) with private u, A (rows) and B, and a shared table Q.

    Step 1: u frozen, train Q; it is uploaded as it is then. Step 2: Q frozen, train u, A and B on the buffered score.
    The table does not move in step 2, so sending it after step 1 or at the end is the same.

    Variants: `clr` the paper's; `cf` a full matrix W instead of A B; `af` a full matrix, but u moves together with Q in
    step 1 and only W in step 2.
    """

    name: ClassVar[str] = "pfedclr"
    title: ClassVar[str] = "PFedCLR"
    summary: ClassVar[str] = "user vector calibrated and items personalised by a private low-rank buffer"
    paper: ClassVar[str] = "PFedCLR 2025"

    variant: str = setting(
        "clr", "the buffer: low-rank, full, or full without calibration", choices=("clr", "cf", "af")
    )
    embedding_size: int = setting(16, "length of user and item vectors", low=1, search=OneOf((8, 16, 32, 64)))
    rank: int = setting(2, "rank r of the buffer A B", low=1, search=Between(1, 8))
    learning_rate: float = setting(
        0.01, "Adam's rate for user vector and item table", above=0, search=Between(1e-4, 0.1, log=True)
    )
    buffer_rate: float = setting(0.01, "Adam's rate for the buffer", above=0, search=Between(1e-4, 0.1, log=True))
    fresh_buffer: bool = setting(False, "the buffer starts anew in every round instead of going on")
    clip_gradient: float = setting(0.0, "largest norm of Q's gradient in every step, the paper's C; 0: any", low=0)

    def params(self, world: World) -> dict[str, Param]:
        """A private user vector and buffer, and an item table that the client keeps as it trained it."""
        size, zero = self.embedding_size, Constant(0.0)
        known = {"user": private(size), "items": table(kept(size))}
        if self.variant != "clr":
            return {**known, "buffer": table(private(size, initial=zero))}
        return {
            **known,
            "buffer_rows": table(private(self.rank, initial=zero)),
            "buffer_basis": private(self.rank, size),
        }

    def phases(self, world: World) -> tuple[Phase, ...]:
        """Step 1, then step 2."""
        buffers = tuple(name for name in self.params(world) if name.startswith("buffer"))
        main, buffer = Adam(self.learning_rate), Step(buffers, Adam(self.buffer_rate))
        items = Step(("items",), main, clip=self.clip_gradient)
        if self.variant == "af":
            steps = (Step(("user",), main, alongside=items), buffer)
        else:
            steps = (items, Step(("user",), main, alongside=buffer))
        opening = self._emptied if self.fresh_buffer else None
        return Phase((steps[0],), self.local_epochs), Phase((steps[1],), self.local_epochs, opening=opening)

    def _emptied(self, p: Params, context: Context) -> Params:
        """No buffer anywhere: A, or W, is zero; B stays as it is."""
        rows = "buffer_rows" if self.variant == "clr" else "buffer"
        return {rows: torch.zeros_like(p[rows])}

    def scores(self, p: Params) -> Tensor:
        """[R] u . (q_i + a_i B)."""
        if self.variant == "clr":
            return p["items"] @ p["user"] + p["buffer_rows"] @ (p["buffer_basis"] @ p["user"])
        return (p["items"] + p["buffer"]) @ p["user"]

    def readings(self, p: Params) -> Params:
        """[m, d] the item table with the buffer added."""
        buffer = p["buffer_rows"] @ p["buffer_basis"] if self.variant == "clr" else p["buffer"]
        return {"merged": p["items"] + buffer}

    def loss(self, p: Params, batch: Batch, context: Context) -> Tensor:
        """[] mean cross-entropy: of u . q_i in step 1, of the buffered score in step 2."""
        buffered = context.phase != _LOCAL_TRAINING
        items = p["items"] + p["buffer"] if buffered and self.variant != "clr" else p["items"]
        scores = row_products(items, p["user"])
        if buffered and self.variant == "clr":
            scores = scores + row_products(p["buffer_rows"], p["buffer_basis"] @ p["user"])
        return cross_entropy(scores, batch)
