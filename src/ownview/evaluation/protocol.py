"""How results are measured: everything between interactions and a number, and the split that it names."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from ownview.base.errors import DataError, SettingError
from ownview.config.settings import Settings, setting
from ownview.data.interactions import Interactions
from ownview.data.ragged import Ragged
from ownview.data.sittings import DAY
from ownview.data.splitting.causal_splits import global_time, moment_at, next_sitting
from ownview.data.splitting.everything import everything
from ownview.data.splitting.new_items import drawn_items, late_items, listed_items, never_drawn
from ownview.data.splitting.newcomers import held_out_users
from ownview.data.splitting.split_files import from_files
from ownview.data.splitting.splits import FEWEST, Split, leave_one_out

EVERYTHING = "everything"
"""The split that holds nothing out; what trains on it cannot be measured."""

CAUSAL = frozenset({"global-time", "next-sitting"})
"""Splits at a moment in time."""

NEW_ITEMS_SPLIT = "new-items"
"""The split whose answers are items without training interactions."""

_LATER = {
    "validation_until": 0.0, "hides": "earlier", "new_by": "draw", "new_share": 1 / 7, "new_file": "", "among": "new",
}  # fmt: skip
"""Settings that came when runs had been recorded, and what these had."""


@dataclass(frozen=True)
class Protocol(Settings):
    """Everything between interactions and a number. Frozen: a changed protocol is another one."""

    title: ClassVar[str] = "protocol"

    name: str = setting("honest", "what tables call it")
    min_interactions: int = setting(0, "drop users with fewer rows; 0 takes the papers' filter of the data", low=0)
    repeats: str = setting("collapse", "repeated (user, item) rows", choices=("collapse", "keep"))
    min_item_interactions: int = setting(0, "drop items with fewer rows, before users are counted", low=0)
    split: str = setting(
        "leave-one-out",
        "what trains and what is asked, see docs/evaluation.md",
        choices=("leave-one-out", "global-time", "next-sitting", "new-users", NEW_ITEMS_SPLIT, "files", EVERYTHING),
    )
    split_ties: str = setting(
        "hash", "which of equally timed rows is the latest: by seeded hash, the first in the file, or the last (rows)",
        choices=("hash", "file", "rows"),
    )  # fmt: skip
    untimed: str = setting(
        "random", "without timestamps: random held-out items, rows in time order, or first appearance of the item",
        choices=("random", "rows", "appearance"),
    )  # fmt: skip
    split_seed: int = setting(0, "seed of the split; runs with other seeds share the split", low=0)
    validation_from: float = setting(0.8, "cuts in time: share of rows before validation", above=0, high=1)
    validation_until: float = setting(
        0.0, "next-sitting: share of rows that validation may see; 0 stands for test_from", low=0, high=1
    )
    test_from: float = setting(0.9, "cuts in time: share of rows before test", above=0, high=1)
    pause_days: float = setting(1.0, "days without anything, after which a sitting is over", above=0)
    fewest_before: int = setting(3, "next-sitting: interactions before the cut that a user needs to be asked", low=1)
    relevant: str = setting(
        "all", "next-sitting: what is right, all new items of the sitting or the first alone", choices=("all", "first")
    )
    newcomers: float = setting(0.2, "new-users: share of the users that never takes part", above=0, high=0.5)
    fold: int = setting(0, "new-users: which users those are, from 0", low=0)
    new_by: str = setting(
        "draw",
        "new-items: which items are new, a share of them drawn, those that first appear after a cut in time, or those "
        "of a file",
        choices=("draw", "time", "file"),
    )  # fmt: skip
    new_share: float = setting(1 / 7, "new-items: share of the items that is drawn", above=0, high=0.5)
    new_file: str = setting(
        "",
        "new-items: file with columns item and part, which is validation or test; else the dataset's",
    )
    among: str = setting("new", "new-items: what new items are ranked among, each other or all", choices=("new", "all"))
    split_folder: str = setting("", "files: folder with train, validation and test files")
    knows: str = setting(
        "training", "what a client knows of its own when test is asked",
        choices=("training", "training and validation"),
    )  # fmt: skip
    hides: str = setting(
        "earlier",
        "leave-one-out: items that are no candidates at test: all that the user had earlier, the validation item "
        "included, or those that the client knows",
        choices=("earlier", "known"),
    )
    moment: str = setting(
        "last item",
        "what time a client takes for now when it is asked: its last known item's, that of the answer (asked), or "
        "(later, with split everything) the end of the data",
        choices=("last item", "asked", "later"),
    )
    negatives_avoid: str = setting(
        "training", "items never drawn as training negatives: training positives, or all the user ever has",
        choices=("training", "known"),
    )  # fmt: skip
    candidates: int = setting(0, "items ranked against the held-out one; 0 ranks all", low=0)
    candidates_avoid: str = setting(
        "training", "sampled candidates avoid training positives, or all the user ever has",
        choices=("training", "known"),
    )  # fmt: skip
    same_candidates: bool = setting(False, "draw the same items for validation and test (candidates_avoid = known)")
    ties: str = setting(
        "expected", "rank of a tied held-out item: expected over the tied block, or last",
        choices=("expected", "last"),
    )  # fmt: skip
    selection: str = setting("validation", "what chooses the round", choices=("validation", "test", "last"))
    cutoffs: tuple[int, ...] = setting((5, 10, 20), "the K of HR@K and NDCG@K", low=1)

    @property
    def ranked_among(self) -> str:
        """What the held-out item is ranked among, in words; itself counts."""
        if self.candidates:
            return f"{self.candidates + 1} items"
        return "new items" if self.split == NEW_ITEMS_SPLIT and self.among == "new" else "all items"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.split == "files" and not self.split_folder:
            raise SettingError("protocol setting split=files: expected split_folder to name the folder")
        if self.split in CAUSAL and self.validation_from >= self.test_from:
            raise SettingError(
                f"protocol setting test_from={self.test_from}: expected more than validation_from, "
                f"which is {self.validation_from}"
            )
        self._require_later_settings()
        if self.split == "new-users" and (self.fold + 1) * self.newcomers > 1 + 1e-9:
            raise SettingError(
                f"protocol setting fold={self.fold}: expected less than {round(1 / self.newcomers)}, there are no more "
                f"folds of {self.newcomers:g}"
            )
        if (self.moment == "later") > (self.split == EVERYTHING):
            raise SettingError(
                f"protocol setting moment=later: split {self.split} asks for held-out items; expected asked"
            )
        if self.split == EVERYTHING and (self.selection != "last" or self.candidates):
            raise SettingError(
                "protocol setting split=everything: nothing is held out to choose a round or to rank by; expected "
                "selection=last and candidates=0"
            )
        if self.new_file and self.new_by != "file":
            raise SettingError(f"protocol setting new_file={self.new_file!r}: expected a file with new_by=file alone")
        if self.candidates and self.split in (*CAUSAL, "new-users", NEW_ITEMS_SPLIT):
            raise SettingError(
                f"protocol setting candidates={self.candidates}: split {self.split} ranks all items; expected 0"
            )
        if 10 not in self.cutoffs:
            raise SettingError(
                f"protocol setting cutoffs={self.cutoffs}: expected 10 among them, rounds are chosen by it"
            )

    def _require_later_settings(self) -> None:
        """That `validation_until` and `hides` fit the split."""
        if self.validation_until and not self.validation_from < self.validation_until <= self.test_from:
            raise SettingError(
                f"protocol setting validation_until={self.validation_until}: expected 0, or more than validation_from "
                f"({self.validation_from}) and at most test_from ({self.test_from})"
            )
        if self.validation_until and self.split != "next-sitting":
            raise SettingError(
                f"protocol setting validation_until={self.validation_until}: split {self.split} does not have it; "
                "expected 0"
            )
        if self.hides != "earlier" and self.split != "leave-one-out":
            raise SettingError(
                f"protocol setting hides={self.hides!r}: split {self.split} does not have it; expected 'earlier'"
            )

    def plain(self) -> dict[str, Any]:
        """As TOML has them; what came later only where it is set, so that runs from before keep their names."""
        values = super().plain()
        return {name: value for name, value in values.items() if name not in _LATER or value != _LATER[name]}

    def prepare(self, data: Interactions, papers_filter: int | None = None) -> Split:
        """Filter, collapse and split.

        Args:
            data: as read.
            papers_filter: what `min_interactions = 0` stands for; None means as few as a split needs. Splits at a
                moment drop no user by number: later activity must not decide who trains.
        """
        if self.split in CAUSAL:
            return SPLITS[self.split](self, data)
        notes: list[str] = []
        if self.min_item_interactions:
            popular = data.with_items_of_at_least(self.min_item_interactions)
            gone = data.num_items - popular.num_items
            if gone:
                notes.append(f"{gone} items with fewer than {self.min_item_interactions} interactions dropped")
            data = popular
        fewest = (
            max(self.min_interactions or papers_filter or FEWEST, FEWEST) if self.measured else self.min_interactions
        )
        kept = data.with_at_least(fewest)
        _note_dropped(notes, data, kept, f"with fewer than {fewest} interactions")
        repeated = int(kept.repeated_pairs().sum())
        if repeated and self.repeats == "collapse":
            kept = kept.without_repeats()
            notes.append(f"{repeated} repeated (user, item) rows collapsed to their first occurrence")
            enough = kept.with_at_least(FEWEST if self.measured else 1)
            _note_dropped(notes, kept, enough, f"with fewer than {FEWEST} different items")
            kept = enough
        elif repeated:
            notes.append(f"{repeated} repeated (user, item) rows kept: a held-out pair may also stand in training")
        if not len(kept):
            too_few = not len(data.with_at_least(fewest))
            needed = f"{fewest} interactions" if too_few else f"{FEWEST} different items"
            by_setting = too_few and fewest > FEWEST
            advice = "; lower min_interactions" if by_setting else ": one each to train on, validate and test"
            raise DataError(f"{data.name}: no user has {needed} or more{advice}")
        split = SPLITS[self.split](self, kept)
        return replace(split, notes=(*notes, *split.notes))

    @property
    def measured(self) -> bool:
        """Whether anything is held out: only then can a round be chosen and a figure be had."""
        return self.split != EVERYTHING

    @property
    def reads_files(self) -> bool:
        """Whether the split depends on files besides the data."""
        return self.split == "files" or (self.split == NEW_ITEMS_SPLIT and self.new_by == "file")

    @property
    def knows_validation(self) -> bool:
        """Whether a client knows its validation item when test is asked."""
        return self.knows == "training and validation"

    def training_exclusions(self, split: Split) -> Ragged:
        """What is never drawn as a training negative."""
        lists = split.known_items() if self.negatives_avoid == "known" else split.training_items()
        return never_drawn(lists, split.num_items, split.num_new)


def _note_dropped(notes: list[str], before: Interactions, after: Interactions, why: str) -> None:
    dropped = before.num_users - after.num_users
    if dropped:
        notes.append(f"{dropped} of {before.num_users} users {why} dropped")


def _latest_item(protocol: Protocol, data: Interactions) -> Split:
    return leave_one_out(
        data, ties=protocol.split_ties, untimed=protocol.untimed, seed=protocol.split_seed,
        knows_validation=protocol.knows_validation, moment=protocol.moment, hides=protocol.hides,
    )  # fmt: skip


def _global_time(protocol: Protocol, data: Interactions) -> Split:
    first, second = (moment_at(data, share, protocol.name) for share in (protocol.validation_from, protocol.test_from))
    return global_time(
        data, first=first, second=second, ties=protocol.split_ties, seed=protocol.split_seed,
        knows_validation=protocol.knows_validation,
    )  # fmt: skip


def _next_sitting(protocol: Protocol, data: Interactions) -> Split:
    """The split at the later cut, with that at the earlier one to choose by, which sees nothing from its end on."""
    shares = protocol.validation_from, protocol.validation_until or protocol.test_from, protocol.test_from
    first, end, second = (moment_at(data, share, protocol.name) for share in shares)
    assert data.timestamp is not None
    cut = partial(
        next_sitting, pause=round(protocol.pause_days * DAY), fewest=protocol.fewest_before,
        relevant=protocol.relevant, ties=protocol.split_ties, seed=protocol.split_seed,
    )  # fmt: skip
    earlier = cut(data.select(data.timestamp < end), moment=first)
    validation = replace(earlier.test, earlier=True)
    return replace(cut(data, moment=second), validation=validation, earlier=replace(earlier, test=validation))


def _new_users(protocol: Protocol, data: Interactions) -> Split:
    return held_out_users(
        data, share=protocol.newcomers, fold=protocol.fold, ties=protocol.split_ties, untimed=protocol.untimed,
        seed=protocol.split_seed, knows_validation=protocol.knows_validation, moment=protocol.moment,
    )  # fmt: skip


def _new_items(protocol: Protocol, data: Interactions) -> Split:
    among_new, ties, seed = protocol.among == "new", protocol.split_ties, protocol.split_seed
    if protocol.new_by == "time":
        shares = protocol.validation_from, protocol.test_from
        first, second = (moment_at(data, share, protocol.name) for share in shares)
        return late_items(data, first=first, second=second, ties=ties, seed=seed, among_new=among_new)
    rest: Any = {"ties": ties, "untimed": protocol.untimed, "seed": seed, "among_new": among_new}
    if protocol.new_by == "file":
        return listed_items(data, protocol.new_file, **rest)
    return drawn_items(data, share=protocol.new_share, **rest)


def _files(protocol: Protocol, data: Interactions) -> Split:
    return from_files(Path(protocol.split_folder), data, ties=protocol.split_ties, seed=protocol.split_seed)


def _everything(protocol: Protocol, data: Interactions) -> Split:
    pause = round(protocol.pause_days * DAY) if protocol.moment == "later" else None
    return everything(
        data, ties=protocol.split_ties, untimed=protocol.untimed, seed=protocol.split_seed, pause=pause
    )  # fmt: skip


SPLITS: dict[str, Callable[[Protocol, Interactions], Split]] = {
    "leave-one-out": _latest_item,
    "global-time": _global_time,
    "next-sitting": _next_sitting,
    "new-users": _new_users,
    NEW_ITEMS_SPLIT: _new_items,
    "files": _files,
    EVERYTHING: _everything,
}
"""By the value of the protocol setting `split`."""
