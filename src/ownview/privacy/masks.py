"""Masks in the setting `privacy`, with a budget or without one."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from ownview.base.errors import SettingError, suggestion
from ownview.privacy.masking.cohort import FEWEST
from ownview.privacy.masking.groups import FEWEST_GROUPS

MASKED = "masked"
_PARTS = "threshold=T, neighbours=K, groups=G, combine=median, masks=signed or masks=skipped"
EXPECTED = f"masked:clip=C with {_PARTS}"
NAMES = ("threshold", "neighbours", "masks", "groups", "combine")
"""Parts of the setting, of a distributed budget as well."""

_CARRIED = ("real", "signed", "skipped")
_COMBINED = ("alike", "median")
DROPOUTS = 0.2
"""Share of a round's clients that may drop out unless a threshold is given."""


@dataclass(frozen=True)
class Masks:
    """Settings of masks.

    Args:
        threshold: T, how many clients must send at least, in every group where there are groups; None for four fifths.
        neighbours: k, how many others a client shares masks with; None for as many as the cohort's size asks for.
        real: whether a simulation puts masks on and takes them off; the sums are the same without.
        signed: whether clients sign their keys and the set of those that are left, and look at each other's signatures
            (`privacy.masking.signatures`): what a server that lies needs to be refused.
        groups: G, in how many groups a round's clients are put by chance, each with a sum of its own; 1 for one sum.
        median: whether the median of the groups counts, number by number; else the sum of those that are alike.
    """

    threshold: int | None = None
    neighbours: int | None = None
    real: bool = True
    signed: bool = False
    groups: int = 1
    median: bool = False

    @property
    def parts(self) -> list[str]:
        """Parts as a setting writes them."""
        several = self.groups if self.groups > 1 else None
        numbers = (("threshold", self.threshold), ("neighbours", self.neighbours), ("groups", several))
        said = [] if self.real and not self.signed else ["masks=signed" if self.signed else "masks=skipped"]
        middle = ["combine=median"] if self.median else []
        return [f"{name}={value}" for name, value in numbers if value is not None] + middle + said

    def survivors(self, clients: int, text: str) -> int:
        """T for a sum of so many clients; refuses impossible numbers."""
        fewest, most = clients // self.groups, -(-clients // self.groups)
        whose = "a round" if self.groups == 1 else f"a group ({self.groups} of {clients} clients)"
        if fewest < FEWEST:
            raise wrong(text, f"{whose} has {fewest} clients, too few to hide among; at least {FEWEST} are needed")
        if self.groups > 1 and self.neighbours is not None:
            raise wrong(text, "in a group everybody is everybody's neighbour; no neighbours can be asked for")
        if self.threshold is None:
            return max(FEWEST, fewest - math.floor(DROPOUTS * fewest))
        least = max(FEWEST, most // 2 + 1)
        if not least <= self.threshold <= fewest:
            found = f"threshold {self.threshold}, and {whose} has {fewest} clients"
            raise wrong(text, f"{found}: from {least} to {fewest} can be asked for")
        return self.threshold


@dataclass(frozen=True)
class MaskedSums:
    """Sums that are masked and have no noise.

    Args:
        clip: C, the largest norm of everything that a client adds to the sums of a round.
        masks: their settings.
    """

    clip: float
    masks: Masks

    def __str__(self) -> str:
        return f"{MASKED}:{','.join([f'clip={self.clip:.12g}', *self.masks.parts])}"


def masked_sums(text: str) -> MaskedSums | None:
    """Read the setting; None where it names something else."""
    kind, _, given = text.partition(":")
    if kind != MASKED:
        return None
    pairs = [part.partition("=")[::2] for part in given.split(",") if part]
    named = dict(pairs)
    unknown = [name for name in named if name not in ("clip", *NAMES)]
    if unknown:
        raise wrong(text, f"{unknown[0]!r} is no part of it{suggestion(unknown[0], ('clip', *NAMES))}")
    if len(named) < len(pairs):
        raise wrong(text, "a part is given twice")
    try:
        clip = float(named.get("clip", "nan"))
    except ValueError:
        clip = math.nan
    if not (math.isfinite(clip) and clip > 0):
        raise wrong(text, f"clip {named.get('clip', 'is missing')!s}: sums of whole numbers need a bound above 0")
    return MaskedSums(clip, masks_of(named, text))


def masks_of(named: Mapping[str, str], text: str) -> Masks:
    """Masks from the parts of a setting."""
    carried = named.get("masks", "real")
    if carried not in _CARRIED:
        raise wrong(text, f"masks {carried!r}{suggestion(carried, _CARRIED)}")
    numbers = _whole(named, "threshold", text), _whole(named, "neighbours", text)
    groups, combine = _whole(named, "groups", text) or 1, named.get("combine", _COMBINED[0])
    if combine not in _COMBINED:
        raise wrong(text, f"combine {combine!r}{suggestion(combine, _COMBINED)}")
    if "groups" in named and groups < FEWEST_GROUPS:
        raise wrong(text, f"{groups} groups: of fewer than {FEWEST_GROUPS} none is the odd one")
    if "combine" in named and "groups" not in named:
        raise wrong(text, "combine is about groups; expected groups=G beside it")
    return Masks(
        *numbers, real=carried != "skipped", signed=carried == "signed", groups=groups, median=combine == "median"
    )


def _whole(named: Mapping[str, str], name: str, text: str) -> int | None:
    if name not in named:
        return None
    if not named[name].isdecimal() or not int(named[name]):
        raise wrong(text, f"{name} {named[name]!r} is no whole number above 0")
    return int(named[name])


def wrong(text: str, found: str) -> SettingError:
    """An error about the setting."""
    kind = text.partition(":")[0]
    expected = EXPECTED if kind == MASKED else f"{kind}:epsilon=E with {_PARTS}"
    return SettingError(f"federation setting privacy={text!r}: {found}; expected {expected}")
