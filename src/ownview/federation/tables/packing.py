"""What clients hold, packed: put together from several parts, and taken apart again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

Packed = Mapping[str, Tensor]
"""What `Clients.pack` returns."""


_GATHERED = ("counts", "items", "values", "numbers", "bases")


def gathered(name: str) -> bool:
    """Whether a packed value is a new tensor, none that clients hold: rows of tables are gathered to be packed."""
    return name.startswith("table.") and name.endswith(tuple(f".{part}" for part in _GATHERED))


def joined(packs: Sequence[Packed]) -> dict[str, Tensor]:
    """Join packed shards into what `Clients.pack` gives for all clients."""
    whole = {name: torch.cat([pack[name] for pack in packs]) for name in packs[0] if not _of_bases(name)}
    for name in (one for one in packs[0] if one.endswith(".numbers")):
        bases = name.removesuffix("numbers") + "bases"
        known = {
            int(number): base for pack in packs for number, base in zip(pack[name].tolist(), pack[bases], strict=True)
        }
        whole[name] = torch.tensor(sorted(known))
        whole[bases] = torch.stack([known[number] for number in sorted(known)])
    return whole


def parted(packed: Packed, here: range) -> dict[str, Tensor]:
    """The part of clients at positions `here`; inverse of `joined`."""
    found: dict[str, Tensor] = {}
    for name, value in packed.items():
        table = name.rpartition(".")[0]
        if _of_bases(name):
            found[name] = value
        elif name.startswith("table.") and name.rpartition(".")[2] in ("items", "values"):
            before = packed[f"{table}.counts"].cumsum(0)
            first = int(before[here.start - 1]) if here.start else 0
            found[name] = value[first : int(before[here.stop - 1])]
        else:
            found[name] = value[here.start : here.stop]
    return found


def _of_bases(name: str) -> bool:
    """Whether it is about tables that clients stand on, which are the same wherever they are."""
    return name.startswith("table.") and name.endswith((".numbers", ".bases"))
