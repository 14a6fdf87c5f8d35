"""The client's half of a federated recommender: a value made of plain functions, written for ONE client.

A client reads a download, works, stores its private values, and writes an upload. Its work is one of two kinds: it
trains and sends what training changed (`Training`), or it works out summands from its own data and sends those
(`Reporting`). Nothing here knows how many clients there are, on which device they run, or how messages travel.

All functions are pure: no `.item()`, no `if` on tensor values (use `torch.where`), no BatchNorm, no randomness. Then
thousands of clients may run at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from torch import Tensor

from ownview.seam.honest_summands import Honest, Together
from ownview.seam.roles import Param
from ownview.seam.training import Batch, ByRound, Context, Params, Phase

Scores = Callable[[Params], Tensor]
"""One client's values -> [R] the score of every row at hand: touched rows in training, candidates in ranking."""

Loss = Callable[[Params, Batch, Context], Tensor]
"""One client's values, a batch, and when -> [] the mean loss over the batch."""

Change = Callable[[Params], Params]
"""Values by name -> new values for some of them."""


class Product(NamedTuple):
    """A summand [a, b] that is left^T right, with left [k, a] and right [k, b].

    Sums of products over clients are one product of stacked factors, so a summand is written out only where something
    has to be done to it before it leaves.
    """

    left: Tensor
    right: Tensor


class Patch(NamedTuple):
    """A summand that is 0 but where some rows and columns of its matrix [a, b] cross.

    Sums of patches are made cell by cell, and no more than a client's own cells travel: where a summand is items by
    items, that is its own items by its own items. A summand of other axes than two is the matrix of its first by all
    others.

    rows:    [k] of the matrix, each once but for padding, whose values are 0
    columns: [l] likewise; [0] for all b columns in order, so that whole rows are sent
    values:  [k, l], or [k, b]
    """

    rows: Tensor
    columns: Tensor
    values: Tensor

    @property
    def of_rows(self) -> bool:
        """Whether it is made of whole rows."""
        return self.columns.shape[-1] != self.values.shape[-1]


class Nearby(NamedTuple):
    """A symmetric summand of pairs of items, each the less the further apart: a patch that is not written out.

    It stands for exp(-|a - b| / tau) in the row of the item at place a and the column of the item at place b, items by
    items. Sums over clients are made without any client's cells; a single client's are a `Patch` as soon as they are
    looked at, sent or changed.

    rows: [k] items in order, padding in front of them
    mask: [k] 1 for an item, 0 for padding
    tau:  [] places after which a pair counts 1/e; infinite where all pairs count 1
    """

    rows: Tensor
    mask: Tensor
    tau: Tensor


Sent = Tensor | Product | Patch
"""A summand in one of its three forms: written out, a product, or a patch."""

Summands = Mapping[str, Sent | Nearby]
"""What one client sends in a round of sums, by name."""

Working = Callable[[int], int]
"""Length of a client's timeline -> numbers held at the same time."""

Report = Callable[[Params, Batch, Context], tuple[Summands, Params]]
"""One client's values, its samples over all items, and when -> what it sends, and new values for some of its own."""


@dataclass(frozen=True)
class Summand:
    """Declaration of a value that a reporting client sends.

    Args:
        shape: of the summand and of the sum; left^T right of a product and the matrix of a patch are brought to it.
        what: it is, in words for users.
        symmetric: whether it is a symmetric matrix, of which one half is enough on the way.
        honest: bounds of one client's; servers that see it refuse anything else.
        coarse: whether it is a patch of whole rows whose values are multiples of a power of two, -127 to 127 of them,
            by row, so that a byte each is enough on the way (`parts.shortened`).
    """

    shape: tuple[int, ...]
    what: str
    symmetric: bool = False
    honest: Honest = Honest()  # noqa: RUF009 - frozen
    coarse: bool = False


def _no_numbers(number: int) -> Mapping[str, float]:
    return {}


@dataclass(frozen=True)
class Training:
    """Work that moves parameters on batches of positives and drawn negatives.

    Args:
        phases: what is done, in order.
        loss: of a batch.
        negatives: drawn for every positive, anew each round.
        batch_size: samples in a batch.
        pairs: whether batches say which positive each negative was drawn for (`Batch.partners`).
        by_round: numbers that depend on the round, given to losses, openings and shrinks in their context.
    """

    phases: tuple[Phase, ...]
    loss: Loss
    negatives: int
    batch_size: int
    pairs: bool = False
    by_round: ByRound = _no_numbers

    def most_samples(self, num_items: int) -> int:
        """Cap on the sample count of a client's weight: samples of a history with every item once."""
        return num_items * (1 + self.negatives)


def _as_it_came(received: Params) -> Params:
    return received


@dataclass(frozen=True)
class Reporting:
    """Work that makes summands, of which the server sees sums over clients alone.

    Args:
        sends: what leaves the client, by name.
        report: computes it.
        negatives: drawn for every positive of the batch; 0 where the report needs no samples (the batch is 0 then).
        prepare_download: computes on received values alone, not on private data: the same for all clients, so a
            simulation does it once a round.
        receives_after: whether clients receive once the server has combined instead of before they work: `report` then
            sees no received value, and what they receive serves `after_round` and `scores`.
        after_round: (with `receives_after`) new values of the client's own, from what was received.
        working: numbers that one client's work, or its scoring, holds at the same time, for the size of blocks; where
            they depend on how long its timeline is, a function of that.
        together: what summands must have together, beside what each declares; None for nothing.
    """

    sends: Mapping[str, Summand]
    report: Report
    negatives: int = 0
    prepare_download: Change = _as_it_came
    receives_after: bool = False
    after_round: Change | None = None
    working: int | Working = 1
    together: Together | None = None

    def needed(self, length: int) -> int:
        """Numbers held while a client with a timeline of this length works."""
        return self.working if isinstance(self.working, int) else self.working(length)

    def __post_init__(self) -> None:
        if self.after_round is not None and not self.receives_after:
            raise ValueError("after_round works on what is received after the round; expected receives_after=True")


Work = Training | Reporting


def _nothing(p: Params) -> Params:
    return {}


@dataclass(frozen=True)
class Client:
    """One client's half.

    Args:
        params: what it has, by name and role.
        work: what it does in a round.
        scores: of the rows at hand.
        before_predicting: trained on all its samples before it predicts, with its own negatives: private or fresh
            parameters without rows. Nothing of it is sent or stored. Phases count on from those of `work`.
        whole_rows: whether a row's score depends on other rows too; then `scores` gets whole tables in ranking.
        readings: diagnostics of a watched client, from whole tables [m, ...]; those of more than 128 numbers are
            recorded after the last round only.
    """

    params: Mapping[str, Param]
    work: Work
    scores: Scores
    before_predicting: tuple[Phase, ...] = ()
    whole_rows: bool = False
    readings: Change = _nothing

    @property
    def phases(self) -> tuple[Phase, ...]:
        """Phases of training; none where the client reports."""
        return self.work.phases if isinstance(self.work, Training) else ()

    @property
    def loss(self) -> Loss:
        """Loss of training."""
        return self.training.loss

    @property
    def training(self) -> Training:
        """The work of a client that trains."""
        if not isinstance(self.work, Training):
            raise TypeError("a client that reports has no phases and no loss")
        return self.work
