"""Text at home: items whose text is like that of the history. Nothing is learnt, and nothing is sent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from ownview.base.errors import SettingError
from ownview.base.items.item_text import term_vectors
from ownview.baselines.parts.central import Asked, OneShot
from ownview.config.search import OneOf
from ownview.config.settings import setting
from ownview.data.ragged import Ragged
from ownview.data.splitting.splits import Split
from ownview.parts.text.likeness import nearest_by_text
from ownview.seam.portable import Linear, Portable, SparseRows, Term
from ownview.seam.training import Params


@dataclass(frozen=True)
class Text(OneShot):
    """score of item i = sum over the history of exp(-steps back / recency) K[h, i].

    K is the cosine of two items' words, makers and categories (`base.items.item_text`), public like the items
    themselves. So a device needs the list of items and no model, no server and no budget.
    """

    name: ClassVar[str] = "text"
    title: ClassVar[str] = "Text at home"
    summary: ClassVar[str] = "items whose text is like that of the history; nothing is sent"
    by_history: ClassVar[bool] = True
    sends_nothing: ClassVar[bool] = True
    speaks_of_new: ClassVar[bool] = True

    recency: float = setting(
        2.0,
        "steps after which the history weighs a third when asked",
        above=0,
        infinite=True,
        search=OneOf((1.0, 2.0, 4.0, 8.0, 16.0)),
    )
    neighbours: int = setting(500, "nearest items by text that an item says something about", low=1)

    def require(self, split: Split) -> None:
        """Something must be known of the items."""
        about = split.data.about
        if about is None or not about.known:
            raise SettingError(
                f"text: nothing is known of the items of {split.data.name} but their ids; expected a file with "
                "columns item and title, and any others (data import --items FILE)"
            )

    def fit(self, split: Split, excluded: Ragged, seed: int) -> Params:
        """The kernel of the items' text, as compressed rows; interactions play no part."""
        assert split.data.about is not None  # `require`
        return nearest_by_text(term_vectors(split.data.about), self.neighbours)._asdict()

    def scores(self, learned: Params, asked: Asked) -> Tensor:
        """[B, m] z_u K, z_u the history weighed by recency, an item that stands in it twice at its latest place."""
        offsets, columns, values = (learned[name] for name in ("offsets", "columns", "values"))
        count = len(offsets) - 1
        rows = torch.repeat_interleave(torch.arange(count, device=offsets.device), offsets.diff())
        kernel = torch.sparse_coo_tensor(torch.stack([columns, rows]), values, (count, count), check_invariants=False)
        items, real = asked.known.items.padded(asked.users)
        back = real.sum(1, keepdim=True) - 1 - torch.arange(items.shape[1], device=items.device)
        near = torch.where(real, torch.exp(-back.clamp(min=0) / self.recency), 0.0).to(values.dtype)
        history = values.new_zeros(len(items), count).scatter_reduce_(1, items, near, "amax")
        scores: Tensor = torch.sparse.mm(kernel, history.T)
        return scores.T

    def portable(self, learned: Params) -> Portable:
        """Equal to its scores where no user has an item twice."""
        once = "places count every item once here, and every time in the model"
        rows = SparseRows(learned["offsets"], learned["columns"], learned["values"])
        return Linear((Term(rows, self.recency, public=True),), left_out=(once,))
