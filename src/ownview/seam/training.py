"""Parts of a client's training: batches, steps and phases."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from torch import Tensor

from ownview.base.items.item_table import ItemTable
from ownview.seam.optimizers import Optimizer, Sgd
from ownview.seam.protection import Protection

Params = dict[str, Tensor]
"""One client's values by name. A parameter declared with `rows` has the rows at hand as its first axis."""


@dataclass(frozen=True)
class World:
    """Facts about the data that a method may use to declare parameters and phases.

    Args:
        num_clients: n.
        num_items: m.
        order: what is known of the order of a client's items: "times" where they have timestamps, "rows" where the rows
            of the data are in time order but have no times, "none".
        protection: the accounted budget that everything which leaves clients is under; None where there is none.
        items: public item data by column; None without. `item_features` and
            `item_likeness` make parameters of it.
        num_new: the last so many items are new: they have no interaction in training.
        user_columns: columns that clients have about their users; `user_features` makes a parameter of them.
        ratings: whether clients have ratings of their items.
        grows: whether histories may grow from one round to the next, as on devices.
    """

    num_clients: int
    num_items: int
    order: str = "times"
    protection: Protection | None = None
    items: ItemTable | None = None
    num_new: int = 0
    user_columns: tuple[str, ...] = ()
    ratings: bool = False
    grows: bool = False


ANY_WORLD = World(num_clients=2, num_items=4)
"""Names and roles of parameters do not depend on the world, so any will do to look at them."""


class Batch(NamedTuple):
    """One client's batch over R rows. The sample form and the row form say the same thing.

    rows:      [S] which row each sample is about
    labels:    [S] 1 for a positive, 0 for a negative
    mask:      [S] 1 for a sample, 0 for padding
    positives: [R] how often each row stands in the batch as a positive
    counts:    [R] how often each row stands in the batch at all
    partners:  [S] the row of the positive that each sample was drawn for, its own row for a positive; rows of partners
               are always at hand, in whichever batch the positive itself stands. [0] unless the method asks for
               `pairs`.
    """

    rows: Tensor
    labels: Tensor
    mask: Tensor
    positives: Tensor
    counts: Tensor
    partners: Tensor


@dataclass(frozen=True)
class Context:
    """Context of a loss, an opening or a shrink besides values and data.

    Args:
        round: from 1. Code that reads it cannot be recorded or compiled once for all rounds; numbers that depend on the
            round belong into `numbers`, which change without new recordings.
        phase: place in the method's `phases`, from 0.
        numbers: by name, those of the client's `by_round`; numbers, or tensors [].
    """

    round: int
    phase: int = 0
    numbers: Mapping[str, float | Tensor] = field(default_factory=dict)

    def in_phase(self, phase: int) -> Context:
        """The same in another phase."""
        return replace(self, phase=phase)


ByRound = Callable[[int], Mapping[str, float]]
"""Round, from 1 -> numbers that go with the rounds, by name: always the same names."""


Shrink = Callable[[Batch, Context], Tensor]
"""[R] for tables, [] for others: the weight of |x| in a client's loss, for every row."""


@dataclass(frozen=True)
class Step:
    """One step on a batch: a fresh forward pass, then `names` move and nothing else does.

    Args:
        names: the parameters that move.
        optimizer: how.
        alongside: what moves by the same forward pass with an optimiser of its own (another rate, say).
        shrink: a weight of |x| that is not differentiated but applied exactly (a proximal step): after the gradient
            step at rate r, x <- sign(x) max(|x| - r weight, 0). |x| must then not be in the loss as well. The weight
            of rows outside the batch must be 0: they stay as they are. One weight serves all `names`, so tables do not
            stand with others in such a step. `Sgd` only: there is no single rate otherwise.
        clip: the largest norm of the gradient of all `names` together, g <- g min(1, clip / |g|); 0 for none.
    """

    names: tuple[str, ...]
    optimizer: Optimizer
    alongside: Step | None = None
    shrink: Shrink | None = None
    clip: float = 0.0

    def __post_init__(self) -> None:
        if self.shrink is not None and not isinstance(self.optimizer, Sgd):
            raise ValueError(f"a step that shrinks needs Sgd, which has one rate, not {self.optimizer}")

    @property
    def parts(self) -> tuple[Step, ...]:
        """This step and what moves alongside."""
        return (self,) if self.alongside is None else (self, *self.alongside.parts)


Opening = Callable[[Params, Context], Params]
"""One client's values, and when -> new values for some of them."""

PARTS = ("all", "support", "query")
"""Samples of a phase. Support is half of a client's positives, the larger half of an odd number, each with its own
negatives; query is the other half, empty where there is one positive. The halves are drawn anew in every round."""


@dataclass(frozen=True)
class Phase:
    """`epochs` passes over the client's samples; on every batch the steps run in turn.

    Phases run one after the other; a loss learns from its context in which it is. Optimisers start fresh in every
    phase of every round.

    Args:
        steps: on every batch.
        epochs: passes.
        opening: called before the first batch with the client's values; returns new ones for some of them
            (`ownview.BeginWith`: its own table, as it received one beside that). It is a pure function like a loss, and
            is called again with whole tables for the rows that are not at hand; so a row may depend only on itself, on
            the same row of other tables, and on values without rows. A shared table that is rewritten everywhere needs
            a table `received_as` beside it, and no `squares_outside`.
        everywhere: whether the opening is for all rows of a table, at hand or not, or only for those that the
            client's samples of this round are about.
        tolerance: a client leaves the phase early, after the first epoch that changes its running mean loss (over the
            phase's epochs so far) relatively by less than this; 0 lets everybody take all epochs.
        part: the samples it passes over, one of `PARTS`.
        before_epoch: called before every epoch with the client's values; returns new ones for private parameters
            without rows, which stay as they are during the epoch.
    """

    steps: tuple[Step, ...]
    epochs: int
    opening: Opening | None = None
    everywhere: bool = True
    tolerance: float = 0.0
    part: str = "all"
    before_epoch: Opening | None = None

    def __post_init__(self) -> None:
        if self.part not in PARTS:
            raise ValueError(f"a phase passes over one of {PARTS}, not {self.part!r}")


@dataclass(frozen=True)
class BeginWith:
    """An opening that replaces a client's own table by one it received.

    It is a value and not just a function, so that a plug-in can see what a round begins with, and let it begin
    otherwise.

    Args:
        table: name of the client's own table.
        received: name of the table that takes its place.
    """

    table: str
    received: str

    def __call__(self, p: Params, context: Context) -> Params:
        """The own table, as it was received."""
        return {self.table: p[self.received]}
