"""From one person's history to what it adds to sums, and from sums to a model; by the method's own report and combine.

Every contribution is worked out alone, in double precision: the same history gives the same whole numbers whenever it
is asked for, on one machine. Where another machine rounds otherwise, digests tell (`Store.forget`).
"""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from ownview.base.errors import DataError
from ownview.baselines.parts.counting import Counting, cells_of
from ownview.data.interactions import IdArray, IntArray, Interactions
from ownview.data.ragged import Ragged
from ownview.data.timeline import Timeline
from ownview.engine.threads import one_thread
from ownview.evaluation.protocol import Protocol
from ownview.federation.reporting import reporting
from ownview.seam.method import Federated
from ownview.seam.roles import HELD, HISTORY, PRIVATE, RECEIVED, TIMELINE
from ownview.seam.server import Arrived, Solved, Sums
from ownview.seam.training import Batch, Context, Params, World
from ownview.sums.agreement import StoreAgreement
from ownview.sums.blocks import (
    FRACTION,
    Axes,
    Block,
    Blocks,
    Change,
    axes_of,
    block_of,
    block_of_cells,
    change_of,
    checksums,
    digest,
)  # fmt: skip
from ownview.sums.histories import History, as_ids

_MOST_BYTES = 2**31
"""That one person's contribution may take while it is worked out."""


class Line(NamedTuple):
    """What trains of a person: places [l] of items, oldest first, and times [l] or None."""

    places: IntArray
    times: IntArray | None


class Summing(ABC):
    """A method whose model follows from sums over people.

    Args:
        agreement: of the store.
        agreed: received values that clients work with, whole tables of `items` rows.
        items: places that sums have room for.
    """

    def __init__(self, agreement: StoreAgreement, agreed: Params, items: int) -> None:
        self.agreement, self.agreed, self.items = agreement, agreed, items

    @classmethod
    def of(cls, agreement: StoreAgreement, agreed: Params, items: int) -> Summing:
        """Of a method that reports, or of a model that counts."""
        kind = _Counted if isinstance(agreement.model, Counting) else _Reported
        return kind(agreement, {name: widened(value, items) for name, value in agreed.items()}, items)

    @abstractmethod
    def shapes(self, items: int) -> dict[str, tuple[int, ...]]:
        """Of the sums, by name, for so many items."""

    @abstractmethod
    def contribution(self, line: Line) -> Blocks:
        """What one person adds."""

    @abstractmethod
    def solve(self, sums: Mapping[str, IntArray], kept: Params, clients: int, places: IntArray) -> Solved:
        """The model's values from sums in steps, of the items at some places; `Solved.how` begins with what was done.

        Args:
            sums: by name, matrices of these items.
            kept: what the solution before kept; empty for none.
            clients: that have added to the sums.
            places: of the items, for agreed values.
        """

    def bytes_needed(self, length: int) -> int:
        """While the contribution of a history of so many rows is worked out: four times its own."""
        items = min(length, self.items)
        return 32 * sum(rows.size(items) * columns.size(items) for rows, columns in self.axes.values())

    @cached_property
    def axes(self) -> dict[str, Axes]:
        """Rows and columns of every sum."""
        small, large = self.shapes(self.items), self.shapes(self.items + 1)
        return {name: axes_of(shape, large[name]) for name, shape in small.items()}

    def digest(self, blocks: Blocks) -> str:
        """SHA-256 of the checksums of a contribution's rows, whatever room the files have.

        Rows and columns are named by item, then by number of an item.
        """
        found = {}
        for name, block in blocks.items():
            rows, columns = (
                part % self.items * axis.per_item + part // self.items if axis.per_item else part
                for axis, part in zip(self.axes[name], (block.rows, block.columns), strict=True)
            )
            down, one = np.argsort(rows, kind="stable"), np.zeros(1, dtype=np.int64)
            found[name] = Block(rows[down], one, checksums(block.steps, columns)[down, None])
        return digest(found)

    def change(self, after: Blocks, before: Blocks) -> Change:
        """What makes one contribution of another; of what was nothing or becomes nothing, that is {}."""
        return {
            name: change_of(after.get(name), before.get(name), self.axes[name][1].size(self.items))
            for name in {**after, **before}
        }

    def require(self, name: str, length: int) -> None:
        """Refuse a history whose contribution does not fit into memory."""
        needed = self.bytes_needed(length)
        if needed > _MOST_BYTES:
            most = length
            while most > 1 and self.bytes_needed(most) > _MOST_BYTES:
                most -= most // 8 + 1
            raise DataError(
                f"user {name}: a history of {length:,} rows would take {needed / 1e9:,.0f} GB to add; expected about "
                f"{most:,} rows at most: is it one person?"
            )

    def works(self, people: Mapping[str, History], ids: Mapping[int, str]) -> dict[str, Callable[[], Blocks]]:
        """By name, what works the contribution of a person out, here or in any thread; `ids` of items by place."""
        for name, one in people.items():
            self.require(name, len(one.places))
        lines = _lines(people, ids, self.agreement.experiment.protocol, self.agreement.order)
        return {name: partial(self._alone, lines.get(name)) for name in people}

    def _alone(self, line: Line | None) -> Blocks:
        with one_thread():
            return {} if line is None else self.contribution(line)

    def each(self, people: Mapping[str, History], ids: Mapping[int, str]) -> Iterator[tuple[str, Blocks]]:
        """Contributions of some people by name, one after the other."""
        return ((name, work()) for name, work in self.works(people, ids).items())

    def contributions(self, people: Mapping[str, History], ids: Mapping[int, str]) -> dict[str, Blocks]:
        """All of them at once."""
        return dict(self.each(people, ids))


