"""Lists of all users of a finished run, and a sample of users with history and titles.

`recommended.safetensors` makes a run folder readable without its data: coverage and popularity can be worked out from
it, and people can judge some lists by eye.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from ownview.data.interactions import IdArray, IntArray
from ownview.data.questions import Question
from ownview.data.splitting.splits import Split
from ownview.evaluation.ranking import NONE

SAMPLES = 24
"""Users whose history is kept beside their list."""

_TITLED = 60
"""Items of a history that keep their title, the latest; the others only their position."""

_OFTEN = 20
"""Most recommended items that keep their title, over all users."""


def sample_users(ids: IdArray, asked: IntArray, watched: Sequence[int] = ()) -> list[int]:
    """Positions of the watched users and of `SAMPLES` asked ones.

    Chosen by a hash of the user's id, so that every method, seed and protocol on the same data has the same ones.
    """
    by_hash = sorted(asked.tolist(), key=lambda user: hashlib.sha256(str(ids[user]).encode()).digest())
    return list(dict.fromkeys([*watched, *by_hash[:SAMPLES]]))


def recommended(
    split: Split, question: Question, lists: npt.NDArray[np.int64], watched: Sequence[int] = ()
) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Tensors and description of `recommended.safetensors`.

    Args:
        split: the data as used.
        question: whose k users are asked, in the order of users.csv.
        lists: [k, K] what each of them is recommended, best first; -1 for empty places.
        watched: positions of users whose clients are watched.

    Returns:
        `lists` [k, K] item positions, `popularity` [m] training rows of each item; and a description with, for every
        sample user, the distinct known items in time order (source order without times), and what would be right.
    """
    popularity = np.bincount(split.train.values.numpy(), minlength=split.num_items)
    asked, ids = question.users, split.users_of(question)
    chosen = sample_users(ids, asked, watched if question.strangers is None else ())
    samples = [_sample(split, question, user) for user in chosen]
    named: set[int] = set(_most_recommended(lists, split.num_items))
    for sample in samples:
        row = sample["row"]
        named |= {*sample["history"][-_TITLED:], *sample["validation"], *sample["test"]}
        named |= set() if row is None else set(lists[row].tolist())
    about = {
        "samples": samples,
        "titles": {str(item): _title(split, question, item) for item in sorted(named - {NONE})},
    }
    small = torch.int16 if split.num_items < 2**15 else torch.int32
    tensors = {"lists": torch.from_numpy(lists).to(small), "popularity": torch.from_numpy(popularity).to(torch.int32)}
    return tensors, about


def misfit(tensors: Mapping[str, Tensor], about: Mapping[str, Any]) -> str | None:
    """Why the content of `recommended.safetensors`, whose description has its shape, does not hold together.

    None where every item is one of the catalogue and every item that is shown has a title.
    """
    lists, popularity = tensors.get("lists"), tensors.get("popularity")
    if lists is None or popularity is None or (lists.dim(), popularity.dim()) != (2, 1):
        return "no table of lists or no popularity of items"
    if lists.is_floating_point() or popularity.is_floating_point() or not lists.numel():
        return "lists and popularity are no whole numbers"
    if int(lists.min()) < NONE or int(lists.max()) >= len(popularity) or int(popularity.min()) < 0:
        return f"items in lists are not among the {len(popularity)} that there are"
    shown = set(_most_recommended(lists.numpy().astype(np.int64), len(popularity)))
    for sample in about["samples"]:
        row = sample["row"]
        if row is not None and not 0 <= row < len(lists):
            return f"user {sample['user']!r} is in row {row} of {len(lists)}"
        shown |= {*sample["test"], *([] if row is None else lists[row].tolist())}
    untitled = sorted(item for item in shown - {NONE} if str(item) not in about["titles"])
    strange = [name for name in about["titles"] if not (name.isascii() and name.isdigit())]
    return f"item {untitled[0]} has no title" if untitled else f"{strange[0]!r} is no item" if strange else None


def _title(split: Split, question: Question, item: int) -> str:
    return split.data.title(item) if item < split.num_items else str(split.items_of(question)[item])


def _sample(split: Split, question: Question, user: int) -> dict[str, Any]:
    place = np.flatnonzero(question.users == user)
    return {
        "user": str(split.users_of(question)[user]),
        "row": int(place[0]) if len(place) else None,
        "history": list(dict.fromkeys(question.known.items.of(user).tolist())),
        "validation": [] if split.earlier is not None else split.validation.answers(user),
        "test": question.answers(user),
    }


def _most_recommended(lists: npt.NDArray[np.int64], num_items: int) -> list[int]:
    counts = np.bincount(lists[lists >= 0].reshape(-1), minlength=num_items)
    return [int(item) for item in np.argsort(-counts, kind="stable")[:_OFTEN] if counts[item]]
