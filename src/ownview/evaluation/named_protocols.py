"""Protocols by name, and custom ones that differ from them in what they say."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from ownview.base.errors import SettingError, UnknownNameError
from ownview.config.layers import parse_toml, toml_text
from ownview.evaluation.protocol import EVERYTHING, NEW_ITEMS_SPLIT, Protocol

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
"""What people take when they come back: a cut in time; no later interaction is trained on."""

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

NEW_ITEMS = Protocol(name=NEW_ITEMS_SPLIT, split=NEW_ITEMS_SPLIT)
"""Items without interactions when the model is made, ranked among each other."""

NEW_AMONG_ALL = replace(NEW_ITEMS, name="new-items-among-all", among="all")
"""The same items, ranked among all that a user does not have."""

LISTED = "listed"
"""Behind the @ of these: the new items that a file beside the data names, which is a published split."""

_DATA_SETTINGS = (
    *("min_interactions", "min_item_interactions", "repeats", "split_ties", "untimed", "split_seed", "pause_days"),
    "negatives_avoid",
)
"""Settings of a protocol about the data itself, the same for every question."""


def on_everything(base: Protocol = HONEST) -> Protocol:
    """Nothing held out, and the data as `base` has it.

    Where `base` asks what people take when they come back, clients are asked at the end of the data.
    """
    later = "later" if base.split == NEXT_SITTING.split else "last item"
    kept = {name: getattr(base, name) for name in _DATA_SETTINGS}
    return Protocol(name=EVERYTHING, split=EVERYTHING, selection="last", moment=later, **kept)


PROTOCOLS = {
    one.name: one for one in (HONEST, PAPER, NEXT_SITTING, HONEST_TIME, SEQUENTIAL, NEW_USERS, NEW_ITEMS, NEW_AMONG_ALL)
}


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
    """A protocol by name, or from a TOML file: `base = "honest"` and the settings that differ.

    `next-sitting@0.6` is that at another cut, `new-items@1` that of another draw of the items, `new-items@listed` that
    of the items which a file beside the data names.
    """
    if name in PROTOCOLS:
        return PROTOCOLS[name]
    base, at, share = name.partition("@")
    if at and base == NEXT_SITTING.name:
        try:
            return at_cut(float(share))
        except ValueError:
            raise SettingError(f"protocol {name}: expected a share behind the @, such as next-sitting@0.6") from None
    if at and base in (NEW_ITEMS.name, NEW_AMONG_ALL.name):
        if share == LISTED:
            return replace(PROTOCOLS[base], name=name, new_by="file")
        if not share.isdecimal():
            raise SettingError(
                f"protocol {name}: expected the number of a draw behind the @, such as new-items@1, or {LISTED}"
            )
        return replace(PROTOCOLS[base], name=name, split_seed=int(share)) if int(share) else PROTOCOLS[base]
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
