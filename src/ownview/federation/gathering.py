"""A round of gathering: clients report, the server sums and combines, and what comes of it goes back.

Two engines give the same to rounding: the loop calls the method for one client after the other, the vector engine maps
it over a block of clients. Blocks bound memory; nothing that is a client's stands longer than its block, but for what
the method declares as the client's own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields
from math import prod
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_map

from ownview.base.errors import OwnviewError, SettingError, TrainingError
from ownview.base.randomness import derive, generator
from ownview.data.negatives import NegativeSampler
from ownview.data.ragged import Ragged
from ownview.data.splits import Split
from ownview.engine.clock import clock_on
from ownview.engine.machine import Machine
from ownview.federation.options import FederationOptions, participation
from ownview.federation.participants import participants
from ownview.federation.privacy import privacy
from ownview.federation.round import RoundReport
from ownview.federation.sums import Gate, Sums
from ownview.federation.wire import sparsity
from ownview.seam.gathering import Arrived, Gathering, History, Value
from ownview.seam.training import Context, Params, World

_HEEDED = ("clients", "privacy")
"""Options of the federation that mean something where the server adds up what it gets."""

_COPIES = 2
"""Of the server's values and of the sums while they are combined."""


class GatheringFederation:
    """A method that gathers, its clients and its server.

    Args:
        method: written for one client.
        split: the clients' data.
        excluded: every client's items that are never drawn as training negatives.
        options: who takes part, and noise on what leaves.
        seed: of the run.
        machine: device, precision, memory and engine.
    """

    def __init__(
        self, method: Gathering, split: Split, excluded: Ragged, options: FederationOptions, seed: int, machine: Machine
    ) -> None:
        _require_heeded(method, options)
        self.method, self.split, self.options, self.seed, self.machine = method, split, options, seed, machine
        self.world = World(split.num_users, split.num_items)
        self.declared = method.summands(self.world)
        machine.require(self.standing_bytes(), f"{method.name}'s standing values", method.advice())
        self.train = split.train.to(machine.device)
        self.sampler = self._sampler(excluded)
        self.privacy = privacy(options.privacy if options.privacy != "none" else method.privacy)
        self.server = self._drawn(method.server(self.world))
        self.digested: Params | None = None
        start = self._drawn(method.own(self.world))
        self.own = {name: value.repeat(split.num_users, *[1] * value.dim()) for name, value in start.items()}

    def _sampler(self, excluded: Ragged) -> NegativeSampler | None:
        wanted = self.method.negatives_each
        return NegativeSampler(excluded.to(self.machine.device), self.world.num_items, wanted) if wanted else None

    def standing_bytes(self) -> int:
        """What must be in memory: the server's values and sums, its work on them, and what clients keep."""
        held = sum(prod(one.shape) for one in self.method.server(self.world).values())
        sums = sum(prod(one.shape) for one in self.declared.values())
        kept = sum(prod(one.shape) for one in self.method.own(self.world).values())
        values = _COPIES * (held + sums) + self.world.num_clients * kept + self.method.server_working(self.world)
        return values * self.machine.bytes_per_value

    def round(self, number: int) -> RoundReport:
        """Run round `number` (from 1)."""
        clock = clock_on(self.machine.device)
        chosen = participation(self.options.clients)
        clients = participants(chosen, self.seed, number, self.world.num_clients, self.machine.device)
        gate = Gate(self.privacy, derive(self.seed, "privacy", number))
        sums = Sums(self.declared, gate, torch.empty(0, dtype=self.machine.dtype, device=self.machine.device))
        up = 0
        for block in self.blocks(clients):
            history = self.histories(block, number)
            clock.lap("sample")
            up += self._gather(block, history, sums, number)
            clock.lap("train")
        if len(clients):
            new = self.method.combine(sums.values, self.server, Arrived(number, len(clients)))
            self.server = {**self.server, **{name: value.to(self.machine.dtype) for name, value in new.items()}}
            self.digested = None
        self._require_finite(self.server, number)
        clock.lap("server")
        self._settle(clients)
        clock.lap("train")
        return RoundReport(
            number, len(clients), None, clock.seconds(), self.bytes_down, round(up / max(len(clients), 1)),
            self.bytes_whole, sparsity({name: self.server[name] for name in self.downloaded}),
        )  # fmt: skip

    @property
    def downloaded(self) -> tuple[str, ...]:
        """Names of the server's values that clients get."""
        return tuple(name for name, one in self.method.server(self.world).items() if one.down)

    @property
    def bytes_down(self) -> int:
        """What one client downloads in a round."""
        return sum(self.server[name].numel() for name in self.downloaded) * self.machine.bytes_per_value

    @property
    def bytes_whole(self) -> int:
        """What one client would upload if it sent its summands whole."""
        return sum(prod(one.shape) for one in self.declared.values()) * self.machine.bytes_per_value

    def blocks(self, clients: Tensor) -> tuple[Tensor, ...]:
        """Clients side by side, as many as memory allows."""
        per_client = self.method.working(self.world) * self.machine.bytes_per_value
        width = max(1, min(self.machine.block_clients, self.machine.block_bytes // per_client))
        return torch.split(clients, width) if len(clients) else ()

    def histories(self, clients: Tensor, number: int | None = None) -> History:
        """The pasts of some clients, [B, m] each; with the samples of round `number` where one is named."""
        listed, real = self.train.padded(clients)
        there = real.to(self.machine.dtype)
        empty = torch.zeros(len(clients), self.world.num_items, dtype=there.dtype, device=there.device)
        positives = empty.scatter_add(1, listed, there)
        if self.sampler is None or number is None:
            return History(positives.clamp(max=1), empty, empty)
        drawn = self.sampler.draw(derive(self.seed, "negatives", number), clients, listed.shape[1])
        present = there[..., None].expand(drawn.shape).reshape(len(clients), -1)
        counts = positives.scatter_add(1, drawn.reshape(len(clients), -1), present)
        return History(positives.clamp(max=1), positives, counts)

    @torch.no_grad()
    def scores(self, users: Tensor, items: Tensor | None) -> Tensor:
        """[B, C] scores of `items` [B, C] for `users` [B]; of all items where `items` is None."""
        parts = []
        for block in self.blocks(users):
            every = self._map(lambda h, own: self.method.scores(h, own, self._visible), block, self.histories(block))
            parts.append(every)
        found = torch.cat(parts)
        return found if items is None else found.gather(1, items)

    @torch.no_grad()
    def work_of(self, client: int, number: int) -> None:
        """All that one client does in a round, by itself; nothing is changed."""
        place = torch.tensor([client], device=self.machine.device)
        history, own = next(_clients(self.histories(place, number), self._own_of(place), 1))
        received = self._digest()
        _, new = self.method.report(history, own, received, Context(number))
        self.method.settle(own | new, received)

    def first_upload(self) -> int:
        """Bytes that a client uploads in its first round, the mean over all clients."""
        start = self._drawn(self.method.own(self.world))
        total = 0.0
        for block in self.blocks(torch.arange(self.world.num_clients, device=self.machine.device)):
            own = {name: value.expand(len(block), *value.shape) for name, value in start.items()}
            total += float(self.sent_bytes(self.histories(block), own).sum())
        return round(total / self.world.num_clients)

    def pack(self) -> dict[str, Tensor]:
        """Everything by name, for a checkpoint."""
        return {f"server.{k}": v for k, v in self.server.items()} | {f"own.{k}": v for k, v in self.own.items()}

    def unpack(self, packed: Mapping[str, Tensor]) -> None:
        """Restore what `pack` returned."""
        device = self.machine.device
        self.server = {name: packed[f"server.{name}"].to(device, copy=True) for name in self.server}
        self.digested = None
        self.own = {name: packed[f"own.{name}"].to(device, copy=True) for name in self.own}

    def sent_bytes(self, history: History, own: Params) -> Tensor:
        """[B] bytes that clients upload; headers are left out. With noise nothing is 0, so all is sent whole."""
        counted = self._map_given(self.method.numbers_sent, history, own)
        numbers = torch.zeros(len(history.seen), dtype=torch.float64, device=history.seen.device)
        for name, one in self.declared.items():
            numbers += counted[name] if name in counted else prod(one.shape)
        if self.privacy is not None:
            numbers = torch.where(numbers > 0, float(sum(prod(one.shape) for one in self.declared.values())), numbers)
        return numbers * self.machine.bytes_per_value

    @property
    def _visible(self) -> Params:
        """The download as clients see it, worked out once for all that look before it changes again."""
        if self.digested is None:
            self.digested = self._digest()
        return self.digested

    def _digest(self) -> Params:
        return self.method.digest({name: self.server[name] for name in self.downloaded})

    @torch.no_grad()
    def _gather(self, block: Tensor, history: History, sums: Sums, number: int) -> int:
        """A block reports; returns the bytes it sent."""
        own, context = self._own_of(block), Context(number)
        sent_bytes = self.sent_bytes(history, own)

        def report(h: History, mine: Params) -> tuple[dict[str, Any], Params]:
            sent, new = self.method.report(h, mine, self._visible, context)
            return dict(sent), new

        sent, new = self._map(report, block, history)
        speaks = sent_bytes > 0  # who has nothing to send sends no noise either
        sums.add(block[speaks], tree_map(lambda value: value[speaks], sent))
        self._keep(block, new, number)
        return int(sent_bytes.sum())

    @torch.no_grad()
    def _settle(self, clients: Tensor) -> None:
        if type(self.method).settle is Gathering.settle:
            return
        for block in self.blocks(clients):
            settle = self._map(lambda h, own: self.method.settle(own, self._visible), block, self.histories(block))
            self._keep(block, settle, 0)

    def _keep(self, block: Tensor, new: Params, number: int) -> None:
        for name, value in new.items():
            if name not in self.own:
                raise SettingError(f"{self.method.name}: a client has no value {name!r} of its own to renew")
            self.own[name][block] = value.to(self.machine.dtype)
        if number:
            self._require_finite(new, number)

    def _own_of(self, block: Tensor) -> Params:
        return {name: value[block] for name, value in self.own.items()}

    def _map(self, work: Callable[[History, Params], Any], block: Tensor, history: History) -> Any:
        """`work` of every client of a block, stacked: by turns, or mapped."""
        own = self._own_of(block)
        if self.machine.engine == "vector":
            return self._map_given(work, history, own)
        each = [
            self._alone(work, client, *one)
            for client, one in zip(block.tolist(), _clients(history, own, len(block)), strict=True)
        ]
        return tree_map(lambda *values: torch.stack(values), *each)

    def _alone(self, work: Callable[[History, Params], Any], client: int, history: History, own: Params) -> Any:
        try:
            return work(history, own)
        except OwnviewError:
            raise
        except Exception as error:
            user = self.split.data.users[client]
            raise TrainingError(f"{self.method.name} failed on client {user}: {error}") from error

    def _map_given(self, work: Callable[[History, Params], Any], history: History, own: Params) -> Any:
        return torch.vmap(work)(history, own)

    def _drawn(self, values: Mapping[str, Value]) -> Params:
        dtype, device = self.machine.dtype, self.machine.device
        return {
            name: one.initial.draw(one.shape, generator(self.seed, f"initial:{name}")).to(device, dtype)
            for name, one in values.items()
        }

    def _require_finite(self, values: Params, number: int) -> None:
        for name, value in values.items():
            if not bool(torch.isfinite(value).all()):
                raise TrainingError(
                    f"{self.method.name} diverged in round {number}: {name} is not finite; lower a rate, or raise the "
                    "regularisation"
                )


def _clients(history: History, own: Params, count: int) -> Iterator[tuple[History, Params]]:
    for k in range(count):
        yield History(*(value[k] for value in history)), {name: value[k] for name, value in own.items()}


def _require_heeded(method: Gathering, options: FederationOptions) -> None:
    plain = FederationOptions()
    for one in fields(options):
        found, usual = getattr(options, one.name), getattr(plain, one.name)
        if one.name not in _HEEDED and found != usual:
            raise SettingError(
                f"federation setting {one.name}={found!r}: the server of {method.name} adds up what clients send and "
                f"has no mean of tables to change; expected {usual!r}"
            )
