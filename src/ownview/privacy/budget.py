"""A budget, as the setting `privacy` names it, before noise is computed from it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from ownview.base.errors import SettingError, suggestion
from ownview.privacy.masks import NAMES as OF_MASKS
from ownview.privacy.masks import Masks, masks_of
from ownview.seam.protection import DISTRIBUTED, MODES

EXPECTED = (
    "central:epsilon=E, distributed:epsilon=E or local:epsilon=E, with delta=D, clip=C or clip=adaptive, and "
    "noise=seeded for a simulation that must repeat and is not private; distributed also with threshold=T, "
    "neighbours=K, groups=G, combine=median, masks=signed or masks=skipped"
)
_NAMES = ("epsilon", "delta", "clip", "rounds", "noise")
_SECRET, _SEEDED = _SOURCES = ("secret", "seeded")
_ADAPTIVE = "adaptive"
DELTA = 1e-5


@dataclass(frozen=True)
class Budget:
    """A budget as it was asked for.

    Args:
        mode: one of `MODES`.
        epsilon: of all rounds together.
        delta: likewise.
        clip: C; None for the method's own, or the default.
        adaptive: whether C follows a private quantile.
        rounds: the budget is for; None where not given.
        masks: settings of the masks that hide single uploads; with mode "distributed" only.
        seeded: whether noise comes from the run's seed, so that runs repeat; nothing is private then.
    """

    mode: str
    epsilon: float
    delta: float = DELTA
    clip: float | None = None
    adaptive: bool = False
    rounds: int | None = None
    masks: Masks = field(default_factory=Masks)
    seeded: bool = False

    def __str__(self) -> str:
        parts = [f"epsilon={self.epsilon:.12g}"]
        parts += [f"delta={self.delta:.12g}"] if self.delta != DELTA else []
        parts += ["clip=adaptive"] if self.adaptive else [f"clip={self.clip:.12g}"] if self.clip is not None else []
        parts += [f"rounds={self.rounds}"] if self.rounds is not None else []
        parts += ["noise=seeded"] if self.seeded else []
        return f"{self.mode}:{','.join(parts + self.masks.parts)}"

    def for_rounds(self, rounds: int) -> Budget:
        """The budget spread over `rounds` rounds; if it names a number of rounds, it must be enough for these."""
        if self.rounds is not None and self.rounds < rounds:
            raise SettingError(
                f"federation setting privacy='{self}': the budget is for {self.rounds} rounds, and the run has "
                f"{rounds}; expected no rounds, or at least {rounds}"
            )
        return replace(self, rounds=self.rounds or rounds)


def budget(text: str) -> Budget | None:
    """Read the setting; None where it names no budget."""
    mode, _, given = text.partition(":")
    if mode not in MODES:
        return None
    pairs = [part.partition("=")[::2] for part in given.split(",") if part]
    named = dict(pairs)
    names = (*_NAMES, *(OF_MASKS if mode == DISTRIBUTED else ()))
    unknown = [name for name in named if name not in names]
    if unknown:
        raise _wrong(text, f"{unknown[0]!r} is no part of a {mode} budget{suggestion(unknown[0], names)}")
    if len(named) < len(pairs):
        raise _wrong(text, "a part is given twice")
    if "epsilon" not in named:
        raise _wrong(text, "epsilon is missing")
    delta = _number(named, "delta", text, DELTA)
    if delta >= 1:
        raise _wrong(text, f"delta {named['delta']!r} is not below 1")
    adaptive = named.get("clip") == _ADAPTIVE
    clip = None if adaptive or "clip" not in named else _number(named, "clip", text)
    rounds = _number(named, "rounds", text) if "rounds" in named else None
    if rounds is not None and rounds != int(rounds):
        raise _wrong(text, f"rounds {named['rounds']!r} is no whole number")
    whole = None if rounds is None else int(rounds)
    source = named.get("noise", _SECRET)
    if source not in _SOURCES:
        raise _wrong(text, f"noise {source!r} is neither secret nor seeded{suggestion(source, _SOURCES)}")
    masks, seeded = masks_of(named, text), source == _SEEDED
    return Budget(mode, _number(named, "epsilon", text), delta, clip, adaptive, whole, masks, seeded)


def _number(named: Mapping[str, str], name: str, text: str, usual: float = math.nan) -> float:
    if name not in named:
        return usual
    try:
        number = float(named[name])
    except ValueError:
        number = math.nan
    if not (math.isfinite(number) and number > 0):
        raise _wrong(text, f"{name} {named[name]!r} is not above 0")
    return number


def _wrong(text: str, found: str) -> SettingError:
    return SettingError(f"federation setting privacy={text!r}: {found}; expected {EXPECTED}")
