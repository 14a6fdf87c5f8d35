"""The server's half: whom it chooses, how it combines what arrives, and what it does afterwards.

It sees messages and nothing else. `needs` says what of them: SUMS can be added up in a tree of machines, masked and
noised; EACH needs every single upload, and COORDINATES needs it number by number.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

import torch
from torch import Tensor

from ownview.seam.cohorts import Cohort
from ownview.seam.mixing import Mixing
from ownview.seam.training import Params

SUMS, EACH, COORDINATES = "sums", "each", "coordinates"

RowWeights = Callable[[Tensor], Tensor]
"""Changes of rows [B, R, ...] -> [B, R]: how much a client's row counts in the server's mean of that row."""

Draw = Callable[[str], Tensor]
"""A parameter's name -> its initial values drawn anew, others in every round; tables have all rows."""

ServerStep = Callable[[Params, Draw], Params]
"""Whole shared and held values by name, as the round's mean has left them -> new values for some of them. A pure
function."""


@dataclass(frozen=True)
class Arrived:
    """A round's facts for the server besides the sums.

    Args:
        round: from 1.
        clients: how many took part; at least one.
        weights: (a rule that needs each) [n] how much each client counts, summing to 1.
        staleness: (a rule that needs each) [n] how many rounds ago each client received what it worked on; 0 where
            rounds are synchronous.
    """

    round: int
    clients: int
    weights: Tensor = field(default_factory=lambda: torch.zeros(0))
    staleness: Tensor = field(default_factory=lambda: torch.zeros(0))


Combine = Callable[[Params, Params, Arrived], Params]
"""Sums by name, the server's values, and the round -> new values for some of the server's.

Sums may be overwritten: they are not read afterwards. Nothing else is changed.
"""


@dataclass(frozen=True)
class Mean:
    """The mean of the clients' changes.

    Args:
        weighting: clients count by their training "samples", or are "uniform".
        rows: a table's row is averaged over "all" clients, or over those whose samples "touched" it.
    """

    needs: ClassVar[str] = SUMS
    weighting: str = "samples"
    rows: str = "all"


@dataclass(frozen=True)
class RowMean:
    """Every row of a table has weights of its own: sum_u q_ui (x_ui - x_i) / sum_u q_ui.

    Args:
        weigh: gives q. Parameters without rows have the mean by samples.
    """

    needs: ClassVar[str] = SUMS
    weigh: RowWeights
    weighting: ClassVar[str] = "samples"
    rows: ClassVar[str] = "all"


@dataclass(frozen=True)
class Rule:
    """A method's own rule: the change of the shared values, computed from a round's uploads.

    By what it needs, `function` is

        "sums"         (mean, values, arrived) -> changes: of the mean change by name
        "each"         (changes, values, arrived) -> changes: of every client's, by name [n, ...]; tables are whole
                       [n, m, ...], and 0 where a client sent no row
        "coordinates"  (changes, weights) -> change: of some numbers of one value, [n, k, ...] -> [k, ...]; weights
                       [n, k] are 0 where a client sent no row. Called for some rows at a time, so that a server never
                       holds all uploads written out; a value without rows comes as k = 1.

    `values` are the server's by name, shared and held. Of a held one (what the rule remembers: momentum, say) the
    function returns the new value in the place of a change. What it leaves out stays as it is. A pure function.

    Args:
        function: computes the change, as above.
        needs: "sums", which can be masked, noised and added up in a tree of machines; "each" or "coordinates".
        weighting: clients count by their training "samples", or are "uniform".
        rows: (sums) a table's row is averaged over "all" clients, or over those whose samples "touched" it.
    """

    function: Callable[..., Any]
    needs: str = SUMS
    weighting: str = "samples"
    rows: str = "all"

    def __post_init__(self) -> None:
        if self.needs not in (SUMS, EACH, COORDINATES):
            raise ValueError(f"a rule needs one of {(SUMS, EACH, COORDINATES)}, not {self.needs!r}")
        if not callable(self.function):
            raise ValueError(f"a rule is a function, not {self.function!r}")


