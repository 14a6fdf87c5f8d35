"""Clients in this process on simulated devices: slow ones, late ones, some that disappear; and asynchronous rounds.

Events are drawn from the seed and take no real time. A round is the one of `round.conduct`; this module decides which
clients answer in it, on which of the server's versions they worked, and the time on the simulated clock.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from heapq import heapify, heappop, heappush

import torch
from torch import Tensor

from ownview.base.errors import SettingError, TrainingError
from ownview.base.randomness import bits, derive
from ownview.config.participation import participation
from ownview.config.simulated_devices import DAY, SimulatedDevices
from ownview.federation.server import AggregationServer
from ownview.federation.terms import Terms
from ownview.federation.work import Work
from ownview.messages.download import Download
from ownview.messages.upload import Upload
from ownview.round.conduct import LATE, Round, Uploads
from ownview.round.local_fleet import LocalFleet, worked
from ownview.seam.client import Training
from ownview.seam.training import Params

DROPPED = "dropped out"
_STEP = 600.0
"""Simulated seconds from one look for clients to the next, where none is there."""


@dataclass(frozen=True)
class Flight:
    """Clients at work between asynchronous rounds, and the clock.

    Args:
        now: simulated seconds since the first round began.
        clients: [F] identities.
        versions: [F] the round whose values each received.
        arrivals: [F] when each will have sent.
    """

    now: float
    clients: Tensor
    versions: Tensor
    arrivals: Tensor


@dataclass(frozen=True)
class Planned:
    """Plan of one round.

    Args:
        number: of it.
        cohort: [C] clients that answer or should, ascending.
        versions: [C] the round whose values each works on.
        absent: by client, why it does not answer.
        after: the clock and who is at work when it is over.
    """

    number: int
    cohort: Tensor
    versions: Tensor
    absent: dict[int, str]
    after: Flight


class Simulated(LocalFleet):
    """All clients of a federation, on devices as its setting `devices` has them.

    Args:
        terms: what they have agreed on with the server.
        work: of the clients.
        devices: they run on.
    """

    def __init__(self, terms: Terms, work: Work, devices: SimulatedDevices) -> None:
        super().__init__(terms, work)
        self.devices = devices
        require_simulable(terms, devices)
        lengths = work.home.train.lengths.double()
        self.load = lengths / lengths.mean().clamp(min=1e-9)
        empty = torch.zeros(0, dtype=torch.long, device=terms.machine.device)
        self.flight = Flight(0.0, empty, empty, empty.double())
        self.past: dict[int, Params] = {}
        """By round, what the server had for everybody then, as long as a client works on it."""
        self.planned: Planned | None = None

    def choose(self, server: AggregationServer, number: int) -> Tensor:
        """[C] identities that should answer in a round; repeated calls give the same."""
        if self.planned is None or self.planned.number != number:
            self.planned = self._asynchronous(server, number) if self.devices.buffer else self._together(server, number)
        return self.planned.cohort

    def _there(self, server: AggregationServer, now: float) -> tuple[Tensor, float]:
        """Identities of the available clients, and the time; if none is available, the clock moves on until one is."""
        clients = torch.arange(self.terms.world.num_clients, device=self.terms.machine.device)
        needed = 4 * self.terms.codec.dense_download(server.download(0, clients[:0]))  # with slope and two moments
        able = clients[self.devices.fits(self.terms.seed, clients, needed)]
        for _ in range(int(DAY / _STEP) + 1):
            there = able[self.devices.there(self.terms.seed, able, now)]
            if len(there):
                return there, now
            now += _STEP
        raise TrainingError(
            f"federation setting devices={self.terms.options.devices!r}: no client has the {needed:,} bytes that a "
            "round's work needs"
        )

    def _together(self, server: AggregationServer, number: int) -> Planned:
        """Plan a synchronous round: it ends with the last upload, or at the deadline."""
        there, now = self._there(server, self.flight.now)
        all_there = len(there) == self.terms.world.num_clients
        cohort = server.choose(number, None if all_there else there)
        seconds, dropped = self._durations(number, cohort)
        late = (seconds > self.devices.deadline) & ~dropped if self.devices.deadline else torch.zeros_like(dropped)
        absent = dict.fromkeys(cohort[dropped].tolist(), DROPPED) | dict.fromkeys(cohort[late].tolist(), LATE)
        longest = float(seconds.max()) if len(cohort) else 0.0
        after = now + (min(longest, self.devices.deadline) if self.devices.deadline else longest)
        return Planned(number, cohort, torch.full_like(cohort, number), absent, replace(self.flight, now=after))

    def _durations(self, number: int, clients: Tensor) -> tuple[Tensor, Tensor]:
        """[B] seconds of work of each client, and [B] whether it drops out half-way."""
        dropped = self.devices.dropped(self.terms.seed, number, clients)
        seconds = self.devices.seconds(self.terms.seed, number, clients, self.load[clients])
        return torch.where(dropped, seconds / 2, seconds), dropped

    def _asynchronous(self, server: AggregationServer, number: int) -> Planned:
        """Plan an asynchronous round, until the buffer is full; after each arrival another client starts."""
        flight, seed, device = self.flight, self.terms.seed, self.terms.machine.device
        at_work = list(zip(flight.arrivals.tolist(), flight.clients.tolist(), flight.versions.tolist(), strict=True))
        heapify(at_work)
        wanted = participation(self.terms.options.clients).wanted(self.terms.world.num_clients) or 1
        there, now = self._there(server, flight.now)
        order = there[bits(derive(seed, "flight", number), there, torch.zeros_like(there)).argsort()]
        seconds, _ = self._durations(number, order)
        busy = {client for _, client, _ in at_work}
        waiting = [pair for pair in zip(order.tolist(), seconds.tolist(), strict=True) if pair[0] not in busy][::-1]
        arrived: dict[int, int] = {}
        while len(arrived) < self.devices.buffer:
            while waiting and len(at_work) < wanted:
                client, takes = waiting.pop()
                heappush(at_work, (now + takes, client, number))
            if not at_work:
                break
            now, first, version = heappop(at_work)
            if not bool(self.devices.dropped(seed, version, torch.tensor([first], device=device))):
                arrived[first] = version
        cohort = torch.tensor(sorted(arrived), dtype=torch.long, device=device)
        versions = torch.tensor([arrived[one] for one in sorted(arrived)], dtype=torch.long, device=device)
        ends, clients, began = zip(*sorted(at_work), strict=True) if at_work else ((), (), ())
        left, since = (torch.tensor(column, dtype=torch.long, device=device) for column in (clients, began))
        after = Flight(now, left, since, torch.tensor(ends, dtype=torch.float64, device=device))
        return Planned(number, cohort, versions, {}, after)

    def ask(self, going: Round) -> Uploads:
        """Yield uploads of the clients that answer, on the versions that they received."""
        planned = self.planned
        assert planned is not None
        for client, why in planned.absent.items():
            going.leave_out([client], why)
        going.simulated = planned.after.now
        if not self.devices.buffer:
            yield from super().ask(going)
            return
        self.past[going.number] = dict(going.first.values)
        for version in sorted(set(planned.versions.tolist())):
            cohort = planned.cohort[planned.versions == version]
            going.stale |= dict.fromkeys(cohort.tolist(), going.number - version)
            sent = Download(version, self.past[version])
            offered = partial(_the_same, sent)
            asked = worked(self.terms, self.work, sent, cohort, offered, going.traffic, going.clock)
            factor = (1.0 + going.number - version) ** -self.devices.staleness
            for _, uploads in asked:
                for upload in uploads:
                    yield self._aged(upload, factor)
        going.loss = self.work.loss(going.number)

    def _aged(self, upload: Upload, factor: float) -> Upload:
        return upload if factor == 1 else upload.scaled(torch.full_like(upload.samples, factor, dtype=torch.float64))

    def tell(self, going: Round) -> None:
        """End the round: advance the clock, and drop versions that no client works on."""
        super().tell(going)
        assert self.planned is not None
        self.flight, self.planned = self.planned.after, None
        used = set(self.flight.versions.tolist())
        self.past = {version: values for version, values in self.past.items() if version in used}

    def pack(self) -> dict[str, Tensor]:
        """Clock, clients at work and the versions that they work on, for a checkpoint."""
        flight = self.flight
        packed = {"flight.now": torch.tensor(flight.now, dtype=torch.float64), "flight.clients": flight.clients}
        packed |= {"flight.versions": flight.versions, "flight.arrivals": flight.arrivals}
        named = ((version, name, value) for version, values in self.past.items() for name, value in values.items())
        return packed | {f"past.{version}.{name}": value for version, name, value in named}

    def unpack(self, packed: Mapping[str, Tensor]) -> None:
        """Restore what `pack` returned; without it, as before the first round."""
        if "flight.now" not in packed:
            return
        device, self.planned, self.past = self.terms.machine.device, None, {}
        parts = (packed[f"flight.{name}"].to(device) for name in ("clients", "versions", "arrivals"))
        self.flight = Flight(float(packed["flight.now"]), *parts)
        for key, value in packed.items():
            if key.startswith("past."):
                _, version, name = key.split(".", 2)
                self.past.setdefault(int(version), {})[name] = value.to(device, copy=True)


def _the_same(sent: Download, clients: Tensor) -> Download:
    """The download that all clients that began in the same round received."""
    return sent


def require_simulable(terms: Terms, devices: SimulatedDevices) -> None:
    """Refuse asynchronous rounds where they make no sense, with the reason."""
    why = ""
    if devices.buffer and not isinstance(terms.client.work, Training):
        why = f"clients of {terms.name} report sums, which do not grow old; expected no buffer"
    elif devices.buffer and (terms.mixed or terms.server.cohort is not None):
        why = f"the server of {terms.name} has something for every single client; expected no buffer"
    elif devices.buffer and terms.options.privacy != "none":
        why = "budgets and masks are for synchronous rounds; expected no buffer"
    elif devices.buffer and participation(terms.options.clients).wanted(terms.world.num_clients) is None:
        why = f"clients={terms.options.clients!r} is no number of clients at work; expected a share or a number"
    elif devices.buffer and terms.options.receiving < 1:
        why = "every client at work has received; expected receiving=1.0"
    if why:
        raise SettingError(f"federation setting devices={terms.options.devices!r}: {why}")
