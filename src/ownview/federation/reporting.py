"""The work of clients that report: they make summands of their data, and keep their private values.

Two engines give the same to rounding: the loop calls the method for one client after the other, the vector engine maps
it over a block of clients.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_map

from ownview.base.counts import not_finite
from ownview.base.errors import OwnviewError, SettingError, TrainingError
from ownview.base.randomness import derive
from ownview.data.negatives import NegativeSampler
from ownview.engine.blocks import plan
from ownview.federation.clients import Axes
from ownview.federation.work import Household
from ownview.messages.download import Download
from ownview.messages.unwritten import Unwritten, parts_of
from ownview.messages.upload import Upload
from ownview.seam.client import Client, Nearby, Patch, Product, Reporting, Sent
from ownview.seam.roles import RECEIVED, TIMELINE, visible
from ownview.seam.training import Batch, Context, Params


@dataclass(frozen=True, eq=False)
class Reported:
    """What a block of clients reports on.

    Args:
        clients: [B] positions.
        batch: over all items, [B, ...].
    """

    clients: Tensor
    batch: Batch


@dataclass(frozen=True)
class Needed:
    """Memory of one client at work, or scored.

    Args:
        work: of the client.
        bytes_per_value: 4 for float32.
    """

    work: Reporting
    bytes_per_value: int

    def of(self, length: int) -> int:
        """Bytes for a timeline of this length."""
        return self.work.needed(length) * self.bytes_per_value


class ReportingWork:
    """Clients that report, block by block."""

    def __init__(self, home: Household) -> None:
        self.home, self.work = home, reporting(home.client)
        wanted = self.work.negatives
        self.sampler = NegativeSampler(home.excluded, home.world.num_items, wanted, home.users) if wanted else None
        self.needs = Needed(self.work, home.machine.bytes_per_value)
        self.prepared: tuple[Download, Params] | None = None
        self.received = [name for name, param in home.client.params.items() if param.role is RECEIVED]
        self.in_order = any(param.role is TIMELINE for param in home.client.params.values())
        self.at_home = frozenset(visible(home.client.params)) - frozenset(self.received)

    def blocks(self, clients: Tensor) -> Sequence[Tensor]:
        """Clients side by side, as many as memory allows; where they look at timelines, those of like length."""
        if not len(clients):
            return ()
        machine = self.home.machine
        if self.in_order:
            lengths = self.home.clients.timelines.line.items.lengths[clients]
            return plan(clients, lengths, self.needs, machine.block_bytes, machine.block_clients)
        return torch.split(clients, max(1, min(machine.block_clients, machine.block_bytes // self.needs.of(0))))

    def waves(self, blocks: Sequence[Tensor]) -> Sequence[Sequence[Tensor]]:
        """Every block is a wave: samples of all items take as much memory as the work itself."""
        return [[block] for block in blocks]

    def draw(self, number: int, wave: Sequence[Tensor]) -> Sequence[Reported]:
        """The samples of the blocks of a wave."""
        return [self.samples(number, block) for block in wave]

    def do_all(self, drawn: Sequence[Reported], downloads: Sequence[Download]) -> Sequence[Upload]:
        """The blocks of a wave report."""
        return [self.do(samples, download) for samples, download in zip(drawn, downloads, strict=True)]

    def samples(self, number: int, block: Tensor) -> Reported:
        """Batches over all items of B clients in round `number`; all 0 where the method needs no samples."""
        home, width = self.home, self.home.world.num_items
        if self.sampler is None:
            none, zero = block.new_zeros(len(block), 0), torch.zeros((), dtype=home.machine.dtype, device=block.device)
            empty = zero.expand(len(block), width)
            return Reported(block, Batch(none, empty[:, :0], empty[:, :0], empty, empty, none))
        empty = torch.zeros(len(block), width, dtype=home.machine.dtype, device=block.device)
        listed, real = home.train.padded(block)
        key = derive(home.seed, "negatives", number)
        drawn = self.sampler.draw(key, block, listed.shape[1], home.clients.identities[block])
        rows = torch.cat([listed[..., None], drawn], dim=-1)
        mask = real[..., None].expand(rows.shape).to(empty.dtype)
        labels = torch.zeros_like(mask)
        labels[..., 0] = mask[..., 0]
        partners = rows[..., :1].expand(rows.shape)
        rows, mask, labels, partners = (one.reshape(len(block), -1) for one in (rows, mask, labels, partners))
        positives, counts = empty.scatter_add(1, rows, labels), empty.scatter_add(1, rows, mask)
        return Reported(block, Batch(rows, labels, mask, positives, counts, partners))

    @torch.no_grad()
    def do(self, samples: Reported, download: Download) -> Upload:
        """A block reports; clients with nothing to send are left out, unless their absence would reveal something."""
        home, context = self.home, Context(download.round)
        values, axes = self.values(download, samples.clients, received=not self.work.receives_after)

        def report(p: Params, batch: Batch) -> tuple[dict[str, Any], Params]:
            found: Any = self.work.report(p, batch, context)
            if not isinstance(found, tuple) or len(found) != 2:
                raise SettingError(f"method {home.name}: report returned no pair; expected what is sent, what is kept")
            return dict(found[0]), found[1]

        sent, new = self._mapped(report, samples.clients, values, axes, samples.batch)
        self._keep(samples.clients, new, download.round)
        identities = home.clients.identities[samples.clients]
        sizes = home.train.lengths_of(samples.clients) * (1 + self.work.negatives)
        nothing = samples.clients.new_zeros(len(identities), 0)
        shapes = {name: one.shape for name, one in self.work.sends.items()}
        upload = Upload(identities, sizes, nothing, nothing.bool(), sums=Unwritten.of(sent), shapes=shapes)
        return upload if home.everybody_sends else _speaking(upload)

    @torch.no_grad()
    def after_round(self, download: Download, clients: Tensor) -> None:
        """New values of the clients' own, from what the server has combined."""
        change = self.work.after_round
        if change is None:
            return
        for block in self.blocks(clients):
            values, axes = self.values(download, block)
            self._keep(block, self._mapped(change, block, values, axes), download.round)

    def rehearsal(self, clients: Tensor, number: int, download: Download) -> Callable[[], object]:
        """One client's work in a round, ready to run; nothing is kept."""
        batch = tree_map(lambda value: value[0], self.samples(number, clients).batch)

        @torch.no_grad()
        def work() -> None:
            values, axes = self.home.clients.predicting(download, clients, None)
            mine = {name: value if axes[name] is None else value[0] for name, value in values.items()}
            mine |= self.work.prepare_download({name: mine[name] for name in self.received})
            _, new = self.work.report(mine, batch, Context(number))
            if self.work.after_round is not None:
                self.work.after_round(mine | new)

        return work

    def values(self, download: Download, clients: Tensor, *, received: bool = True) -> tuple[Params, Axes]:
        """What clients see, by name, and the client axis of each; received values after `prepare_download`."""
        values, axes = self.home.clients.predicting(download, clients, None, self.at_home)
        if received:
            prepared = self.prepare(download)
            values, axes = values | prepared, axes | dict.fromkeys(prepared)
        return values, axes

    def prepare(self, download: Download) -> Params:
        """The received values after `prepare_download`, cached until they change."""
        if self.prepared is None or any(download.values[n] is not self.prepared[0].values[n] for n in self.received):
            given = {name: download.values[name] for name in self.received}
            self.prepared = download, self.work.prepare_download(given)
        return self.prepared[1]

    def loss(self, number: int) -> float | None:
        """Clients that report have no loss."""
        return None

    def _keep(self, block: Tensor, new: Params, number: int) -> None:
        for name in new:
            if name not in self.home.client.params or not self.home.client.params[name].own:
                raise SettingError(f"{self.home.name}: a client has no value {name!r} of its own to renew")
        require_finite(new, self.home.name, number)
        self.home.clients.keep(block, new)

    def _mapped(self, work: Callable[..., Any], block: Tensor, values: Params, axes: Axes, *more: Any) -> Any:
        """`work` of every client of a block, stacked: in a loop, or by `vmap`."""
        if self.home.machine.engine != "loop":
            return torch.vmap(work, in_dims=(axes, *[0] * len(more)))(values, *more)
        each = []
        for k, client in enumerate(block.tolist()):
            mine = {name: value if axes[name] is None else value[k] for name, value in values.items()}
            each.append(self._alone(work, client, mine, *(tree_map(lambda one, k=k: one[k], part) for part in more)))
        return tree_map(lambda *parts: torch.stack(parts), *each)

    def _alone(self, work: Callable[..., Any], client: int, *given: Any) -> Any:
        try:
            return work(*given)
        except OwnviewError:
            raise
        except Exception as error:
            raise TrainingError(f"{self.home.name} failed on client {self.home.users[client]}: {error}") from error


