"""The server: it chooses clients, sends downloads, takes uploads and combines them. It sees no client's state."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from random import Random, SystemRandom

import torch
from torch import Tensor

from ownview.base.errors import TrainingError, suggestion
from ownview.base.randomness import bits, derive, unit
from ownview.config.participation import participants, participation
from ownview.federation.optimizer import ServerOptimizer
from ownview.federation.reporting import reporting, require_finite
from ownview.federation.tables.mixtures import Mixtures
from ownview.federation.terms import Terms
from ownview.messages.download import Download
from ownview.messages.sums import MeanPartial, SumPartial
from ownview.messages.upload import Upload
from ownview.privacy.entropy import NoiseKey
from ownview.privacy.protected import next_bound, without_bound
from ownview.privacy.transforms import Summing
from ownview.privacy.whole_steps import BOUND
from ownview.seam.cohorts import Seen
from ownview.seam.roles import HELD, PERSONAL, REPORTED
from ownview.seam.server import SUMS, Arrived, RowMean, Rule, Sums
from ownview.seam.training import Params


class AggregationServer:
    """Shared values, values held back, what clients reported, and mixtures.

    Args:
        terms: agreed on with the clients.
        noise: what noise of sums is drawn from; None for the terms' own, as in a simulation.
    """

    def __init__(self, terms: Terms, noise: NoiseKey | None = None) -> None:
        self.terms, self.noise = terms, noise or terms.noise
        self.ring = terms.seed if noise is None else noise.number("ring")
        """Seed of the order in which clients that are masked stand on a ring."""
        self.secret = noise is not None
        """Whether this is no simulation, so that chance must not be guessed."""
        self.shared: Params = {}
        self.held: Params = {}
        self.reported: Params = {}
        self.pending: Params = {}
        self.mixtures: dict[str, Mixtures] = {}
        self.joined = torch.zeros(terms.world.num_clients, dtype=torch.bool, device=terms.machine.device)
        for name, param in terms.client.params.items():
            if not (param.from_server or param.role in (HELD, REPORTED)):
                continue
            start = terms.drawn(name)
            if param.role is REPORTED:
                self.reported[name] = start.repeat(terms.world.num_clients, *[1] * start.dim())
                if terms.server.cohort is not None:
                    self.pending[name] = torch.zeros_like(self.reported[name])
            else:
                (self.held if param.role is HELD else self.shared)[name] = start
            if name in terms.mixed and terms.server.mixing is not None:
                key = derive(terms.seed, "mixing")
                self.mixtures[name] = Mixtures(terms.server.mixing, start, terms.world.num_clients, key)
        averaged = {name: self.shared[name] for name in terms.averaged}
        self.optimizer = ServerOptimizer(terms.options, without_bound(averaged))
        self.seen = self._seen(0)

    def choose(self, number: int, present: Tensor | None = None) -> Tensor:
        """Identities of the clients that take part in round `number`, ascending.

        Args:
            number: of the round.
            present: [P] identities of the clients that are there, ascending; None for everybody.
        """
        terms, self.seen = self.terms, self._seen(number)
        chosen = participation(terms.options.clients)
        if present is not None:
            return present[participants(chosen, terms.seed, number, len(present), present.device)]
        wanted = chosen.wanted(terms.world.num_clients)
        if terms.server.cohort is not None and wanted is not None and wanted < terms.world.num_clients:
            return terms.server.cohort.choose(self.seen, wanted)
        return participants(chosen, terms.seed, number, terms.world.num_clients, terms.machine.device)

    def _seen(self, number: int) -> Seen:
        """`Seen` of round `number`: the newest reported values."""
        return Seen({name: value.clone() for name, value in self.reported.items()}, self.terms.seed, number)

    def download(
        self, number: int, clients: Tensor, names: frozenset[str] | None = None, *, for_training: bool = False
    ) -> Download:
        """The download for these clients.

        Args:
            number: of the round.
            clients: [B] identities.
            names: of values that clients read; mixtures of other values are skipped. None for all.
            for_training: whether clients that do not receive in this round get no tables.
        """
        values, mixtures = dict(self.shared), {}
        for name, param in self.terms.client.params.items():
            if name in self.mixtures and (names is None or param.received_as in names):
                mixtures[name] = self.mixtures[name].sent(clients)
            if param.everybodys_mean and (names is None or param.everybodys_mean in names):
                values[param.everybodys_mean] = self.mixtures[name].common()
        moves = {name: value[clients] for name, value in self.pending.items()}
        receives = self._receives(number, clients) if for_training else None
        return Download(number, values, mixtures, moves, receives)

    def shuffle(self, number: int, order: list[int]) -> None:
        """Put a list into random order: by the system's entropy, or by the seed of a simulation."""
        (SystemRandom() if self.secret else Random(derive(self.terms.seed, "groups", number))).shuffle(order)

    def _receives(self, number: int, clients: Tensor) -> Tensor | None:
        """[B] who receives in this round; None where everybody does. In its first round every client does."""
        share = self.terms.options.receiving
        if share == 1.0:
            return None
        drawn = bits(derive(self.terms.seed, "receiving", number), clients, torch.zeros_like(clients))
        return (unit(drawn) < share) | ~self.joined[clients]

    def _mixed_among(self, number: int) -> Tensor | None:
        """[n] whose tables are mixed for a round; None for everybody's."""
        if self.terms.server.mixed_among == "all":
            return None
        clients = torch.arange(self.terms.world.num_clients, device=self.joined.device)
        return self._receives(number, clients)

    def begin(self, number: int) -> MeanPartial | SumPartial:
        """Empty accumulators of round `number`."""
        return partial_sums(self.terms, self.shared, number)

    def see(self, upload: Upload) -> None:
        """Hook for every arriving upload; an honest server does nothing."""
        return

    def see_sum(self, total: MeanPartial | SumPartial) -> None:
        """A group's sum stands open, before groups are compared; an honest server looks no further."""
        return

    def take(self, upload: Upload) -> None:
        """Store what the server keeps by client (mixed tables, reported values); sums are the accumulators' task."""
        for name in (one for one in self.reported if one in upload.whole):
            self.reported[name][upload.clients] = upload.whole[name]
            if name in self.pending:  # the client has added it
                self.pending[name][upload.clients] = 0
        for name, mixtures in self.mixtures.items():
            mixtures.take(upload.clients, upload.whole[name], upload.samples)

    def finish(self, number: int, total: MeanPartial | SumPartial, cohort: Tensor, made: Params | None = None) -> None:
        """Combine the uploads of the round.

        Args:
            number: of the round.
            total: of their uploads.
            cohort: [K] identities.
            made: by name, the change by a rule that needs every upload; see `seam.server.Rule`.
        """
        self.joined[cohort] = True  # not as uploads arrive: a group of masked ones may be left out after that
        self.protect(number, total)
        if isinstance(total, SumPartial):
            plan = self.terms.world.protection
            self._combine(number, total, len(cohort) if plan is None else round(plan.clients))
            return
        mean = total.mean()
        if BOUND in mean:
            self.shared = {**self.shared, BOUND: next_bound(self.shared[BOUND], mean.pop(BOUND))}
        rule = self.terms.server.combine
        if isinstance(rule, Rule) and len(cohort):
            mean = self._ruled(rule, number, mean, made, len(cohort))
        self.shared = {**self.shared, **self.optimizer.apply({name: self.shared[name] for name in mean}, mean)}
        for mixtures in self.mixtures.values():
            mixtures.settle()
        for name, mixtures in self.mixtures.items():
            mixtures.mix(number, self.reported, self.mixtures, self._mixed_among(number + 1))
            self.shared[name] = mixtures.mean()
        after = self.terms.server.after
        if after is not None:
            new = after(self.shared | self.held, lambda name: self.terms.drawn(name, number))
            for name, value in new.items():
                (self.held if name in self.held else self.shared)[name] = value
        self._move_others(cohort)

    def protect(self, number: int, total: MeanPartial | SumPartial) -> None:
        """Noise that the server adds to sums before they are used."""
        if self.terms.transform is not None:
            self.terms.transform.on_server(total, Summing(number, self.shared.get(BOUND), self.noise))

    def _ruled(self, rule: Rule, number: int, mean: Params, made: Params | None, clients: int) -> Params:
        """The change by a method's own rule; its new held values are stored."""
        if made is None:
            made = rule.function(dict(mean), self.shared | self.held, Arrived(number, clients))
        for name in made:
            if name not in mean and name not in self.held:
                known = suggestion(name, (*mean, *self.held))
                raise TrainingError(f"{self.terms.name}: the server's rule makes {name!r}, no value it changes{known}")
        require_finite(made, self.terms.name, number)
        dtype = self.terms.machine.dtype
        self.held |= {name: value.to(dtype) for name, value in made.items() if name in self.held}
        return {name: made[name].to(dtype) if name in made else torch.zeros_like(old) for name, old in mean.items()}

    def _combine(self, number: int, total: SumPartial, clients: int) -> None:
        combine = self.terms.server.combine
        if not clients or not isinstance(combine, Sums):
            return
        new = combine.combine(total.sums, self.shared | self.held, Arrived(number, clients))
        for name in new:
            if name not in self.shared and name not in self.held:
                known = suggestion(name, (*self.shared, *self.held))
                raise TrainingError(f"{self.terms.name}: combine makes {name!r}, no value of the server's{known}")
        require_finite(new, self.terms.name, number)
        for name, value in new.items():
            (self.held if name in self.held else self.shared)[name] = value.to(self.terms.machine.dtype)

    def _move_others(self, cohort: Tensor) -> None:
        """Move clients outside the cohort (`Cohort.moves`), with their next download."""
        choosing = self.terms.server.cohort
        if choosing is None or not 0 < len(cohort) < self.terms.world.num_clients:
            return
        for name, move in choosing.moves(self.seen, cohort, self.reported).items():
            self.reported[name] += move
            self.pending[name] += move

    def pack(self) -> dict[str, Tensor]:
        """Everything by name, for a checkpoint."""
        packed = {f"{kind}.{name}": value for kind in _KINDS for name, value in getattr(self, kind).items()}
        for name, mixtures in self.mixtures.items():
            packed |= {f"mixtures.{name}.{part}": value for part, value in mixtures.pack().items()}
        return packed | {"joined": self.joined} | self.optimizer.pack()

    def unpack(self, packed: Mapping[str, Tensor]) -> None:
        """Restore what `pack` returned."""
        for kind in _KINDS:
            for name, value in getattr(self, kind).items():
                # Earlier versions kept nothing pending.
                getattr(self, kind)[name] = packed.get(f"{kind}.{name}", value).to(value.device, copy=True)
        for name, mixtures in self.mixtures.items():
            prefix = f"mixtures.{name}."
            mixtures.unpack({k.removeprefix(prefix): v for k, v in packed.items() if k.startswith(prefix)})
        self.joined = packed.get("joined", self.joined).to(self.joined.device, copy=True)
        self.optimizer.unpack(packed)


