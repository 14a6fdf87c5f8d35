"""Which methods suit some data, and with which settings: a rule, so that no choice is needed before a first table."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from ownview.base.display.amounts import readable
from ownview.config.settings import Value
from ownview.data.splitting.splits import Split
from ownview.privacy.masks import masked_sums
from ownview.start.costs import Cost, Speed, cost_of, masking

_FULL_FORM = 4_000
"""Items up to which FedNext holds items by items for three scales: 4,000 are about 6 GB while it solves."""

_RANKS = (512, 256, 128, 64)
_ROUNDS = (40, 10)
_NEXT = "it learns what comes after what, from sums"


@dataclass(frozen=True)
class Suited:
    """A method to compare.

    Args:
        method: its name.
        settings: that differ from its defaults on such data.
        rounds: of training; methods that need fewer take fewer.
        measured: rounds from one measurement of validation to the next; the last is always measured.
        words: what it does, for people who know no methods, in half a sentence; its summary where empty.
        seconds: that it is expected to take; 0 where it was not reckoned.
        privacy: the federation's setting.
        way: to be private, as a table calls it; empty where none is compared.
    """

    method: str
    settings: Mapping[str, Value] = field(default_factory=dict)
    rounds: int = 1
    measured: int = 1
    words: str = ""
    seconds: float = 0.0
    privacy: str = "none"
    way: str = ""

    @property
    def place(self) -> str:
        """Name of the folder of its run."""
        return self.way.replace(" ", "-") or re.sub(r"[^A-Za-z0-9._-]+", "-", self.method).lstrip("-")


@dataclass(frozen=True)
class Selection:
    """methods: to compare; left_out: of the others, why, a sentence each."""

    methods: tuple[Suited, ...]
    left_out: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """The choice as plain values."""
        return asdict(self)

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Selection:
        """From plain values."""
        methods = [{**one, "settings": _settings(one["settings"])} for one in values["methods"]]
        return cls(tuple(Suited(**one) for one in methods), tuple(values["left_out"]))


def _settings(values: Mapping[str, Any]) -> dict[str, Value]:
    """Lists of JSON are tuples of a setting."""
    return {name: tuple(value) if isinstance(value, list) else value for name, value in values.items()}


@dataclass(frozen=True)
class Allowance:
    """What a start may take.

    Args:
        seconds: of the comparison and of the fit after it.
        memory: bytes that a run may hold beside the data.
        speed: of this machine.
    """

    seconds: float
    memory: float
    speed: Speed

    def cost(self, one: Suited, split: Split) -> Cost:
        """What a method would take."""
        cost = cost_of(one.method, one.settings, one.rounds, one.measured, split, self.speed)
        if masked_sums(one.privacy) is None:
            return cost
        more = masking(split, self.speed)
        return Cost(cost.seconds + more.seconds, cost.memory + more.memory)


def suited(split: Split, allowance: Allowance | None = None) -> Selection:
    """Counts, closed forms, and one published system that trains; in that order, as long as the budget lasts.

    Without times and without an order nothing can be known of what comes next. A method that does not fit is tried in
    smaller forms, and left out where none fits. The method that takes longest counts twice, for it may be fitted again.
    """
    chosen: list[Suited] = []
    left_out: list[str] = []
    seconds: dict[str, float] = {}
    if split.order == "none":
        left_out.append("markov and fednext: the file has no times, so nothing is known of what came after what")
    for forms in _wishes(split):
        fits = None
        for one in forms:
            cost = None if allowance is None else allowance.cost(one, split)
            if allowance is None or cost is None or _fits(cost, allowance, seconds):
                fits = replace(one, seconds=0.0 if cost is None else cost.seconds)
                break
        if fits is None:
            assert allowance is not None
            left_out.append(_reason(forms[-1], split, allowance))
            continue
        if fits.settings != forms[0].settings:
            left_out.append(
                f"a larger form of {fits.method}: rank={fits.settings['rank']} takes its place, for its cost"
            )
        elif fits.rounds != forms[0].rounds:
            left_out.append(
                f"{forms[0].rounds} rounds of {fits.method}: {fits.rounds} take their place, for their cost"
            )
        chosen.append(fits)
        seconds[fits.method] = fits.seconds
    return Selection(tuple(chosen), tuple(left_out))


def fitting(wished: Selection, split: Split, allowance: Allowance) -> Selection:
    """Methods that fit, in order, and the reason for each that does not."""
    chosen: list[Suited] = []
    left_out = list(wished.left_out)
    for one in wished.methods:
        cost = allowance.cost(one, split)
        if _fits(cost, allowance, {other.place: other.seconds for other in chosen}):
            chosen.append(replace(one, seconds=cost.seconds))
        else:
            left_out.append(
                f"{one.way}, {_reason(one, split, allowance)}" if one.way else _reason(one, split, allowance)
            )
    return Selection(tuple(chosen), tuple(left_out))


def _wishes(split: Split) -> list[tuple[Suited, ...]]:
    """Methods in order of what they are worth before anything is known, each with forms that take less and less."""
    ordered = split.order != "none"
    wished: list[tuple[Suited, ...]] = [(Suited("popularity", words="it shows everybody what is taken most"),)]
    if ordered:
        wished.append((Suited("markov", words="it counts what was taken right after what"),))
    wished.append((Suited("fedease", words="it learns which things go together, from sums of pairs"),))
    if ordered:
        full = (Suited("fednext", words=_NEXT),) if split.num_items <= _FULL_FORM else ()
        ranks = [rank for rank in _RANKS if rank < split.num_items]
        wished.append(
            (*full, *(Suited("fednext", _rank_form(rank), rounds=6, measured=6, words=_NEXT) for rank in ranks))
        )
    wished.append((Suited("ease", words="it learns which things go together, from all rows in one place"),))
    trained = "it learns a table of items in rounds, fine-tuned for each person"
    wished.append(tuple(Suited("pfedrec", rounds=rounds, measured=5, words=trained) for rounds in _ROUNDS))
    return [forms for forms in wished if forms]


def _rank_form(rank: int) -> dict[str, Value]:
    return {"rank": rank, "scales": (1.0, 4.0, 20.0), "horizon": 2.0}


def _fits(cost: Cost, allowance: Allowance, taken: Mapping[str, float]) -> bool:
    every = [*taken.values(), cost.seconds]
    return cost.memory <= allowance.memory and sum(every) + max(every) <= allowance.seconds


def _reason(one: Suited, split: Split, allowance: Allowance) -> str:
    cost = allowance.cost(one, split)
    if cost.memory > allowance.memory:
        return f"{one.method}: would hold {readable(int(cost.memory))} ({split.num_items:,} items), more than there is"
    minutes = max(round((2 * cost.seconds + allowance.seconds) / 60), 1)
    took = f"{cost.seconds / 60:.0f} min" if cost.seconds > 90 else f"{cost.seconds:.0f} s"
    return f"{one.method}: would take about {took} here, more than is left; --minutes {minutes} has room for it"
