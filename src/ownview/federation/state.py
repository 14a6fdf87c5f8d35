"""What the server and the clients hold between rounds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import prod

import torch
from torch import Tensor

from ownview.base.randomness import derive, generator
from ownview.data.ragged import Ragged
from ownview.engine.samples import Samples
from ownview.federation.mixtures import Mixtures
from ownview.federation.tables import HistoryTables, PersonalTables
from ownview.seam.initial import OwnHistory
from ownview.seam.mixing import Mixing
from ownview.seam.training import Param, Params, World, visible


@dataclass(frozen=True, eq=False)
class Received:
    """What clients start a round with.

    Args:
        values: everything a client sees, by name [B, ...]; tables hold the touched rows, [B, R, ...].
        beside: by the name of the shared table, the whole table each client received beside its own, [B, m, ...].
        offered: likewise, the whole table the server has for each client, whether it received it or not.
        common: by the name clients know it by, the whole mean of mixtures as each client has it, [B, m, ...].
    """

    values: Params
    beside: Params
    offered: Params
    common: Params


class State:
    """Shared values on the server, private values and personal tables at the clients.

    Args:
        params: what the method declares.
        world: number of clients and items.
        seed: of the run; initial values follow from it and the parameter's name.
        device: where values live.
        dtype: of values.
        mixing: how the server makes a table for each client; None for one mean for all.
        train: every client's training items, for mixing and for histories.
    """

    def __init__(
        self,
        params: Mapping[str, Param],
        world: World,
        seed: int,
        device: torch.device,
        dtype: torch.dtype,
        mixing: Mixing | None = None,
        train: Ragged | None = None,
    ) -> None:
        self.params, self.world = dict(params), world
        self.shared: Params = {}
        self.own: Params = {}
        self.starts: Params = {}
        self.reported: Params = {}
        self.tables: dict[str, PersonalTables] = {}
        self.mixtures: dict[str, Mixtures] = {}
        for name, param in params.items():
            shape = (world.num_items, *param.shape) if param.rows else param.shape
            start = param.initial.draw(shape, generator(seed, "initial:" + name)).to(device, dtype)
            if param.shared:
                self.shared[name] = start
            if isinstance(param.initial, OwnHistory) and train is not None:
                self.tables[name] = HistoryTables(train, world.num_items, dtype)
            elif param.own and param.rows:
                self.tables[name] = PersonalTables(world.num_clients, start.clone())
            elif param.own:
                self.own[name] = start.expand(world.num_clients, *start.shape).clone()
            elif param.fresh:
                self.starts[name] = start
            if param.reported:
                self.reported[name] = self.own[name].clone()
            if param.beside and mixing is not None and train is not None:
                self.mixtures[name] = Mixtures(mixing, start, train.lengths.to(device), derive(seed, "mixing"))

    @property
    def row_names(self) -> frozenset[str]:
        """Names of all tables that clients see."""
        return frozenset(name for name, param in visible(self.params).items() if param.rows)

    def receive(self, samples: Samples, receiving: Tensor | None = None) -> Received:
        """What clients start a round with: the shared values as they are now, and their private ones.

        Args:
            samples: of the clients.
            receiving: [B] False for clients that have their own table beside itself in this round; None for nobody.
        """
        values: Params = {}
        beside: Params = {}
        offered: Params = {}
        common: Params = {}
        count = len(samples.clients)
        for name, param in self.params.items():
            if param.rows and param.own and (param.beside or not param.shared):
                values[name] = self.tables[name].take(samples.clients, samples.items)
                if isinstance(param.initial, OwnHistory):  # padding repeats an item, and is no second one
                    values[name] *= samples.real_rows
            elif param.rows:
                flat = self.shared[name].index_select(0, samples.items.reshape(-1))
                values[name] = flat.reshape(*samples.items.shape, *param.shape)
            elif name in self.own and not param.shared:
                values[name] = self.own[name][samples.clients]
            else:
                values[name] = (self.starts if param.fresh else self.shared)[name].expand(count, *param.shape).clone()
            if param.beside:
                offered[name] = self._sent(name, samples.clients)
                beside[name] = offered[name]
                if receiving is not None:
                    there = receiving.reshape(-1, *[1] * (offered[name].dim() - 1))
                    beside[name] = torch.where(there, offered[name], self.whole(name, samples.clients))
                values[param.beside] = _rows(beside[name], samples.items)
            if param.common:
                common[param.common] = self._common(name, samples.clients, receiving)
                values[param.common] = _rows(common[param.common], samples.items)
            if param.rest:
                received = ((param.beside, beside.get(name)), (param.common, common.get(param.common)))
                self._leave_rest(values, name, samples, received)
        return Received(values, beside, offered, common)

    def _sent(self, name: str, clients: Tensor) -> Tensor:
        """[B, m, ...] the whole table the server sends to each of these clients."""
        if name in self.mixtures:
            return self.mixtures[name].sent(clients)
        return self.shared[name].expand(len(clients), *self.shared[name].shape)

    def _common(self, name: str, clients: Tensor, receiving: Tensor | None) -> Tensor:
        """[B, m, ...] the mean of mixtures as each client has it: its own table where it does not receive."""
        mean = self._seen(name, self.params[name].common, clients)
        if receiving is None:
            return mean
        return torch.where(receiving.reshape(-1, *[1] * (mean.dim() - 1)), mean, self.whole(name, clients))

    def _leave_rest(
        self, values: Params, name: str, samples: Samples, received: Iterable[tuple[str, Tensor | None]]
    ) -> None:
        """Zero the padding rows, and note the squares of the rows that are not at hand.

        Args:
            values: what clients see.
            name: of their own table.
            samples: of the clients.
            received: names of tables beside it, and the whole tables; None where there is none.
        """
        for table, whole in ((name, self.whole(name, samples.clients)), *received):
            if whole is not None:
                here = samples.real_rows.reshape(*samples.items.shape, *[1] * (values[table].dim() - 2))
                values[table] = torch.where(here, values[table], 0)
                values[f"{table}.rest"] = _squares(whole) - _squares(values[table])

    def whole(self, name: str, clients: Tensor) -> Tensor:
        """[B, m, ...] every row of a client's table: its own where it has one, else the shared one."""
        if name not in self.tables:
            return self.shared[name].expand(len(clients), *self.shared[name].shape)
        return self.tables[name].take(clients, self._every_row(clients))

    def _every_row(self, clients: Tensor) -> Tensor:
        return torch.arange(self.world.num_items, device=clients.device).expand(len(clients), -1)

    def begin_round(self, clients: Tensor, number: int) -> None:
        """Clients that take part put the current shared tables under the copies they keep.

        A copy that the client goes on from is begun that way once, when it takes part for the first time.
        """
        for name, table in self.tables.items():
            if self.params[name].beside:
                table.restart(clients[table.base_of[clients] == 0], self.shared[name], number)
            elif self.params[name].shared:
                table.restart(clients, self.shared[name], number)

    def keep(self, samples: Samples, trained: Params, rewritten: Params) -> None:
        """Store what clients hold on to: private values and kept copies.

        Args:
            samples: of the clients.
            trained: by name, touched rows of tables.
            rewritten: by name, whole tables [B, m, ...] that an opening rewrote before touched rows were trained.
        """
        every = self._every_row(samples.clients)
        for name, table in self.tables.items():
            if name in rewritten:
                table.put(samples.clients, every, torch.ones_like(every, dtype=torch.bool), rewritten[name])
            table.put(samples.clients, samples.items, samples.real_rows, trained[name])
        for name, own in self.own.items():
            own[samples.clients] = trained[name]

    def predicting(
        self, clients: Tensor, items: Tensor | None, names: frozenset[str] | None = None
    ) -> tuple[Params, dict[str, int | None]]:
        """What clients predict with.

        Args:
            clients: [B].
            items: [B, C] rows wanted, or None for all m rows.
            names: what is wanted; None for everything a client sees.

        Returns:
            values by name, and the client axis of each: 0, or None where all clients use the same value.
        """
        values: Params = {}
        axes: dict[str, int | None] = {}
        for name, param in self.params.items():
            if names is None or name in names:
                values[name], axes[name] = self._predicting(name, param, clients, items)
            if param.beside and (names is None or param.beside in names):
                whole = self._sent(name, clients)
                values[param.beside], axes[param.beside] = (whole if items is None else _rows(whole, items)), 0
            if param.common and (names is None or param.common in names):
                mean = self.mixtures[name].common()
                values[param.common], axes[param.common] = (mean, None) if items is None else (mean[items], 0)
            for table in (name, param.beside, param.common) if param.rest else ():
                if table and axes.get(table) == 0:
                    whole = self._seen(name, table, clients)
                    values[f"{table}.rest"] = _squares(whole) - _squares(values[table])
                    axes[f"{table}.rest"] = 0
                elif table in values:  # the same whole table for everybody: nothing is left
                    values[f"{table}.rest"], axes[f"{table}.rest"] = torch.zeros_like(values[table]).sum(), None
        return values, axes

    def _seen(self, name: str, table: str, clients: Tensor) -> Tensor:
        """[B, m, ...] a client's whole own table, or one of those that the server has for it beside that."""
        if table == name:
            return self.whole(name, clients)
        if table == self.params[name].beside:
            return self._sent(name, clients)
        return self.mixtures[name].common().expand(len(clients), *self.shared[name].shape)

    def _predicting(self, name: str, param: Param, clients: Tensor, items: Tensor | None) -> tuple[Tensor, int | None]:
        if param.own and param.rows:
            return self.tables[name].take(clients, self._every_row(clients) if items is None else items), 0
        if param.own:
            return self.own[name][clients], 0
        if param.rows and items is not None:
            return self.shared[name][items], 0
        return (self.starts if param.fresh else self.shared)[name], None

    def preparing(self, samples: Samples) -> Params:
        """What clients have before they predict, by name [B, ...]; tables hold the touched rows, [B, R, ...]."""
        clients, count = samples.clients, len(samples.clients)
        values, axes = self.predicting(clients, samples.items)
        values = {
            n: value.clone() if axes[n] == 0 else value.expand(count, *value.shape).clone()
            for n, value in values.items()
        }
        for name, param in self.params.items():
            if param.rest:
                beside = [table for table in (param.beside, param.common) if table]
                self._leave_rest(values, name, samples, [(table, self._seen(name, table, clients)) for table in beside])
        return values

    def pack(self) -> dict[str, Tensor]:
        """Everything by name, for a checkpoint."""
        packed = {f"shared.{name}": value for name, value in self.shared.items()}
        packed |= {f"own.{name}": value for name, value in self.own.items()}
        packed |= {f"reported.{name}": value for name, value in self.reported.items()}
        for name, table in self.tables.items():
            packed |= {f"table.{name}.{part}": value for part, value in table.pack().items()}
        for name, mixtures in self.mixtures.items():
            packed |= {f"mixtures.{name}.{part}": value for part, value in mixtures.pack().items()}
        return packed

    def unpack(self, packed: Mapping[str, Tensor]) -> None:
        """Restore what `pack` returned."""
        for name, value in self.shared.items():
            self.shared[name] = packed[f"shared.{name}"].to(value.device)
        for name, value in self.own.items():
            self.own[name] = packed[f"own.{name}"].to(value.device)
        for name, value in self.reported.items():
            self.reported[name] = packed[f"reported.{name}"].to(value.device)
        for name, table in self.tables.items():
            table.unpack(_part(packed, f"table.{name}."))
        for name, mixtures in self.mixtures.items():
            mixtures.unpack(_part(packed, f"mixtures.{name}."))