def partial_sums(terms: Terms, shared: Params, number: int) -> MeanPartial | SumPartial:
    """Empty accumulators for one round.

    Args:
        terms: of the federation.
        shared: by name, what was sent out.
        number: of the round, from 1.
    """
    steps = None if terms.transform is None else terms.transform.counted(number, shared.get(BOUND))
    combine = terms.server.combine
    like = torch.empty(0, dtype=terms.machine.dtype, device=terms.machine.device)
    words = None if terms.masked is None else like.new_zeros(terms.masked.layout.size, dtype=torch.long)
    if isinstance(combine, Sums):
        total = SumPartial(reporting(terms.client).sends, like, steps)
        total.words = words
        return total
    personal = frozenset(name for name in terms.averaged if terms.client.params[name].role is PERSONAL)
    weigh = combine.weigh if isinstance(combine, RowMean) else None
    averaged = {name: shared[name] for name in shared if name in terms.averaged}
    plan = terms.world.protection
    divisor = None if plan is None else plan.clients
    mean = MeanPartial(averaged, like, combine.weighting, personal, terms.by_row, weigh, terms.tables, divisor, steps)
    mean.words = words
    return mean


_KINDS = ("shared", "held", "reported", "pending")


def planned_bytes(terms: Terms) -> int:
    """Bytes that the server needs, before any of it is allocated."""
    params, world = terms.client.params, terms.world
    values = {name: prod(param.whole_shape(world.num_items)) for name, param in params.items()}
    standing = sum(values[name] for name, param in params.items() if param.from_server or param.role is HELD)
    standing += world.num_clients * sum(values[name] for name, param in params.items() if param.role is REPORTED)
    if isinstance(terms.server.combine, Sums):
        standing = _while_combining(terms, terms.server.combine, standing)
    elif isinstance(terms.server.combine, Rule) and terms.server.combine.needs != SUMS:
        standing += world.num_clients * sum(values[name] for name in terms.averaged if name in values)
    # Mixtures: uploads of this round and the last, and weights.
    standing += sum((2 * values[name] + world.num_clients) * world.num_clients for name in terms.mixed)
    return standing * terms.machine.bytes_per_value


def _while_combining(terms: Terms, combine: Sums, standing: int) -> int:
    """Numbers in memory while sums are combined."""
    if combine.in_place:
        # New values beside old ones that are still empty in the first round, in which every client sends all.
        all_take_part = participation(terms.options.clients).wanted(terms.world.num_clients) == terms.world.num_clients
        return (1 if all_take_part else 2) * standing + combine.working
    sums = sum(prod(one.shape) for one in reporting(terms.client).sends.values())
    if terms.transform is not None and not terms.transform.writes_out:
        sums *= 2  # whole numbers, in float64
    return 2 * (standing + sums) + combine.working
