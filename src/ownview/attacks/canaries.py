"""The canary audit: clients made up to be recognised, and the least epsilon their recognition allows.

A canary sends one of D orthogonal directions of the upload's space, as long as the mechanism lets through. Everybody
else sends 0, which is what an attacker who knows everybody else makes of them. The auditor lays all D directions beside
what was released: those of canaries that took part give scores "in", all others scores "out". If the mechanism is
(epsilon, delta)-private, then for every threshold t

    P(in > t) <= e^epsilon P(out > t) + delta,

so that bounds on the two shares (Clopper and Pearson) give a lower bound on epsilon. It says nothing of how much larger
epsilon is; it finds mechanisms that keep less than they claim.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import torch
from torch import Tensor

from ownview.attacks.guesses import Inapplicable
from ownview.attacks.view import CuriousServer, Scene
from ownview.base.randomness import derive, generator
from ownview.config.participation import participants, participation
from ownview.federation.terms import Terms
from ownview.messages.upload import Upload
from ownview.privacy.entropy import NoiseKey
from ownview.privacy.masking.groups import drawn
from ownview.round.federation import Federation
from ownview.seam.client import Reporting

UPLOAD, SUM = "one upload", "the sum"

_MOST_DIRECTIONS = 2**14
_NUMBERS = 2 * 10**8
"""That the audit of one seed may send; fewer canaries where an upload is large."""

_QUANTILES = (0.02, 0.1, 0.25, 0.5, 0.75, 0.9, 0.97)
"""Of half of the scores "in": where thresholds stand. The other half is counted."""


@dataclass(frozen=True)
class AuditSettings:
    """How an audit is made.

    Args:
        rounds: in which a canary takes part like any other client; what they release is added up, those with less
            noise counting more.
        sees: `UPLOAD`, a canary's own messages, or `SUM`, what the server makes of everybody's.
        canaries: at most, in one release.
        releases: (sums) how often everything is released anew, to see more directions that are not there.
        delta: of the guarantee.
        confidence: of the bound.
    """

    rounds: int = 1
    sees: str = UPLOAD
    canaries: int = 100
    releases: int = 8
    delta: float = 1e-5
    confidence: float = 0.95


@dataclass(frozen=True)
class LowerBound:
    """Epsilon is at least `epsilon`; with so few scores it could not have been shown above `ceiling`."""

    epsilon: float
    ceiling: float


def audit(scene: Scene, settings: AuditSettings, seed: int) -> LowerBound | Inapplicable:
    """A lower bound on the epsilon of whatever the scene's options put on uploads; other noise for other seeds."""
    federation = scene.federation()
    example = _example(federation)
    if example is None:
        return Inapplicable("clients send nothing")
    space = Space.of(example, federation.terms, seed)
    others = scene.split.num_users // 2 if settings.sees == SUM else settings.canaries
    most = max(4, min(settings.canaries, others, space.size // 2, _NUMBERS // space.numbers))
    inside: list[Tensor] = []
    outside: list[Tensor] = []
    for release in range(1 if settings.sees == UPLOAD else settings.releases):
        terms = replace(
            federation.terms, seed=derive(seed, "canary audit", release), noise=_unlike(federation.terms, seed, release)
        )
        canaries = Canaries(terms, space, example, _length(terms, space, example), most)
        scored = canaries.uploads if settings.sees == UPLOAD else canaries.sums
        ins, outs = scored(settings.rounds)
        inside.append(ins)
        outside.append(outs)
    return lower_bound(torch.cat(inside), torch.cat(outside), settings.delta, settings.confidence)


def lower_bound(inside: Tensor, outside: Tensor, delta: float, confidence: float = 0.95) -> LowerBound:
    """From scores of canaries that took part and of directions that did not.

    Thresholds come from every other score "in"; the rest is counted, and the chance of being wrong is shared out over
    both shares and all thresholds.
    """
    chosen, counted = inside[::2], inside[1::2]
    hair = 1e-6 * float(inside.abs().mean())  # scores without any noise differ by rounding alone
    wrong = (1 - confidence) / (2 * len(_QUANTILES))
    best = 0.0
    for threshold in torch.quantile(chosen, torch.tensor(_QUANTILES, dtype=chosen.dtype)):
        right, false = (int((scores > threshold - hair).sum()) for scores in (counted, outside))
        best = max(best, _implied(right, len(counted), false, len(outside), wrong, delta))
    return LowerBound(best, _implied(len(counted), len(counted), 0, len(outside), wrong, delta))


def _implied(right: int, ins: int, false: int, outs: int, wrong: float, delta: float) -> float:
    """ln((least true share - delta) / most false share); 0 where that says nothing."""
    from scipy.special import betaincinv  # noqa: PLC0415 - slow to import

    least = float(betaincinv(right, ins - right + 1, wrong)) if right else 0.0
    most = float(betaincinv(false + 1, outs - false, 1 - wrong)) if false < outs else 1.0
    return math.log((least - delta) / most) if least - delta > most else 0.0


@dataclass(frozen=True, eq=False)
class Space:
    """Where canaries live: some numbers of the largest part of an upload, and D orthogonal directions of them.

    Direction k is H_k D^-1/2 with random signs, H Hadamard's matrix. Of a symmetric matrix, numbers above the diagonal
    and their mirror images make one coordinate each, so that a canary is as symmetric as what clients send.

    Args:
        name: of the part.
        in_sums: whether it is a summand.
        shape: of the part.
        places: [D] in the flattened part.
        mirrors: [D] likewise; `places` where it is not symmetric.
        signs: [D] 1 or -1.
        numbers: of a whole upload.
    """

    name: str
    in_sums: bool
    shape: tuple[int, ...]
    places: Tensor
    mirrors: Tensor
    signs: Tensor
    numbers: int

    @property
    def size(self) -> int:
        """D, the number of coordinates."""
        return len(self.places)

    @classmethod
    def of(cls, example: Upload, terms: Terms, seed: int) -> Space:
        """The space of the largest value in uploads shaped like `example`."""
        parts = [(name, False, value) for name, value in example.whole.items()]
        parts += [(name, True, value) for name, value in example.sums.items() if isinstance(value, Tensor)]
        name, in_sums, value = max(parts, key=lambda part: part[2].numel())
        shape, random = tuple(value.shape[1:]), generator(seed, "canaries")
        work = terms.client.work
        symmetric = in_sums and isinstance(work, Reporting) and work.sends[name].symmetric
        places = torch.randint(value.numel(), (4 * _MOST_DIRECTIONS,), generator=random)
        mirrors = places
        if symmetric:
            rows, columns = places // shape[1], places % shape[1]
            rows, columns = torch.minimum(rows, columns)[rows != columns], torch.maximum(rows, columns)[rows != columns]
            places = torch.unique(rows * shape[1] + columns)
            mirrors = places % shape[1] * shape[1] + places // shape[1]
        else:
            places = mirrors = torch.unique(places)
        size = min(_MOST_DIRECTIONS, 2 ** int(math.log2(len(places))))
        chosen = torch.randperm(len(places), generator=random)[:size]
        signs = torch.randint(2, (size,), generator=random) * 2.0 - 1
        return cls(name, in_sums, shape, places[chosen], mirrors[chosen], signs, sum(part[2].numel() for part in parts))

    def canary(self, direction: int, length: float, like: Upload) -> Upload:
        """An upload of that length along a direction; all other numbers are 0."""
        one = torch.zeros(self.size)
        one[direction] = 1.0
        values = transformed(one) * self.signs * length
        flat = self.part(like).new_zeros(math.prod(self.shape))
        if self.places is self.mirrors:
            flat[self.places] = values.to(flat)
        else:
            flat[self.places] = flat[self.mirrors] = (values / math.sqrt(2)).to(flat)
        silent = like.scaled(torch.zeros(1, dtype=flat.dtype))
        part = {self.name: flat.reshape(1, *self.shape)}
        if self.in_sums:
            return replace(silent, sums={**silent.sums, **part})
        return replace(silent, whole={**silent.whole, **part})

    def part(self, upload: Upload) -> Tensor:
        """[1, ...] of an upload with every table whole and summands written out."""
        return upload.written_out()[self.name] if self.in_sums else upload.whole[self.name]

    def scores(self, value: Tensor) -> Tensor:
        """[D] how much of the released part lies along every direction."""
        flat = value.detach().reshape(-1).cpu().double()
        if self.places is self.mirrors:
            numbers = flat[self.places]
        else:
            numbers = (flat[self.places] + flat[self.mirrors]) / math.sqrt(2)
        return transformed(numbers * self.signs)


def transformed(values: Tensor) -> Tensor:
    """H values / sqrt(D), H Hadamard's matrix; D = 2^k numbers, k butterfly steps. It is its own inverse."""
    size, width = len(values), 1
    while width < size:
        pairs = values.reshape(-1, 2, width)
        values = torch.stack([pairs[:, 0] + pairs[:, 1], pairs[:, 0] - pairs[:, 1]], dim=1).reshape(-1)
        width *= 2
    return values / math.sqrt(size)


def _example(federation: Federation) -> Upload | None:
    """What a client really sends in its first round, before anything is done to it, with every table whole."""
    world, device = federation.world, federation.machine.device
    clients = torch.arange(min(world.num_clients, 32), device=device)
    federation.clients.begin(federation.server.download(1, clients[:0]), clients)
    for block in federation.work.blocks(clients):
        upload = federation.work.do(federation.work.samples(1, block), federation.server.download(1, block))
        if len(upload.clients) and (upload.rows or upload.whole or upload.sums):
            one = upload.one(int(upload.norms().argsort()[len(upload.clients) // 2])).spread(world.num_items)
            return replace(one, sums=one.written_out())
    return None


def _unlike(terms: Terms, seed: int, release: int) -> NoiseKey:
    """A key for every release: secret noise is never drawn twice from one."""
    return NoiseKey.from_seed(derive(seed, "canary noise", release)) if terms.noise.seeded else NoiseKey.fresh()


def _length(terms: Terms, space: Space, example: Upload) -> float:
    """As long as the mechanism lets through: any length where it clips, else that of what a client really sends."""
    usual = float(example.norms()[0]) or 1.0
    huge = 1e4 * usual
    arrived = float(terms.seen(terms.sent(space.canary(0, huge, example), 1), 1).norms()[0])
    return usual if arrived > huge / 2 else huge


@dataclass(frozen=True, eq=False)
class Canaries:
    """Some clients that send canaries, each along a direction of its own in every round; all others send 0.

    Args:
        terms: that they send under.
        space: of their directions.
        example: of what clients really send.
        length: of a canary before the mechanism.
        count: of canaries.
    """

    terms: Terms
    space: Space
    example: Upload
    length: float
    count: int

    def sent(self, client: int, number: int) -> Upload:
        """What leaves a client: a canary of the first `count`, 0 of the others."""
        own = self.space.canary(min(client, self.space.size - 1), self.length, self.example)
        if client >= self.count:
            own = own.scaled(torch.zeros(1, dtype=self.space.part(own).dtype))
        return self.terms.sent(replace(own, clients=torch.full_like(own.clients, client)), number)

    def uploads(self, rounds: int) -> tuple[Tensor, Tensor]:
        """Scores in and out of canaries' own messages."""
        inside, outside = [], []
        for client in range(self.count):
            scores = torch.zeros(self.space.size, dtype=torch.float64)
            for number in range(1, rounds + 1):
                found = self.space.scores(self.space.part(self.terms.seen(self.sent(client, number), number)))
                scores += found / self._spread(torch.cat([found[:client], found[client + 1 :]]))
            inside.append(scores[client : client + 1])
            outside.append(torch.cat([scores[:client], scores[client + 1 :]]))
        return torch.cat(inside), torch.cat(outside)

    def sums(self, rounds: int) -> tuple[Tensor, Tensor]:
        """Scores in and out of what is released of everybody's sum; in groups, of the sum of the canary's own group.

        Every group's sum is opened, and has less noise than all together. A canary that does not take part in a round
        is scored in some group, as directions that are not there are in each.
        """
        groups = 1 if self.terms.masked is None else self.terms.masked.groups
        inside = torch.zeros(self.count, dtype=torch.float64)
        outside = torch.zeros(groups, self.space.size - self.count, dtype=torch.float64)
        for number in range(1, rounds + 1):
            server = CuriousServer(self.terms, torch.zeros(0))
            units = [[client] for client in self.cohort(number).tolist()]
            mine = torch.arange(self.count) % groups
            for place, members in enumerate(drawn(units, groups, partial(server.shuffle, number))):
                mine[[client for client in members if client < self.count]] = place
                total = server.begin(number)
                for client in self._heard(members, number):
                    total.add(self.sent(client, number))
                server.protect(number, total)
            for place, sums in enumerate(server.sums):
                found = self.space.scores(sums[self.space.name])
                scores = found / self._spread(found[self.count :])
                inside += scores[: self.count] * (mine == place)
                outside[place] += scores[self.count :]
        return inside, outside.reshape(-1)

    def _spread(self, outside: Tensor) -> Tensor:
        """[] variance of the scores of directions that are not there: a round counts by how little noise it has."""
        return outside.square().mean().clamp(min=1e-12 * self.length**2)

    def cohort(self, number: int) -> Tensor:
        """Who takes part in a round: as the options say, of all clients of the world."""
        terms = self.terms
        chosen = participation(terms.options.clients)
        return participants(chosen, terms.seed, number, terms.world.num_clients, terms.machine.device)

    def _heard(self, cohort: Sequence[int], number: int) -> list[int]:
        """Clients that add anything: canaries, and the others where a mechanism makes something of nothing."""
        silent = self.sent(self.count, number)
        sent = (*silent.whole.values(), *silent.written_out().values())
        adds = any(bool(value.any()) for value in (sent if silent.words is None else (silent.words,)))
        return [client for client in cohort if adds or client < self.count]
