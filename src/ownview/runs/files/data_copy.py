"""A model's own copy of its data: everybody's rows, ids, titles and columns about items, in one checked file.

With it a model folder can be moved, copied, gone on with and asked where the file that it was made of is no more.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ownview.base.errors import OutputError
from ownview.base.items.item_table import ItemTable
from ownview.base.json_shapes import Either, Maybe, TableOf, misfit
from ownview.data.interactions import IdArray, Interactions
from ownview.runs.files.tensor_files import read_tensors, write_tensors

HISTORIES = "histories.safetensors"

_ARRAYS = ("offsets", "item", "row", "rating", "timestamp", "quantity")
_ID = Either(int, str)
_SHAPE = {
    "name": str,
    "users": [_ID],
    "items": [_ID],
    "titles": Maybe([str]),
    "about": Maybe(TableOf([str])),
    "about_users": Maybe(TableOf([str])),
    "clock": int,
}


def write_histories(folder: Path, data: Interactions) -> None:
    """Write histories.safetensors, whole or not at all."""
    arrays = {name: getattr(data, name) for name in _ARRAYS}
    tensors = {name: torch.from_numpy(value.copy()) for name, value in arrays.items() if value is not None}
    about = {
        "name": data.name,
        "users": data.users.tolist(),
        "items": data.items.tolist(),
        "titles": None if data.titles is None else list(data.titles),
        "about": None if data.about is None else {name: list(kept) for name, kept in data.about.columns.items()},
        "clock": int(data.clock),
    }
    if data.about_users is not None:
        about["about_users"] = {name: list(kept) for name, kept in data.about_users.columns.items()}
    write_tensors(folder / HISTORIES, tensors, about, {})


def read_histories(folder: Path) -> Interactions | None:
    """The data; None where the folder has no copy.

    Raises:
        OutputError: damaged.
    """
    path = folder / HISTORIES
    if not path.is_file():
        return None
    tensors, about, _ = read_tensors(path)
    if found := misfit(about, _SHAPE) or _unsound(tensors, about):
        raise OutputError(f"{path}: is damaged: {found}; bring a sound copy back")
    titles, columns, people = about["titles"], about["about"], about.get("about_users")
    return Interactions(
        name=about["name"],
        users=_ids(about["users"]),
        items=_ids(about["items"]),
        titles=None if titles is None else tuple(titles),
        about=None if columns is None else ItemTable({name: tuple(kept) for name, kept in columns.items()}),
        about_users=None if people is None else ItemTable({name: tuple(kept) for name, kept in people.items()}),
        clock=bool(about["clock"]),
        offsets=tensors["offsets"].numpy(),
        item=tensors["item"].numpy(),
        row=tensors["row"].numpy(),
        rating=tensors["rating"].numpy() if "rating" in tensors else None,
        timestamp=tensors["timestamp"].numpy() if "timestamp" in tensors else None,
        quantity=tensors["quantity"].numpy() if "quantity" in tensors else None,
    )


def _unsound(tensors: Mapping[str, Tensor], about: Mapping[str, Any]) -> str | None:
    """Why rows and ids do not belong together."""
    if not {"offsets", "item", "row"} <= set(tensors):
        return "it has no rows"
    offsets, item, count = tensors["offsets"], tensors["item"], len(about["items"])
    if len(offsets) != len(about["users"]) + 1 or bool((offsets.diff() < 0).any()):
        return f"{len(offsets)} offsets of {len(about['users'])} users"
    ends = [len(value) for name, value in tensors.items() if name != "offsets"]
    if set(ends) != {int(offsets[-1])} or int(offsets[0]) or bool(((item < 0) | (item >= count)).any()):
        return f"rows that are not of its {count} items"
    columns = [about["titles"] or about["items"], *(about["about"] or {}).values()]
    if any(len(one) != len(about["users"]) for one in (about.get("about_users") or {}).values()):
        return "a column about other users"
    return None if all(len(one) == count for one in columns) else "a column about other items"


def _ids(ids: list[Any]) -> IdArray:
    """Int64 where all are whole numbers, else text."""
    whole = all(type(one) is int for one in ids)
    return np.array(ids, dtype=np.int64) if whole and ids else np.array(ids, dtype=object)