def reporting(client: Client) -> Reporting:
    """The work of a client that reports."""
    if not isinstance(client.work, Reporting):
        raise TypeError("a client that trains sends no summands")
    return client.work


def require_finite(values: Params, method: str, number: int) -> None:
    """Refuse values of round `number` that are not finite, by name."""
    name = not_finite(values)
    if name is not None:
        raise TrainingError(
            f"{method} diverged in round {number}: {name} is not finite; lower a rate, or raise the regularisation"
        )


def _speaking(upload: Upload) -> Upload:
    """Drop clients whose summands are all 0; they add no noise either."""
    speaks = torch.zeros(len(upload.clients), dtype=torch.bool, device=upload.clients.device)
    every = [one if isinstance(one, Product) else (_numbers(one),) for one in parts_of(upload.sums).values()]
    for sides in sorted(every, key=lambda one: sum(side.numel() for side in one)):
        if bool(speaks.all()):  # mostly the least summand has said so, and the large ones need no look
            break
        there = [side.reshape(len(speaks), -1).ne(0).any(1) for side in sides]
        speaks |= torch.stack(there).all(0)
    return upload if bool(speaks.all()) else upload.chosen(speaks)


def _numbers(one: Sent | Nearby) -> Tensor:
    """[B, ...] numbers that are all 0 if and only if the client's summand is."""
    if isinstance(one, Nearby):
        return one.mask
    return one.values if isinstance(one, Patch) else torch.as_tensor(one)
