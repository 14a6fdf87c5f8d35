"""Lists of any program, measured as a run: the same protocol, statistics and folder as a method's own.

The folder has the lists too, so that it can be verified and measured again wherever it is taken.
"""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from ownview.base.arguments import kinds_checked
from ownview.base.errors import DataError, SettingError
from ownview.base.files import sha256_of, write_whole
from ownview.baselines.parts.central import Asked, OneShot
from ownview.config.settings import setting
from ownview.data.interactions import Interactions
from ownview.data.lists import read_lists
from ownview.data.ragged import Ragged
from ownview.data.splitting.splits import Split
from ownview.evaluation.named_protocols import HONEST
from ownview.evaluation.protocol import Protocol
from ownview.registry import offers_model
from ownview.runs.api import name_of, protocol_of
from ownview.runs.experiment import Experiment
from ownview.runs.files.manifest import LISTS, write_manifest
from ownview.runs.run import Run, run
from ownview.seam.training import Params


@dataclass(frozen=True)
class Lists(OneShot):
    """score of an item = minus its place in the user's list; what a list does not hold is tied behind it.

    So a figure is what the list, completed at random, is expected to reach; at K at most as long as a list, that is
    what the list reaches.
    """

    name: ClassVar[str] = "lists"
    summary: ClassVar[str] = "lists of another program"
    paper: ClassVar[str] = "none"

    sha256: str = setting("", "of the file of lists")
    file: Path = Path()
    """Where it lies, which decides nothing."""

    def fit(self, split: Split, excluded: Ragged, seed: int) -> Params:
        """Users and items by position; ids that the data does not have are refused."""
        lists = read_lists(self.file)
        users, items = (
            {str(one): place for place, one in enumerate(ids)} for ids in (split.data.users, split.data.items)
        )
        for what, known in (("user", users), ("item", items)):
            strange = next((one for one in lists[what].unique(maintain_order=True) if one not in known), None)
            if strange is not None:
                raise DataError(f"{self.file}: {what} {strange} is none of {split.data.name}; expected its ids")
        user = np.array([users[one] for one in lists["user"]], dtype=np.int64)
        lengths = np.bincount(user, minlength=split.num_users)
        asked = split.test.users
        if without := int((lengths[asked] == 0).sum()) if split.test.strangers is None else 0:
            first = split.data.users[asked[lengths[asked] == 0][0]]
            raise DataError(f"{self.file}: no list for {without} of {len(asked)} users that are asked, such as {first}")
        order = np.argsort(user, kind="stable")
        item = np.array([items[one] for one in lists["item"]], dtype=np.int64)[order]
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        width = torch.tensor(split.num_items)
        return {"offsets": torch.from_numpy(offsets), "items": torch.from_numpy(item), "width": width}

    def scores(self, learned: Params, asked: Asked) -> Tensor:
        """[B, m] minus places from 1; unlisted items come behind the longest list."""
        if not asked.as_trained:
            raise SettingError("lists are of users that took part; expected a protocol that asks about those")
        items, real = Ragged(learned["offsets"], learned["items"]).padded(asked.users)
        behind = -float(len(learned["items"]) + 1)
        found = torch.full((len(asked.users), int(learned["width"])), behind)
        place = -torch.arange(1.0, items.shape[1] + 1).expand_as(items)
        row = torch.arange(len(items))[:, None].expand_as(items)
        found[row[real], items[real]] = place[real]
        return found


@kinds_checked("data", "protocol")
def score(
    lists: str | Path,
    data: Interactions | str | Path,
    *,
    protocol: Protocol | str = HONEST,
    name: str = "",
    seed: int = 0,
    out: str | Path | None = None,
) -> Run:
    """Measure lists of any program under a protocol: a run like any other, for tables, reports and paired tests.

    Args:
        lists: a file; see `ownview.data.lists`.
        data: that they are about; the program must have trained on the protocol's training part alone.
        protocol: how results are measured.
        name: of the row; the file's without its ending where empty.
        seed: of candidates, where the protocol draws any.
        out: folder for the run; without it a temporary one that goes with the process.
    """
    path = Path(lists).resolve()
    read_lists(path)  # a file that is no lists is refused before anything is made
    called = name or re.sub(r"[^a-z0-9]+", "-", path.stem.lower()).strip("-") or Lists.name
    if offers_model(called):
        raise SettingError(f"score: {called} is a method of Ownview; give these lists another name (--name)")
    model = Lists(sha256_of(path), path)
    asked = protocol_of(protocol)
    experiment = Experiment(
        method=called, data=name_of(data), settings=model.values(), protocol=asked, rounds=1, seed=seed
    )
    given = data if isinstance(data, Interactions) else None
    made = run(experiment, model=model, data=given, out=None if out is None else Path(out))

    def copy(place: Path) -> None:
        shutil.copyfile(path, place)

    write_whole(made.folder.path / f"{LISTS}{path.suffix}", copy)
    write_manifest(made.folder.path)
    return made


def is_of_lists(experiment: Experiment) -> bool:
    """Whether a run measures lists of another program."""
    return set(experiment.settings) == {"sha256"} and not offers_model(experiment.method)


def lists_of(folder: Path) -> Lists:
    """The lists that the folder of such a run holds."""
    found = sorted(folder.glob(f"{LISTS}.*"))
    if not found:
        raise DataError(f"{folder}: its lists ({LISTS}.parquet or the like) are not there")
    return Lists(sha256_of(found[0]), found[0])