def planned_bytes(params: Mapping[str, Param], world: World, bytes_per_value: int = 4, *, mixed: bool = False) -> int:
    """Bytes a `State` will need once every row has been touched, before any of it is allocated.

    Tables of earlier rounds that clients still stand on come on top: one shared table each.
    """
    total = 0
    for param in params.values():
        values = prod(param.shape) * (world.num_items if param.rows else 1)
        at_clients = world.num_clients * (1 + param.reported) if param.own else 0
        copies = 0 if isinstance(param.initial, OwnHistory) else int(param.shared or param.fresh) + at_clients
        marks = world.num_clients * world.num_items if param.own and param.rows else 0
        total += values * copies * bytes_per_value + marks
        if param.beside and mixed:
            total += (
                (2 * values + world.num_clients) * world.num_clients * bytes_per_value
            )  # of this round and the last
    return total


def _part(packed: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): value for name, value in packed.items() if name.startswith(prefix)}


def _rows(whole: Tensor, items: Tensor) -> Tensor:
    """[B, R, ...] the rows `items` [B, R] of whole tables [B, m, ...]."""
    return whole[torch.arange(len(items), device=items.device)[:, None], items]


def _squares(tables: Tensor) -> Tensor:
    """[B] sum of squares of each client's table."""
    return tables.reshape(len(tables), -1).square().sum(1)
