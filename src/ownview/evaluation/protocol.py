"""How results are measured: two named protocols, and custom ones that differ from them in what they say."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

from ownview.base.errors import DataError, SettingError, UnknownNameError
from ownview.config.settings import Settings, setting
from ownview.config.toml_files import parse_toml, toml_text
from ownview.data.interactions import Interactions
from ownview.data.ragged import Ragged
from ownview.data.split_files import from_files
from ownview.data.splits import FEWEST, Split, global_time, leave_one_out


@dataclass(frozen=True)
class Protocol(Settings):
    """Everything between interactions and a number. Frozen: a changed protocol is another one."""

    title: ClassVar[str] = "protocol"

    name: str = setting("honest", "what tables call it")
    min_interactions: int = setting(0, "drop users with fewer rows; 0 takes the papers' filter of the data", low=0)
    repeats: str = setting("collapse", "repeated (user, item) rows", choices=("collapse", "keep"))
    split: str = setting("leave-one-out", "what is held out", choices=("leave-one-out", "global-time", "files"))
    split_ties: str = setting(
        "hash", "which of equally timed rows is the latest: by seeded hash, or the first in the file",
        choices=("hash", "file"),
    )  # fmt: skip
    untimed: str = setting(
        "random", "without timestamps: random held-out items, or order of first appearance of the item",
        choices=("random", "appearance"),
    )  # fmt: skip
    split_seed: int = setting(0, "seed of the split; runs with other seeds share the split", low=0)
    validation_from: float = setting(0.8, "global-time: share of rows before validation", above=0, high=1)
    test_from: float = setting(0.9, "global-time: share of rows before test", above=0, high=1)
    split_folder: str = setting("", "files: folder with train, validation and test files")
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
        return f"{self.candidates + 1} items" if self.candidates else "all items"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.split == "files" and not self.split_folder:
            raise SettingError("protocol setting split=files: expected split_folder to name the folder")
        if self.split == "global-time" and self.validation_from >= self.test_from:
            raise SettingError(
                f"protocol setting test_from={self.test_from}: expected more than validation_from, "
                f"which is {self.validation_from}"
            )
        if 10 not in self.cutoffs:
            raise SettingError(
                f"protocol setting cutoffs={self.cutoffs}: expected 10 among them, rounds are chosen by it"
            )

    def prepare(self, data: Interactions, papers_filter: int | None = None) -> Split:
        """Filter, collapse and split.

        Args:
            data: as read.
            papers_filter: what `min_interactions = 0` stands for; None means as few as a split needs.
        """
        fewest = max(self.min_interactions or papers_filter or FEWEST, FEWEST)
        notes: list[str] = []
        kept = data.with_at_least(fewest)
        _note_dropped(notes, data, kept, f"with fewer than {fewest} interactions")
        repeated = int(kept.repeated_pairs().sum())
        if repeated and self.repeats == "collapse":
            kept = kept.without_repeats()
            notes.append(f"{repeated} repeated (user, item) rows collapsed to their first occurrence")
            enough = kept.with_at_least(FEWEST)
            _note_dropped(notes, kept, enough, f"with fewer than {FEWEST} different items")
            kept = enough
        elif repeated:
            notes.append(f"{repeated} repeated (user, item) rows kept: a held-out pair may also stand in training")
        if not len(kept):
            advice = "; lower min_interactions" if fewest > FEWEST else ": one each to train on, validate and test"
            raise DataError(f"{data.name}: no user has {fewest} interactions or more{advice}")
        split = self._split(kept)
        return replace(split, notes=(*notes, *split.notes))

    def _split(self, data: Interactions) -> Split:
        if self.split == "files":
            return from_files(Path(self.split_folder), data, ties=self.split_ties, seed=self.split_seed)
        if self.split == "global-time":
            return global_time(
                data, validation_from=self.validation_from, test_from=self.test_from, seed=self.split_seed
            )
        return leave_one_out(data, ties=self.split_ties, untimed=self.untimed, seed=self.split_seed)

    def training_exclusions(self, split: Split) -> Ragged:
        """What is never drawn as a training negative."""
        return split.known_items() if self.negatives_avoid == "known" else split.training_items()


HONEST = Protocol()
"""The default. A client cannot know its future, all items are ranked, and test is looked at once."""

PAPER = Protocol(
    name="paper",
    repeats="keep",
    split_ties="file",
    untimed="appearance",
    negatives_avoid="known",
    candidates=99,
    candidates_avoid="known",
    ties="last",
)
"""What the publications do, leak and all: held-out items never serve as training negatives."""

PROTOCOLS = {protocol.name: protocol for protocol in (HONEST, PAPER)}


def protocol(name: str) -> Protocol:
    """A protocol by name, or from a TOML file: `base = "honest"` and the settings that differ."""
    if name in PROTOCOLS:
        return PROTOCOLS[name]
    if not name.endswith(".toml"):
        raise UnknownNameError("protocol", name, [*PROTOCOLS, "a .toml file"])
    return custom(parse_toml(toml_text(Path(name), "protocol"), name), Path(name).stem)


def custom(values: dict[str, Any], name: str) -> Protocol:
    """A protocol from its base (a named one) and the settings that differ; it never carries a named protocol's name."""
    values = dict(values)
    base = str(values.pop("base", "honest"))
    if base not in PROTOCOLS:
        raise UnknownNameError("base of a protocol", base, PROTOCOLS)
    values.setdefault("name", name)
    merged = Protocol.of({**PROTOCOLS[base].values(), **values})
    if merged.name in PROTOCOLS and merged != PROTOCOLS[merged.name]:
        raise SettingError(f"protocol name {merged.name!r} is taken; a changed protocol needs a name of its own")
    return merged


def _note_dropped(notes: list[str], before: Interactions, after: Interactions, why: str) -> None:
    dropped = before.num_users - after.num_users
    if dropped:
        notes.append(f"{dropped} of {before.num_users} users {why} dropped")
