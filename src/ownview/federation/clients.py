"""State of clients between rounds: private values and tables. A device is the same with one client."""

from __future__ import annotations

import math
from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass, replace
from math import prod

import torch
from torch import Tensor

from ownview.base.randomness import chances
from ownview.data.ragged import Ragged
from ownview.engine.machine import Machine
from ownview.engine.samples import Samples
from ownview.federation.facts import OwnFacts
from ownview.federation.histories import Histories
from ownview.federation.tables.overlays import OverlayTables, personal_tables, stored_bytes
from ownview.federation.timelines import Timelines
from ownview.messages.download import Download
from ownview.messages.upload import wide
from ownview.seam.client import Client, Reporting
from ownview.seam.roles import CHANCE, HISTORY, KEPT, OWN_DATA, PERSONAL, TIMELINE, USER_FEATURES, Param, visible
from ownview.seam.training import Params

Axes = dict[str, int | None]
"""The client axis of each value: 0, or None where all clients use the same value."""


@dataclass(frozen=True, eq=False)
class Opened:
    """What clients start a round with.

    Args:
        values: everything a client sees, by name [B, ...]; tables hold the touched rows, [B, R, ...].
        beside: received tables that stand beside personal ones, [B, m, ...], by the name that clients see.
    """

    values: Params
    beside: Params


