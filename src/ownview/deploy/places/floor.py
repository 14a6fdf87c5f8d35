"""A place's own privacy floor: the weakest protection under which it answers at all.

It is written as the federation setting `privacy` is. What satisfies which floor:

    floor          satisfied by
    none           everything
    central        central, distributed or local noise
    distributed    distributed or local noise
    local          local noise
    masked         masked sums, or distributed noise, which is masked as well
    other noise    the very same setting: without an epsilon nothing can be compared

A floor with masks=signed is satisfied by signed masks, or by local noise; a floor of masked sums by no more groups than
it names, whose sums are of fewer people, and by a threshold of at least the one that it names: the agreement has to
name one then, or have local noise. Where the floor has a budget, epsilon and delta of the agreement may be at most
those of the floor. A floor of masks alone says nothing about clips.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import tomli_w

from ownview.base.files import write_text
from ownview.config.layers import parse_toml, toml_text
from ownview.config.settings import Settings, setting
from ownview.federation.options import FederationOptions
from ownview.privacy.budget import budget
from ownview.privacy.masks import MASKED, Masks, masked_sums
from ownview.seam.protection import CENTRAL, DISTRIBUTED, LOCAL

_SATISFIED_BY: Mapping[str, tuple[str, ...]] = {
    CENTRAL: (CENTRAL, DISTRIBUTED, LOCAL),
    DISTRIBUTED: (DISTRIBUTED, LOCAL),
    LOCAL: (LOCAL,),
    MASKED: (MASKED, DISTRIBUTED),
}


@dataclass(frozen=True)
class Floor(Settings):
    """A place's weakest accepted protection."""

    title: ClassVar[str] = "place"

    floor: str = setting("none", "weakest privacy under which the place answers, as federation setting privacy")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.floor != MASKED:  # a floor of masks needs no clip
            FederationOptions(privacy=self.floor)

    def refusal(self, offered: str) -> str:
        """Why an agreement's setting `privacy` is below the floor; empty where it is not."""
        if self.floor in ("none", offered):
            return ""
        kind, given = (text.partition(":")[0] for text in (self.floor, offered))
        why = f"privacy={offered!r} is below this place's floor {self.floor!r}"
        if given not in _SATISFIED_BY.get(kind, ()):
            return f"{why}; expected {' or '.join(_SATISFIED_BY.get(kind, (self.floor,)))}"
        if _signed(self.floor) and not _signed(offered) and given != LOCAL:
            return f"{why}; expected masks=signed"
        people, there = _threshold(self.floor), _threshold(offered)
        if given != LOCAL and there < people:
            return f"{why}: threshold is {there or 'not named'}; expected threshold={people} or more"
        least, found = budget(self.floor), budget(offered)
        limits: list[tuple[str, float, float]] = []
        if kind in (MASKED, DISTRIBUTED):  # of more groups every sum is of fewer people
            limits += [("groups", _groups(self.floor), _groups(offered))]
        if least is not None and found is not None:
            limits += [("epsilon", least.epsilon, found.epsilon), ("delta", least.delta, found.delta)]
        over = ((name, most, has) for name, most, has in limits if has > most)
        return next((f"{why}: {name} is {has:g}; expected {most:g} at most" for name, most, has in over), "")


def _signed(text: str) -> bool:
    """Whether a setting asks for signed masks."""
    masks = _masks(text)
    return masks is not None and masks.signed


def _groups(text: str) -> int:
    """In how many groups a setting's sums are made."""
    masks = _masks(text)
    return 1 if masks is None else masks.groups


def _threshold(text: str) -> int:
    """How many people every sum is of at least, where a setting names it; else 0."""
    masks = _masks(text)
    return 0 if masks is None else masks.threshold or 0


def _masks(text: str) -> Masks | None:
    """What a setting says of masks; None where it has none."""
    found = None if text == MASKED else masked_sums(text) or budget(text)
    return None if found is None else found.masks


def read_floor(file: Path) -> Floor | None:
    """From a file; None where it is not there."""
    return Floor.of(parse_toml(toml_text(file, "floor"), str(file))) if file.is_file() else None


def write_floor(file: Path, floor: Floor) -> None:
    """Into a file, which a person may change while the place is not at work."""
    write_text(file, tomli_w.dumps(floor.plain()), private=True)
