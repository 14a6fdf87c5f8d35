"""The words of the seam between a method and what runs it. Read this first.

A method is written for ONE client. It declares its parameters (`Param`), scores the item rows it is given,
and says which parameters a step moves (`Step`, `Phase`). How many clients train at once, on which device and
where the values come from is the engine's business.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from torch import Tensor

from ownview.seam.initial import Initial, Normal
from ownview.seam.optimizers import Optimizer, Sgd

Params = dict[str, Tensor]
"""One client's values by name. A parameter declared with `rows` has the rows at hand as its first axis."""


@dataclass(frozen=True)
class World:
    """What a method may know of the data when it declares parameters and phases."""

    num_clients: int
    num_items: int


@dataclass(frozen=True)
class Param:
    """One parameter of a client.

    Args:
        shape: the shape of one value; of one item's row when `rows` is set.
        rows: one value per item: a table. The method sees only the rows at hand.
        shared: downloaded, uploaded where training moves it, and averaged or mixed (`Method.server_mixing`) by the
            server. This and `reported` are the ONLY ways anything leaves a client.
        kept: (shared only) the client predicts with the copy it trained in the round it last took part in, not with
            the average; one that never took part predicts with the initial values.
        beside: (kept tables only) the client goes on from its own copy, which what it receives does not replace: that
            stands beside it under this name and never moves. A client that takes part for the first time begins with
            a copy of what it received. The whole own table is uploaded. In `scores` and `readings` the table beside is
            the newest the server has for the client; where a client does not receive in a round (federation setting
            `receiving`), its own table stands there too.
        rest: (tables only) the client also sees, as NAME.rest, a number []: the sum of squares of the rows that are not
            at hand; of received tables beside it likewise. Padding rows are zero in training then, so that the sum of
            squares of NAME plus NAME.rest is that of the whole table.
        fresh: (private, without rows) nothing of it outlives a round: a client begins every round, and everything it
            does before it predicts (`Method.before_predicting`), with the initial values.
        common: (mixed tables only, see `Method.server_mixing`) the plain mean over clients of their mixtures is
            received too, and stands beside under this name.
        reported: (private values without rows only) the server sees the client's newest value after every round it
            takes part in, for what it does by similarity of clients. Nobody else does.
        initial: the values every client and the server start from.
    """

    shape: tuple[int, ...]
    rows: bool = False
    shared: bool = False
    kept: bool = False
    beside: str = ""
    rest: bool = False
    fresh: bool = False
    common: str = ""
    reported: bool = False
    initial: Initial = Normal(1.0)

    def __post_init__(self) -> None:
        if self.kept and not self.shared:
            raise ValueError("kept makes sense for shared parameters only: private ones stay anyway")
        if self.beside and not (self.kept and self.rows):
            raise ValueError("beside makes sense for kept tables only: others have no copy of their own to go on from")
        if self.rest and not self.rows:
            raise ValueError("rest makes sense for tables only: of other parameters everything is at hand")
        if self.fresh and (self.shared or self.rows):
            raise ValueError("fresh makes sense for private parameters without rows only")
        if self.common and not self.beside:
            raise ValueError("common makes sense for tables with a mixture beside them only")
        if self.reported and (self.shared or self.rows):
            raise ValueError("reported makes sense for private values without rows: the server sees shared ones anyway")

    @property
    def own(self) -> bool:
        """Whether the client holds a value of its own between rounds."""
        return (self.kept or not self.shared) and not self.fresh


def visible(params: Mapping[str, Param]) -> dict[str, Param]:
    """Everything a client sees by name: its parameters, the tables received beside them, and rests."""
    seen = dict(params)
    for name, param in params.items():
        tables = [table for table in (name, param.beside, param.common) if table]
        seen |= dict.fromkeys(tables, param)
        seen |= {f"{table}.rest": Param(()) for table in tables if param.rest}
    return seen


class Batch(NamedTuple):
    """One client's batch over R rows. The sample form and the row form say the same thing.

    rows:      [S] which row each sample is about
    labels:    [S] 1 for a positive, 0 for a negative
    mask:      [S] 1 for a sample, 0 for padding
    positives: [R] how often each row stands in the batch as a positive
    counts:    [R] how often each row stands in the batch at all
    """

    rows: Tensor
    labels: Tensor
    mask: Tensor
    positives: Tensor
    counts: Tensor


@dataclass(frozen=True)
class Context:
    """What a loss, an opening or a shrink may depend on besides values and data.

    Args:
        round: from 1.
        phase: place in the method's `phases`, from 0.
    """

    round: int
    phase: int = 0


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
    """

    names: tuple[str, ...]
    optimizer: Optimizer
    alongside: Step | None = None
    shrink: Shrink | None = None

    def __post_init__(self) -> None:
        if self.shrink is not None and not isinstance(self.optimizer, Sgd):
            raise ValueError(f"a step that shrinks needs Sgd, which has one rate, not {self.optimizer}")

    @property
    def parts(self) -> tuple[Step, ...]:
        """This step and what moves alongside."""
        return (self,) if self.alongside is None else (self, *self.alongside.parts)


Opening = Callable[[Params, Context], Params]
"""One client's values, and when -> new values for some of them."""

Draw = Callable[[str], Tensor]
"""A parameter's name -> its initial values drawn anew, others in every round; tables have all rows."""

ServerStep = Callable[[Params, Draw], Params]
"""Whole shared values by name, as the round's mean has left them -> new values for some of them. A pure function."""

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
            a table `beside` it, and no `rest`.
        everywhere: whether the opening is for all rows of a table, at hand or not, or only for those that the
            client's samples of this round are about.
        tolerance: a client leaves the phase early, after the first epoch that changes its running mean loss (over the
            phase's epochs so far) relatively by less than this; 0 lets everybody take all epochs.
        part: the samples it passes over, one of `PARTS`.
    """

    steps: tuple[Step, ...]
    epochs: int
    opening: Opening | None = None
    everywhere: bool = True
    tolerance: float = 0.0
    part: str = "all"

    def __post_init__(self) -> None:
        if self.part not in PARTS:
            raise ValueError(f"a phase passes over one of {PARTS}, not {self.part!r}")