class Clients:
    """Private values and personal tables of n clients, by position.

    Args:
        params: what the method declares.
        num_items: m.
        identities: [n] stable identities of the clients, which key all randomness.
        seed: of the run; initial values and chances follow from it and the parameter's name.
        machine: device and precision of the values.
        train: every client's training items.
        timelines: the same in time order.
        changed_rows: how many rows of its tables a client changes in a round; see `changed_rows`.
        facts: what clients know besides; None for nothing.
    """

    def __init__(
        self,
        params: Mapping[str, Param],
        num_items: int,
        identities: Tensor,
        seed: int,
        machine: Machine,
        train: Ragged,
        timelines: Timelines,
        changed_rows: int,
        facts: OwnFacts | None = None,
    ) -> None:
        self.facts = (facts or OwnFacts()).to(machine.device)
        self.params, self.num_items, self.identities = dict(params), num_items, identities.to(machine.device)
        self.timelines, self.histories, self.seed = timelines, Histories(train, num_items, machine.dtype), seed
        budget = _table_budget(params, machine.memory)
        self.own: Params = {}
        self.starts: Params = {}
        self.tables: dict[str, OverlayTables] = {}
        self.features = {
            name: self.facts.encoded(param.columns, len(identities), *param.shape).to(machine.device, machine.dtype)
            for name, param in params.items()
            if param.role is USER_FEATURES
        }
        for name, param in params.items():
            if not (param.own or param.role.constant):
                continue
            start = param.drawn(name, num_items, seed).to(machine.device, machine.dtype)
            if param.role.constant:
                self.starts[name] = start
            elif param.rows:
                self.tables[name] = personal_tables(len(identities), start, changed_rows, budget)
            else:
                self.own[name] = start.repeat(len(identities), *[1] * start.dim())

    def knowing(self, train: Ragged, timelines: Timelines) -> Clients:
        """The same clients and values, with other known items."""
        other = copy(self)
        other.timelines, other.histories = timelines, replace(self.histories, train=train)
        return other

    @property
    def row_names(self) -> frozenset[str]:
        """Names of all tables that clients see."""
        return frozenset(name for name, param in visible(self.params).items() if param.rows)

    def begin(self, download: Download, clients: Tensor) -> None:
        """Clients that take part put the tables they received under the copies they keep, once a round.

        A personal table starts as such a copy when its client takes part for the first time.
        """
        for name, table in self.tables.items():
            role = self.params[name].role
            if role is KEPT:
                table.restart(clients, download.values[name], download.round)
            elif role is PERSONAL:
                table.restart(clients[table.base_of[clients] == 0], download.values[name], download.round)

    def open(self, samples: Samples, download: Download) -> Opened:
        """What clients start a round with: what they received, and what is their own."""
        values: Params = {}
        beside: Params = {}
        count = len(samples.clients)
        for name, param in self.params.items():
            if param.role.given:
                values |= self._given(name, param, samples, download)
            elif name in self.tables and param.role is not KEPT:
                values[name] = self.tables[name].take(samples.clients, samples.items)
            elif name in self.own and param.role is not KEPT:
                values[name] = self._own(name, samples.clients, download)
            elif (param.from_server or param.role.constant) and param.rows:
                source = self.starts if param.role.constant else download.values
                flat = source[name].index_select(0, samples.items.reshape(-1))
                values[name] = flat.reshape(*samples.items.shape, *param.shape)
            elif param.from_server or param.role.constant:
                source = self.starts if param.role.constant else download.values
                values[name] = source[name].expand(count, *param.shape).clone()
            if param.role is PERSONAL:
                beside |= self._received(name, samples.clients, download)
                values |= {
                    table: _rows(beside[table], samples.items) if param.rows else beside[table].clone()
                    for table in param.tables_beside
                }
            elif param.rows and name not in self.tables and (param.from_server or param.role.constant):
                source = self.starts if param.role.constant else download.values
                beside[name] = source[name].expand(count, *source[name].shape)
            if param.squares_outside:
                self._leave_squares(values, name, samples, beside)
        return Opened(values, beside)

    def _given(self, name: str, param: Param, samples: Samples, download: Download) -> Params:
        """Values of roles that clients find in their data, or draw."""
        if param.role is TIMELINE:
            return self.timelines.seen(name, samples.clients, samples.items, samples.real_rows)
        if param.role is CHANCE:
            return {name: self._chance(name, samples.clients, download)}
        if param.role is USER_FEATURES:
            return {name: self.features[name][samples.clients]}
        # Padding repeats an item, and is no second one.
        return {name: self._of_items(param, samples.clients, samples.items) * samples.real_rows}

    def _of_items(self, param: Param, clients: Tensor, items: Tensor | None) -> Tensor:
        """[B, R] history (1 or 0), ratings or quantities of the rows at hand; [B, m] of all items."""
        if param.role is HISTORY:
            return self.histories.take(clients, items)
        found = self.facts.table(param.role, clients, self.histories.counts(clients))
        return found if items is None else found.gather(1, items)

    def data_tables(self, clients: Tensor) -> Params:
        """By name [B, m], the clients' histories, ratings and quantities, where a method has them."""
        mine = {name: param for name, param in self.params.items() if param.role in OWN_DATA}
        return {name: self._of_items(param, clients, None) for name, param in mine.items()}

    def _chance(self, name: str, clients: Tensor, download: Download) -> Tensor:
        """[B] keys of the clients' own draws in the download's round."""
        return chances(self.seed, name, download.round, self.identities[clients])

    def _own(self, name: str, clients: Tensor, download: Download) -> Tensor:
        """[B, ...] the clients' own values, moved by what the server sends them."""
        own = self.own[name][clients]
        return own + download.moves[name] if name in download.moves else own

    def _received(self, name: str, clients: Tensor, download: Download) -> Params:
        """Whole tables beside the personal one as each client has them: its own where it does not receive."""
        param = self.params[name]
        found = {param.received_as: download.offered(name, len(clients))}
        if param.everybodys_mean:
            found[param.everybodys_mean] = download.offered(param.everybodys_mean, len(clients))
        if download.receives is None:
            return found
        own = self.whole(name, clients)
        return {table: torch.where(wide(download.receives, own), whole, own) for table, whole in found.items()}

    def _leave_squares(self, values: Params, name: str, samples: Samples, beside: Params) -> None:
        """Zero the padding rows, and note the squares of the rows that are not at hand."""
        tables = {name: self.whole(name, samples.clients)}
        tables |= {table: beside[table] for table in self.params[name].tables_beside}
        for table, whole in tables.items():
            values[table] = torch.where(wide(samples.real_rows, values[table]), values[table], 0)
            values[f"{table}.outside"] = _squares(whole) - _squares(values[table])

    def whole(self, name: str, clients: Tensor) -> Tensor:
        """[B, m, ...] every row of a client's own table; [B, ...] its own value where it is none."""
        return self.tables[name].whole(clients) if name in self.tables else self.own[name][clients]

    def keep(self, clients: Tensor, values: Params) -> None:
        """Store new values of the clients' own, by name [B, ...]; tables are whole."""
        for name, value in values.items():
            if name in self.tables:
                self.tables[name].put_whole(clients, value)
            else:
                self.own[name][clients] = value.to(self.own[name].dtype)

    def keep_trained(self, samples: Samples, trained: Params, rewritten: Params) -> None:
        """Store private values and kept copies after training.

        Args:
            samples: of the clients.
            trained: by name, touched rows of tables.
            rewritten: by name, whole tables [B, m, ...] that an opening rewrote before touched rows were trained.
        """
        self.keep(samples.clients, {name: value for name, value in rewritten.items() if name in self.tables})
        for name, table in self.tables.items():
            table.put(samples.clients, samples.items, samples.real_rows, trained[name])
        for name, own in self.own.items():
            own[samples.clients] = trained[name]

    def predicting(
        self, download: Download, clients: Tensor, items: Tensor | None, names: frozenset[str] | None = None
    ) -> tuple[Params, Axes]:
        """What clients predict with.

        Args:
            download: the newest that the server has for these clients.
            clients: [B].
            items: [B, C] rows wanted, or None for all m rows.
            names: what is wanted; None for everything a client sees.

        Returns:
            values by name, and the client axis of each.
        """
        values: Params = {}
        axes: Axes = {}
        for name, param in self.params.items():
            seen = visible({name: param})
            if names is not None and not names & set(seen):
                continue
            if param.role is TIMELINE:
                values |= self.timelines.seen(name, clients)
                axes |= dict.fromkeys(seen, 0)
            elif name in seen and (names is None or name in names or param.squares_outside):
                values[name], axes[name] = self._predicting(name, param, download, clients, items)
            for table in (one for one in param.tables_beside if names is None or one in names):
                values[table], axes[table] = _rows_for(download, name, param, table, clients, items)
            if param.squares_outside:
                self._note_squares(name, values, axes, download, clients)
        return values, axes

    def _predicting(
        self, name: str, param: Param, download: Download, clients: Tensor, items: Tensor | None
    ) -> tuple[Tensor, int | None]:
        if param.role in OWN_DATA:
            return self._of_items(param, clients, items), 0
        if param.role is USER_FEATURES:
            return self.features[name][clients], 0
        if param.role is CHANCE:
            return self._chance(name, clients, download), 0
        if name in self.tables:
            table = self.tables[name]
            return table.whole(clients) if items is None else table.take(clients, items), 0
        if name in self.own:
            return self._own(name, clients, download), 0
        source = self.starts if param.role.constant else download.values
        return (source[name][items], 0) if param.rows and items is not None else (source[name], None)

    def _note_squares(self, name: str, values: Params, axes: Axes, download: Download, clients: Tensor) -> None:
        """Add NAME.outside for every table that has it."""
        sources = {name: "", self.params[name].received_as: name}
        for table in (name, *self.params[name].tables_beside):
            if axes.get(table) == 0:
                source = sources.get(table, table)
                whole = download.offered(source, len(clients)) if source else self.whole(name, clients)
                values[f"{table}.outside"], axes[f"{table}.outside"] = _squares(whole) - _squares(values[table]), 0
            elif table in values:  # the same whole table for everybody: nothing is left
                values[f"{table}.outside"], axes[f"{table}.outside"] = torch.zeros_like(values[table]).sum(), None

    def preparing(self, samples: Samples, download: Download) -> Params:
        """Values that `before_predicting` starts from, by name [B, ...]; tables hold the touched rows, [B, R, ...]."""
        clients, count = samples.clients, len(samples.clients)
        values, axes = self.predicting(download, clients, samples.items)
        values = {
            n: value.clone() if axes[n] == 0 else value.expand(count, *value.shape).clone()
            for n, value in values.items()
        }
        for name, param in self.params.items():
            if param.squares_outside:
                self._leave_squares(values, name, samples, self._received(name, clients, download))
        return values

    def pack(self) -> dict[str, Tensor]:
        """Everything by name, for a checkpoint."""
        packed = {f"own.{name}": value for name, value in self.own.items()}
        for name, table in self.tables.items():
            packed |= {f"table.{name}.{part}": value for part, value in table.pack().items()}
        return packed

    def unpack(self, packed: Mapping[str, Tensor]) -> None:
        """Restore what `pack` returned."""
        for name, value in self.own.items():
            self.own[name] = packed[f"own.{name}"].to(value.device, copy=True)
        for name, table in self.tables.items():
            prefix = f"table.{name}."
            table.unpack({k.removeprefix(prefix): value for k, value in packed.items() if k.startswith(prefix)})


