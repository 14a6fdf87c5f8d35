"""Lazy summands: `Nearby` ones are expanded to patches only where a single client's are read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import torch
from torch import Tensor
from torch.utils._pytree import tree_map

from ownview.seam.client import Nearby, Patch, Sent


class Unwritten(Mapping[str, Sent]):
    """Summands by name; reading a `Nearby` one expands it to its patch.

    Args:
        parts: as clients made them.
    """

    def __init__(self, parts: Mapping[str, Sent | Nearby]) -> None:
        self.parts = parts

    def __getitem__(self, name: str) -> Sent:
        """A tensor, a product, or a patch."""
        one = self.parts[name]
        return written(one) if isinstance(one, Nearby) else one

    @staticmethod
    def of(parts: Mapping[str, Sent | Nearby]) -> Mapping[str, Sent]:
        """Wrapped if any summand is `Nearby`, else unchanged."""
        plain = {name: one for name, one in parts.items() if not isinstance(one, Nearby)}
        return plain if len(plain) == len(parts) else Unwritten(parts)

    def __iter__(self) -> Iterator[str]:
        """Names."""
        return iter(self.parts)

    def __len__(self) -> int:
        """How many."""
        return len(self.parts)

    def chosen(self, here: slice | Tensor) -> Unwritten:
        """The summands of some clients."""
        return Unwritten({name: tree_map(lambda part: part[here], one) for name, one in self.parts.items()})


def parts_of(sums: Mapping[str, Sent]) -> Mapping[str, Sent | Nearby]:
    """Summands as clients made them."""
    return sums.parts if isinstance(sums, Unwritten) else sums


def written(one: Nearby) -> Patch:
    """A `Nearby` summand expanded to its patch, of one client or of B."""
    length, mask = one.mask.shape[-1], one.mask
    both = mask[..., :, None] * mask[..., None, :]
    if length:
        apart = by_distance(one)
        # Row i is the window that begins at place l - 1 - i of l - 1, ..., 1, 0, 1, ..., l - 1 places apart.
        both = both * torch.cat([apart.flip(-1), apart[..., 1:]], dim=-1).unfold(-1, length, 1).flip(-2)
    return Patch(one.rows, one.rows, both)


def by_distance(one: Nearby) -> Tensor:
    """[.., k] what a pair counts that is 0, 1, ..., k - 1 places apart."""
    return torch.exp(
        -torch.arange(one.mask.shape[-1], dtype=one.mask.dtype, device=one.mask.device) / one.tau[..., None]
    )
