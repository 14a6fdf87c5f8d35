"""Which methods suit some data, and with which settings: a rule, so that nobody has to choose before a first table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ownview.config.settings import Value
from ownview.data.splits import Split

_FULL_FORM = 4_000
"""Items up to which FedNext holds items by items for three scales: 4,000 are about 6 GB while it solves."""

_RANK = 512
_TRAINED_ROWS = 300_000
"""Interactions up to which a method that trains in rounds ends within minutes on two cores."""

_ROUNDS = 40
_NEXT = "it learns what comes after what, from sums"


@dataclass(frozen=True)
class Suited:
    """A method to compare.

    Args:
        method: its name.
        settings: that differ from its defaults on such data.
        rounds: of training; methods that need fewer take fewer.
        words: what it does, for people who know no methods, in half a sentence; its summary where empty.
    """

    method: str
    settings: Mapping[str, Value] = field(default_factory=dict)
    rounds: int = 1
    words: str = ""


@dataclass(frozen=True)
class Selection:
    """methods: to compare; left_out: of the others, why, a sentence each."""

    methods: tuple[Suited, ...]
    left_out: tuple[str, ...]


def suited(split: Split) -> Selection:
    """Counts, closed forms, and one published system that trains.

    Without times and without an order nothing can be known of what comes next; many items take the rank form; much data
    leaves out what trains for hours.
    """
    methods, left_out = [Suited("popularity", words="it shows everybody what is taken most")], []
    ordered = split.order != "none"
    if ordered:
        methods.append(Suited("markov", words="it counts what was taken right after what"))
    methods += [
        Suited("ease", words="it learns which things go together, from all rows in one place"),
        Suited("fedease", words="it learns which things go together, from sums of pairs"),
    ]
    if not ordered:
        left_out.append("markov and fednext: the file has no times, so nothing is known of what came after what")
    elif split.num_items <= _FULL_FORM:
        methods.append(Suited("fednext", rounds=10, words=_NEXT))
    else:
        form: dict[str, Value] = {"rank": _RANK, "scales": (1.0, 4.0, 20.0), "horizon": 2.0}
        methods.append(Suited("fednext", form, rounds=10, words=_NEXT))
    if len(split.data) <= _TRAINED_ROWS:
        methods.append(
            Suited("pfedrec", rounds=_ROUNDS, words="it learns a table of items in rounds, fine-tuned for each person")
        )
    else:
        left_out.append(
            f"pfedrec: trains for long on more than {_TRAINED_ROWS:,} interactions; add it by --method pfedrec"
        )
    return Selection(tuple(methods), tuple(left_out))
