"""How results are measured: named protocols, and custom ones that differ from them in what they say."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

from ownview.base.errors import DataError, SettingError, UnknownNameError
from ownview.config.layers import parse_toml, toml_text
from ownview.config.settings import Settings, setting
from ownview.data.interactions import Interactions
from ownview.data.ragged import Ragged
from ownview.data.splits import FEWEST, Split
from ownview.evaluation.splitting import CAUSAL, EVERYTHING, SPLITS


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
        choices=tuple(SPLITS),
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
        return f"{self.candidates + 1} items" if self.candidates else "all items"

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
        if self.candidates and self.split in (*CAUSAL, "new-users"):
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
                moment drop nobody by number: who will be active later must not decide who trains.
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
    def knows_validation(self) -> bool:
        """Whether a client knows its validation item when test is asked."""
        return self.knows == "training and validation"

    def training_exclusions(self, split: Split) -> Ragged:
        """What is never drawn as a training negative."""
        return split.known_items() if self.negatives_avoid == "known" else split.training_items()


HONEST = Protocol()
"""The default. A client cannot know its future, all items are ranked, and test is looked at once.

At test a client knows what trained it and not its validation item, so the item after the next one is asked for; the
validation item is no candidate, although the client does not know it. `knows` and `hides` have it otherwise.
"""

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

CUTS = (0.5, 0.6, 0.7, 0.8, 0.9)
"""Where suites cut for `next-sitting`; their tests are pooled. Validation lies before all of them: whatever comes after
the first cut may be asked by one of the tests."""

_VALIDATION = 0.1
"""Share of the rows between the cut for validation and the end of what validation may see."""

NEXT_SITTING = Protocol(
    name="next-sitting",
    split="next-sitting",
    validation_from=round(CUTS[0] - _VALIDATION, 6),
    validation_until=CUTS[0],
    test_from=0.8,
)
"""What people take when they come back: a cut in time, nobody's later interactions trained on."""

HONEST_TIME = Protocol(name="honest-time", split="global-time")
"""One cut in time for everybody: train before it, ask for the first item of a later time."""

SEQUENTIAL = Protocol(
    name="sequential",
    min_item_interactions=5,
    min_interactions=5,
    split_ties="rows",
    untimed="rows",
    knows="training and validation",
)
"""What central sequential papers ask: the next item in the source's own order, with validation known at test."""

NEW_USERS = Protocol(name="new-users", split="new-users")
"""Users who never took part, asked with their history alone."""

_LATER = {"validation_until": 0.0, "hides": "earlier"}
"""Settings that came when runs had been recorded, and what these had."""

_DATA_SETTINGS = (
    *("min_interactions", "min_item_interactions", "repeats", "split_ties", "untimed", "split_seed", "pause_days"),
    "negatives_avoid",
)
"""What a protocol says of the data itself, whatever it asks."""


def on_everything(base: Protocol = HONEST) -> Protocol:
    """Nothing held out, and the data as `base` has it.

    Where `base` asks what people take when they come back, clients are asked at the end of the data.
    """
    later = "later" if base.split == NEXT_SITTING.split else "last item"
    kept = {name: getattr(base, name) for name in _DATA_SETTINGS}
    return Protocol(name=EVERYTHING, split=EVERYTHING, selection="last", moment=later, **kept)


PROTOCOLS = {one.name: one for one in (HONEST, PAPER, NEXT_SITTING, HONEST_TIME, SEQUENTIAL, NEW_USERS)}


def pooled(name: str) -> str:
    """What tables call a protocol: cuts of one protocol stand in one column."""
    return name.partition("@")[0] if name.partition("@")[0] in PROTOCOLS else name


def at_cut(share: float) -> Protocol:
    """`next-sitting` at another cut, named so.

    Settings are chosen before the first of `CUTS`, or before the cut itself where that is earlier: no test of a table
    that pools these cuts asks what validation has asked.
    """
    if share == NEXT_SITTING.test_from:
        return NEXT_SITTING
    name = f"{NEXT_SITTING.name}@{share:g}"
    if not 0.1 < share < 1:
        raise SettingError(f"protocol {name}: expected a cut between 0.1 and 1, such as next-sitting@0.6")
    until = min(share, CUTS[0])
    before = round(until - _VALIDATION, 6)
    return replace(NEXT_SITTING, name=name, validation_from=before, validation_until=until, test_from=share)


def protocol(name: str) -> Protocol:
    """A protocol by name, `next-sitting@SHARE`, or from a TOML file: `base = "honest"` and the settings that differ."""
    if name in PROTOCOLS:
        return PROTOCOLS[name]
    base, at, share = name.partition("@")
    if at and base == NEXT_SITTING.name:
        try:
            return at_cut(float(share))
        except ValueError:
            raise SettingError(f"protocol {name}: expected a share behind the @, such as next-sitting@0.6") from None
    if not name.endswith(".toml"):
        raise UnknownNameError("protocol", name, [*PROTOCOLS, "a .toml file"])
    found = custom(parse_toml(toml_text(Path(name), "protocol"), name), Path(name).stem)
    if not found.measured:
        raise SettingError(f"{name}: split=everything holds nothing out and measures nothing; use: ownview fit")
    return found


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
