"""What the server and the clients hold between rounds."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

import torch
from torch import Tensor

from ownview.engine.samples import Samples
from ownview.engine.tables import PersonalTables
from ownview.random import generator
from ownview.types import Param, Params, World


class State:
    """Shared values on the server, private values and personal tables at the clients.

    Args:
        params: what the method declares.
        world: number of clients and items.
        seed: of the run; initial values follow from it and the parameter's name.
        device: where values live.
        dtype: of values.
    """

    def __init__(
        self, params: Mapping[str, Param], world: World, seed: int, device: torch.device, dtype: torch.dtype
    ) -> None:
        self.params, self.world = dict(params), world
        self.shared: Params = {}
        self.own: Params = {}
        self.tables: dict[str, PersonalTables] = {}
        for name, param in params.items():
            shape = (world.num_items, *param.shape) if param.rows else param.shape
            start = param.initial.draw(shape, generator(seed, "initial:" + name)).to(device, dtype)
            if param.shared:
                self.shared[name] = start
            if param.own and param.rows:
                self.tables[name] = PersonalTables(world.num_clients, start.clone())
            elif param.own:
                self.own[name] = start.expand(world.num_clients, *start.shape).clone()

    @property
    def row_names(self) -> frozenset[str]:
        """Names of the parameters that are tables."""
        return frozenset(name for name, param in self.params.items() if param.rows)

    def receive(self, samples: Samples) -> Params:
        """What clients start a round with: the shared values as they are now, and their private ones.

        Returns:
            [B, ...] by name; tables hold the touched rows only, [B, R, ...].
        """
        values: Params = {}
        count = len(samples.clients)
        for name, param in self.params.items():
            if param.shared and param.rows:
                flat = self.shared[name].index_select(0, samples.items.reshape(-1))
                values[name] = flat.reshape(*samples.items.shape, *param.shape)
            elif param.shared:
                values[name] = self.shared[name].expand(count, *param.shape).clone()
            elif param.rows:
                values[name] = self.tables[name].take(samples.clients, samples.items)
            else:
                values[name] = self.own[name][samples.clients]
        return values

    def begin_round(self, clients: Tensor, number: int) -> None:
        """Clients that take part put the current shared tables under the copies they keep."""
        for name, table in self.tables.items():
            if self.params[name].shared:
                table.restart(clients, self.shared[name], number)

    def keep(self, samples: Samples, trained: Params) -> None:
        """Store what clients hold on to: private values and kept copies."""
        for name, table in self.tables.items():
            table.put(samples.clients, samples.items, samples.real_rows, trained[name])
        for name, own in self.own.items():
            own[samples.clients] = trained[name]

    def predicting(self, clients: Tensor, items: Tensor | None) -> tuple[Params, dict[str, int | None]]:
        """What clients predict with.

        Args:
            clients: [B].
            items: [B, C] rows wanted, or None for all m rows.

        Returns:
            values by name, and the client axis of each: 0, or None where all clients use the same value.
        """
        values: Params = {}
        axes: dict[str, int | None] = {}
        for name, param in self.params.items():
            axes[name] = 0
            if param.own and param.rows:
                every = torch.arange(self.world.num_items, device=clients.device).expand(len(clients), -1)
                values[name] = self.tables[name].take(clients, every if items is None else items)
            elif param.own:
                values[name] = self.own[name][clients]
            elif param.rows and items is not None:
                values[name] = self.shared[name][items]
            else:
                values[name], axes[name] = self.shared[name], None
        return values, axes

    def pack(self) -> dict[str, Tensor]:
        """Everything by name, for a checkpoint."""
        packed = {f"shared.{name}": value for name, value in self.shared.items()}
        packed |= {f"own.{name}": value for name, value in self.own.items()}
        for name, table in self.tables.items():
            packed |= {f"table.{name}.{part}": value for part, value in table.pack().items()}
        return packed

    def unpack(self, packed: Mapping[str, Tensor]) -> None:
        """Restore what `pack` returned."""
        for name, value in self.shared.items():
            self.shared[name] = packed[f"shared.{name}"].to(value.device)
        for name, value in self.own.items():
            self.own[name] = packed[f"own.{name}"].to(value.device)
        for name, table in self.tables.items():
            prefix = f"table.{name}."
            table.unpack({key.removeprefix(prefix): v for key, v in packed.items() if key.startswith(prefix)})


def planned_bytes(params: Mapping[str, Param], world: World, bytes_per_value: int = 4) -> int:
    """Bytes a `State` will need once every row has been touched, before any of it is allocated.

    Tables of earlier rounds that clients still stand on come on top: one shared table each.
    """
    total = 0
    for param in params.values():
        values = prod(param.shape) * (world.num_items if param.rows else 1)
        copies = int(param.shared) + (world.num_clients if param.own else 0)
        marks = world.num_clients * world.num_items if param.own and param.rows else 0
        total += values * copies * bytes_per_value + marks
    return total