def widened(value: Tensor, items: int) -> Tensor:
    """A table of items with rows of zeros behind for places that are free."""
    return torch.cat([value, value.new_zeros(items - len(value), *value.shape[1:])])


def _lines(people: Mapping[str, History], ids: Mapping[int, str], rules: Protocol, order: str) -> dict[str, Line]:
    """As the protocol prepares everybody's rows; who has too few is left out."""
    kept = {name: one for name, one in people.items() if len(one.places)}
    if not kept:
        return {}
    held = np.unique(np.concatenate([one.places for one in kept.values()]))
    times = [one.times for one in kept.values() if one.times is not None]
    data = Interactions(
        name="rows",
        users=as_ids(list(kept)),
        items=_as_known(held, ids),
        offsets=np.concatenate([[0], np.cumsum([len(one.places) for one in kept.values()])]).astype(np.int64),
        item=np.searchsorted(held, np.concatenate([one.places for one in kept.values()])),
        row=np.concatenate([one.rows for one in kept.values()]),
        timestamp=np.concatenate(times) if len(times) == len(kept) else None,
        clock=order == "times",
    )
    try:
        split = rules.prepare(data)
    except DataError:  # no person has enough rows
        return {}
    place = dict(zip(data.items.tolist(), held.tolist(), strict=True))
    places = np.array([place[one] for one in split.data.items.tolist()], dtype=np.int64)
    line, found = split.timeline, {}
    for k, name in enumerate(split.data.users.tolist()):
        when = None if line.times is None else line.times.of(k).numpy()
        found[str(name)] = Line(places[line.items.of(k).numpy()], when)
    return found


def _as_known(held: IntArray, ids: Mapping[int, str]) -> IdArray:
    return np.array([ids[place] for place in held.tolist()], dtype=object)