ADVICE = "raise --memory or lower embedding_size"
"""What to do where a server's values do not fit in memory, unless a method knows better."""


@dataclass(frozen=True)
class Solved:
    """A solution from sums that are kept.

    Args:
        values: new values of the server's.
        kept: a cache that makes the next solution cheaper; empty to keep the previous one.
        how: it was solved, in words.
    """

    values: Params
    kept: Params
    how: str


Again = Callable[[Params, Params], Solved]
"""Sums in float64, and what the solution before them kept (empty where there was none) -> the solution."""


@dataclass(frozen=True)
class Sums:
    """Sums of clients' summands, and the values computed from them.

    Args:
        combine: new values of the server's.
        noise: that belongs to the method, as federation setting `privacy` writes it; that setting replaces it.
        working: numbers of the run's precision that `combine`, or a client's `prepare_download`, holds besides.
        advice: what to do where the server's values do not fit in memory.
        in_place: whether `combine` leaves new values where the sums were, so that these need no room besides.
        again: the same as `combine` from nothing, for sums that are kept and change a little at a time; None where
            solving anew is as cheap.
    """

    needs: ClassVar[str] = SUMS
    combine: Combine
    noise: str = "none"
    working: int = 0
    advice: str = ADVICE
    in_place: bool = False
    again: Again | None = None


AMONG = ("all", "receiving")
"""Whose tables a mixture is of."""


@dataclass(frozen=True)
class Server:
    """The server's half.

    Args:
        combine: how uploads are combined: a mean, sums, or a rule.
        mixing: how the server makes a table for each client from all personal tables; None for one mean for all. The
            server's optimiser and weighting do not apply to mixed tables; shares of the data do.
        mixed_among: whose tables a mixture is of: those of "all" clients that have uploaded, or of "receiving" ones,
            which receive in the next round (the federation's setting `receiving`). Then shares are among those, and
            the server has its own upload for everybody else.
        cohort: how the clients of a round are chosen by what they report; None for a plain draw. It applies where a
            share or a number of clients take part: not where all do, take turns, or are drawn each by itself.
        after: what the server does to the shared values after every round's mean; with `Sums` it is refused, because
            `combine` itself makes the shared values.
    """

    combine: Mean | RowMean | Sums | Rule = Mean()
    mixing: Mixing | None = None
    cohort: Cohort | None = None
    after: ServerStep | None = None
    mixed_among: str = "all"

    def __post_init__(self) -> None:
        if self.mixed_among not in AMONG:
            raise ValueError(f"a mixture is of tables among one of {AMONG}, not {self.mixed_among!r}")
        combine: Any = self.combine
        if not isinstance(combine, Mean | RowMean | Sums | Rule):
            near = f"Rule({_named(combine)}, needs=...)" if callable(combine) else "Mean()"
            _refuse("combine", combine, f"Mean(), RowMean(...), Sums(...) or a function as {near}")
        for what, method in (("mixing", "weights"), ("cohort", "choose")):
            if (one := getattr(self, what)) is not None and (isinstance(one, type) or not hasattr(one, method)):
                _refuse(what, one, f"an object with a method {method}, such as ov.{what.capitalize()} describes")
        if self.after is not None and (isinstance(self.after, type) or not callable(self.after)):
            _refuse("after", self.after, "a function of values and a draw")

    @property
    def needs(self) -> str:
        """SUMS, EACH or COORDINATES."""
        return self.combine.needs if self.mixing is None and self.cohort is None else EACH


def _refuse(what: str, found: object, expected: str) -> None:
    kind = f"the class {found.__name__}" if isinstance(found, type) else f"{type(found).__name__} {_named(found)}"
    raise ValueError(f"Server({what}=...) is {kind}; expected {expected}")


def _named(one: object) -> str:
    return str(getattr(one, "__name__", repr(one)))
