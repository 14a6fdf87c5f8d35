"""A blend of recommenders: every client adds up their standardised scores, with weights that all clients found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from ownview.base.errors import SettingError
from ownview.config.settings import Settings, setting

MOST_PARTS = 8
"""Parts of a blend: so many have a lattice of weights that clients can be asked about, see `weights`."""


@dataclass(frozen=True)
class Blend(Settings):
    """score = sum over parts k of w_k (s_k - mean(s_k)) / standard deviation(s_k), over all items of one user.

    The weights w (w_k >= 0, sum 1) have the highest sum over clients of NDCG@10 on validation among the points of a
    lattice and of the ever smaller moves from there: every client sends one number a point, and the server sums.
    Clients whose last item lies more than a pause behind them choose apart from the others, where there are enough of
    both.
    """

    name: ClassVar[str] = "blend"
    title: ClassVar[str] = "Blend at home"
    summary: ClassVar[str] = "standardised scores of several models added up, weights by summed validation wins"
    paper: ClassVar[str] = "none"
    federated: ClassVar[bool] = True
    """As federated as its parts: what it adds is a sum over clients."""

    leaves: ClassVar[str] = "what its parts send; validation wins by weights"
    """The device, in words: it has no client of its own whose roles would say it."""

    parts: tuple[str, ...] = setting(
        ("fedease", "fednext", "fedease nearness=inf recency=inf"),
        "what is blended: methods, each with its settings, as in 'fednext rank=512'",
    )
    own: float = setting(
        0.0, "weight of a client's own wins beside the mean of all, in choosing its weights; 0 for the same for all",
        low=0,
    )  # fmt: skip
    pause_days: float = setting(
        1.0, "days since the last item, after which clients choose weights apart", above=0, afterwards=True
    )
    weights: tuple[float, ...] = setting(
        (), "found before: a weight a part, then the same for clients behind a pause; none to find them on validation",
        low=0, afterwards=True,
    )  # fmt: skip

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 2 <= len(self.parts) <= MOST_PARTS:
            raise SettingError(
                f"blend setting parts={self.parts}: expected 2 to {MOST_PARTS} parts, found {len(self.parts)}"
            )
        if len(self.weights) not in (0, 2 * len(self.parts)):
            raise SettingError(
                f"blend setting weights={self.weights}: expected {2 * len(self.parts)} numbers for {len(self.parts)} "
                f"parts, found {len(self.weights)}"
            )


class Part(NamedTuple):
    """One part of a blend, written METHOD NAME=VALUE ... @FOLDER; several values of one setting are parted by /.

    Args:
        method: its name.
        settings: as text; what is not named has its default.
        folder: of the finished run whose values are taken, one that is no absolute path being looked for beside the
            folder of the blend; empty where the part is trained.
    """

    method: str
    settings: Mapping[str, str]
    folder: str = ""

    @classmethod
    def read(cls, text: str) -> Part:
        """From its text."""
        before, _, folder = text.partition(" @")
        method, *given = before.split() or [""]
        settings = {}
        for one in given:
            name, sign, value = one.partition("=")
            if not (name and sign and value):
                raise SettingError(f"blend setting parts={text!r}: expected METHOD NAME=VALUE ..., found {one!r}")
            settings[name] = value.replace("/", ",")
        return cls(method, settings, folder)

    @classmethod
    def of(cls, method: str, settings: Mapping[str, Any], folder: str = "") -> Part:
        """From typed settings."""
        return cls(method, {name: _text(value) for name, value in settings.items()}, folder)

    def __str__(self) -> str:
        given = (f"{name}={value.replace(',', '/')}" for name, value in self.settings.items())
        return " ".join([self.method, *given]) + (f" @{self.folder}" if self.folder else "")


def names_of(parts: Sequence[str]) -> list[str]:
    """Names of the parts: the method, with settings in brackets where parts of one method differ.

    Runs of one method with the same settings, which differ in their seed alone, are numbered.
    """
    read = [Part.read(text) for text in parts]
    names = []
    for one in read:
        others = [other.settings for other in read if other.method == one.method]
        own = (
            f"{name}={value}"
            for name, value in one.settings.items()
            if any(other.get(name) != value for other in others)
        )
        settings = " ".join(own)
        names.append(f"{one.method} ({settings})" if settings else one.method)
    return [f"{one} no. {names[: k + 1].count(one)}" if names.count(one) > 1 else one for k, one in enumerate(names)]


def _text(value: Any) -> str:
    return ",".join(map(str, value)) if isinstance(value, tuple | list) else str(value)