class _Reported(Summing):
    """A federated method whose clients report."""

    def __init__(self, agreement: StoreAgreement, agreed: Params, items: int) -> None:
        super().__init__(agreement, agreed, items)
        model = agreement.model
        assert isinstance(model, Federated)
        self.method: Federated = model
        self.client = model.client(self._world(items))
        self.work = reporting(self.client)
        params = self.client.params
        self.own = {
            name: one.drawn(name, items, agreement.experiment.seed).double()
            for name, one in params.items()
            if one.role is PRIVATE
        }
        given = {name: value.double() for name, value in agreed.items()}
        self.received = self.work.prepare_download(given) if given else {}
        none, zero = torch.zeros(0, dtype=torch.long), torch.zeros(0, dtype=torch.float64)
        empty = torch.zeros((), dtype=torch.float64).expand(items)
        self.batch = Batch(none, zero, zero, empty, empty, none)

    def _world(self, items: int) -> World:
        return World(2, items, self.agreement.order)

    def shapes(self, items: int) -> dict[str, tuple[int, ...]]:
        return {name: one.shape for name, one in reporting(self.method.client(self._world(items))).sends.items()}

    def bytes_needed(self, length: int) -> int:
        """Or what the method says, which may look at the latest items alone."""
        return min(super().bytes_needed(length), 8 * self.work.needed(length))

    def contribution(self, line: Line) -> Blocks:
        values = dict(self.own) | self.received
        places, count = torch.from_numpy(line.places), len(line.places)
        for name, param in self.client.params.items():
            if param.role is TIMELINE:
                times = torch.arange(count) if line.times is None else torch.from_numpy(line.times)
                now = count if self.agreement.moment is None else self.agreement.moment
                values |= {f"{name}.rows": places, f"{name}.times": times, f"{name}.now": torch.tensor(now)}
                values[f"{name}.mask"] = torch.ones(count, dtype=torch.float64)
            elif param.role is HISTORY:
                values[name] = torch.zeros(self.items, dtype=torch.float64).index_fill(0, places, 1.0)
        with torch.no_grad():
            sent, _ = self.work.report(values, self.batch, Context(self.agreement.round))
        return {name: block for name, one in sent.items() if (block := block_of(one)).steps.size}

    def solve(self, sums: Mapping[str, IntArray], kept: Params, clients: int, places: IntArray) -> Solved:
        server, world = self.method.server(self._world(len(places))), self._world(len(places))
        shapes = {name: one.shape for name, one in reporting(self.method.client(world)).sends.items()}
        combine = server.combine
        assert isinstance(combine, Sums)
        whole = {name: _numbers(value).reshape(shapes[name]) for name, value in sums.items()}
        begun = time.perf_counter()
        if combine.again is not None:
            found = combine.again(whole, kept)
        else:
            single = {name: value.float() for name, value in whole.items()}
            seed = self.agreement.experiment.seed
            values = {
                name: (self.agreed[name][places] if name in self.agreed else one.drawn(name, len(places), seed)).float()
                for name, one in self.method.client(world).params.items()
                if one.role in (HELD, RECEIVED)
            }
            new = combine.combine(single, values, Arrived(self.agreement.round, clients))
            found = Solved(values | new, {}, "whole factorisation")
        return Solved(found.values, found.kept, f"{found.how}, {time.perf_counter() - begun:.2f} s")


class _Counted(Summing):
    """A central model that counts."""

    @property
    def _model(self) -> Counting:
        model = self.agreement.model
        assert isinstance(model, Counting)
        return model

    def shapes(self, items: int) -> dict[str, tuple[int, ...]]:
        return self._model.shapes(items)

    def contribution(self, line: Line) -> Blocks:
        times = None if line.times is None else Ragged.one(torch.from_numpy(line.times))
        counted = self._model.counted(Timeline(Ragged.one(torch.from_numpy(line.places)), times), self.items)
        shapes = self.shapes(self.items)
        return {name: block_of_cells(cells, math.prod(shapes[name][1:])) for name, cells in counted.items()}

    def solve(self, sums: Mapping[str, IntArray], kept: Params, clients: int, places: IntArray) -> Solved:
        begun = time.perf_counter()
        cells = {name: cells_of(value.reshape(-1) / 2.0**FRACTION) for name, value in sums.items()}
        learned = self._model.learned_from(cells, len(places))
        return Solved(learned, {}, f"counted, {time.perf_counter() - begun:.2f} s")


def _numbers(steps: IntArray) -> Tensor:
    return torch.from_numpy(steps / 2.0**FRACTION)