def changed_rows(client: Client, train: Ragged, num_items: int) -> int:
    """How many rows of its tables a client changes in a round: what is expected, the mean over clients, rounded up.

    A client that reports writes whole tables, m rows. One that trains changes those that its samples are about: L
    positives, and k distinct negatives of m - L items for each, so L + (m - L) (1 - (1 - k / (m - L))^L).

    Args:
        client: the method's.
        train: every client's training items.
        num_items: m.
    """
    if isinstance(client.work, Reporting):
        return num_items
    positives = train.lengths.double()
    others = (num_items - positives).clamp(min=1)
    missed = (1 - client.work.negatives / others).clamp(min=0) ** positives
    rows = (positives + others * (1 - missed)).clamp(max=num_items)
    return math.ceil(float(rows.mean())) if len(rows) else 1


def planned_bytes(
    params: Mapping[str, Param], num_clients: int, num_items: int, rows: int, bytes_per_value: int, memory: int
) -> int:
    """Bytes that `Clients` need, before any of it is allocated: of tables, as much as the store that suits them takes.

    That is memory after all clients took part once. Tables that never begin anew go on growing with what a client
    touches; where cohorts are drawn, up to a quarter of dead rows comes on top (see `Segments`), and every table of an
    earlier round that clients still stand on.
    """
    total = 0
    budget = _table_budget(params, memory)
    for param in params.values():
        if param.own and param.rows:
            row = prod(param.shape) * bytes_per_value
            total += stored_bytes(num_clients, num_items, row, rows, budget)
        elif param.own:
            total += num_clients * prod(param.shape) * bytes_per_value
    return total


def _table_budget(params: Mapping[str, Param], memory: int) -> int:
    """Memory budget of each client table's store: an equal share, so that all fit."""
    return memory // max(sum(param.own and param.rows for param in params.values()), 1)


def _rows_for(
    download: Download, name: str, param: Param, table: str, clients: Tensor, items: Tensor | None
) -> tuple[Tensor, int | None]:
    """Rows of a received table beside a personal one, and its client axis."""
    if table == param.everybodys_mean:
        mean = download.values[table]
        return (mean, None) if items is None or not param.rows else (mean[items], 0)
    whole = download.offered(name, len(clients))
    return (whole if items is None or not param.rows else _rows(whole, items)), 0


def _rows(whole: Tensor, items: Tensor) -> Tensor:
    """[B, R, ...] the rows `items` [B, R] of whole tables [B, m, ...]."""
    return whole[torch.arange(len(items), device=items.device)[:, None], items]


def _squares(tables: Tensor) -> Tensor:
    """[B] sum of squares of each client's table."""
    return tables.reshape(len(tables), -1).square().sum(1)
