"""What clients and server agree on before the first round."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property

import torch
from torch import Tensor

from ownview.base.errors import MessageError, SettingError
from ownview.base.randomness import derive
from ownview.config.settings import own_settings
from ownview.data.interactions import IdArray
from ownview.data.ragged import Ragged
from ownview.engine.machine import Machine
from ownview.federation.checks.soundness import names_moved, require_sound
from ownview.federation.clients import Clients, changed_rows
from ownview.federation.facts import OwnFacts
from ownview.federation.options import FederationOptions
from ownview.federation.reporting import ReportingWork
from ownview.federation.timelines import Timelines
from ownview.federation.training import TrainingWork
from ownview.federation.work import Household, Work
from ownview.messages.codec import Codec
from ownview.messages.download import Download
from ownview.messages.honest_uploads import require_honest
from ownview.messages.layout import Layout
from ownview.messages.upload import Upload
from ownview.privacy.budget import budget
from ownview.privacy.entropy import NoiseKey, require_package
from ownview.privacy.masked import Masked
from ownview.privacy.masks import masked_sums
from ownview.privacy.planning import masked_cohort
from ownview.privacy.protected import Protected, with_bound
from ownview.privacy.transforms import Clip, Sending, Transform, transforms
from ownview.privacy.whole_steps import BOUND
from ownview.seam.client import Client, Reporting
from ownview.seam.method import Federated
from ownview.seam.protection import DISTRIBUTED
from ownview.seam.roles import PERSONAL, REPORTED
from ownview.seam.server import COORDINATES, SUMS, Mean, RowMean, Rule, Server, Sums
from ownview.seam.training import Params, World

_HEEDED_BY_SUMS = ("clients", "privacy", "robust", "devices")
_WORDS_TOGETHER = 2**22
"""Whole numbers that are made at once."""

_NOISE_TOGETHER = 2**24
"""Numbers that get their noise at once; a stack of all clients would take many times its own memory for it."""


@dataclass(frozen=True, eq=False)
class Terms:
    """Both halves of a method under the federation's options; everything else follows from it.

    Args:
        name: of the method, for errors.
        client: the method's client.
        server: the method's server, with what options change of it.
        world: number of clients and items.
        options: who takes part and how the server combines.
        seed: of the run.
        machine: where values live.
        noise: what noise is drawn from.
    """

    name: str
    client: Client
    server: Server
    world: World
    options: FederationOptions
    seed: int
    machine: Machine
    noise: NoiseKey = field(default_factory=NoiseKey.fresh)

    @classmethod
    def of(
        cls,
        method: Federated,
        world: World,
        options: FederationOptions,
        seed: int,
        machine: Machine,
        noise: NoiseKey | None = None,
    ) -> Terms:
        """Terms, checked; combinations that make no sense are refused with the reason.

        Noise under a budget is drawn from `noise`, or where there is none from a fresh key. All other noise, and that
        of a budget which says `noise=seeded`, comes from the seed.
        """
        asked = budget(options.privacy)
        if (asked is None) != (world.protection is None):
            raise SettingError(f"federation setting privacy={options.privacy!r} is not what the world was planned with")
        client, server = require_sound(method, world)
        server = _with_options(method.name, server, options, client)
        hidden = world.protection is not None or masked_sums(options.privacy) is not None
        if hidden:
            server = _uniform(method.name, server, options)
        secret = asked is not None and not asked.seeded
        key = noise or NoiseKey.fresh() if secret else NoiseKey.from_seed(seed)
        terms = cls(method.name, with_bound(client, world.protection), server, world, options, seed, machine, key)
        if options.row_mean == "touched" and not terms.tables:
            raise SettingError(
                f"federation setting row_mean='touched': the server averages no item table of {method.name}; "
                "expected method or all"
            )
        if options.robust != "none":
            _require_robust(terms)
        why = terms.transform.refusal(client, server) if terms.transform is not None else None
        if hidden and not (why or terms.averaged or isinstance(server.combine, Sums)):
            why = "nothing leaves its clients, so there is nothing to protect"
        if why:
            raise SettingError(
                f"federation setting privacy={options.privacy!r} makes no sense for {method.name}: {why}"
            )
        if terms.masked is not None:
            terms.masked.require_possible()
        if world.protection is not None:
            require_package()
        return terms

    @cached_property
    def mixed(self) -> frozenset[str]:
        """Names of the personal tables that the server mixes for each client."""
        personal = (name for name, param in self.client.params.items() if param.role is PERSONAL)
        return frozenset(personal if self.server.mixing is not None else ())

    @cached_property
    def averaged(self) -> frozenset[str]:
        """Names of what clients send and the server averages."""
        moved = names_moved(self.client)
        sent = (name for name, param in self.client.params.items() if param.sends and param.role is not REPORTED)
        bound = frozenset({BOUND} if BOUND in self.client.params else ())
        return (frozenset(name for name in sent if name in moved) - self.mixed) | bound

    @property
    def tables(self) -> frozenset[str]:
        """Names of the averaged tables."""
        return frozenset(name for name in self.averaged if self.client.params[name].rows)

    @property
    def by_row(self) -> frozenset[str]:
        """Names of tables whose rows are averaged over the clients that touched them."""
        combine = self.server.combine
        return frozenset() if isinstance(combine, Sums) or combine.rows != "touched" else self.tables

    @property
    def _tells_touched(self) -> bool:
        """Whether the server must know which rows samples are about, for means and ranks over those clients."""
        ranks = self.server.needs == COORDINATES or self.options.robust.partition(":")[0] in ("trimmed", "median")
        return bool(self.by_row) or (ranks and bool(self.tables))

    @property
    def weighting(self) -> str:
        """How clients count in sums: by "samples", or "uniform"."""
        return "uniform" if isinstance(self.server.combine, Sums) else self.server.combine.weighting

    @cached_property
    def transform(self) -> Transform | None:
        """Clipping and noise on uploads; None without."""
        if self.masked is not None:
            return self.masked
        if self.world.protection is not None:
            return Protected.by(self.world.protection, self.client)
        return transforms(self.noise_setting)

    @property
    def noise_setting(self) -> str:
        """The setting `privacy`: the federation's, or the method's own default."""
        own = self.server.combine.noise if isinstance(self.server.combine, Sums) else "none"
        return self.options.privacy if self.options.privacy != "none" else own

    @cached_property
    def masked(self) -> Masked | None:
        """Parameters of masked sums; None without masks."""
        plan, asked = self.world.protection, budget(self.options.privacy)
        layout = Layout.of(self.client, self.averaged, self.world.num_items)
        if plan is not None and asked is not None and plan.mode == DISTRIBUTED:
            return Masked(layout, plan.clip, round(plan.clients), plan.threshold, asked.masks, plan)
        sums = masked_sums(self.options.privacy)
        if sums is None:
            return None
        clients = masked_cohort(self.options, self.world.num_clients)
        survivors = sums.masks.survivors(clients, self.options.privacy)
        return Masked(layout, sums.clip, clients, survivors, sums.masks)

    @cached_property
    def codec(self) -> Codec:
        """Codec of messages."""
        steps = [part for phase in self.client.phases for step in phase.steps for part in step.parts]
        shrunk = frozenset(name for part in steps if part.shrink for name in part.names)
        tells_samples = self.weighting == "samples" or bool(self.mixed)
        words = 0 if self.masked is None else self.masked.layout.size
        reported = frozenset(name for name, param in self.client.params.items() if param.role is REPORTED)
        return Codec(
            self.client, self.world.num_items, self.mixed, tells_samples, self._tells_touched, shrunk, words,
            self.machine.bytes_per_value, self.averaged | self.mixed | reported,
        )  # fmt: skip

    def drawn(self, name: str, *numbers: int) -> Tensor:
        """A parameter's initial values, from the seed and its name; `numbers`, such as a round, key later draws."""
        value = self.client.params[name].drawn(name, self.world.num_items, self.seed, *numbers)
        return value.to(self.machine.device, self.machine.dtype)

    def work(
        self, identities: Tensor, train: Ragged, timelines: Timelines, excluded: Ragged, users: IdArray,
        facts: OwnFacts | None = None,
    ) -> Work:  # fmt: skip
        """The work of some clients; see `Clients` and `Household` for the arguments."""
        params, items = self.client.params, self.world.num_items
        rows = changed_rows(self.client, train, items)
        clients = Clients(params, items, identities, self.seed, self.machine, train, timelines, rows, facts)
        hidden = self.masked is not None or self.world.protection is not None
        return work_of(
            Household(
                self.name, self.client, clients, self.world, train, excluded, users, self.seed, self.machine, hidden
            )
        )

    def sizes(self, upload: Upload) -> Tensor:
        """[B] bytes of these clients' messages; with noise they are dense."""
        if self.transform is None or not self.transform.writes_out or not len(upload.clients):
            return self.codec.upload_sizes(self.sent(upload, 1))
        size = self.codec.upload_sizes(self.sent(upload.one(0), 1))
        return size.expand(len(upload.clients))

    def in_parts(self, upload: Upload) -> list[Upload]:
        """Uploads cut into blocks, so that `sent` stays within its memory.

        Noise makes summands dense, maybe items by items: then one client at a time. It makes tables dense, too, and
        needs some 50 bytes a number while it is drawn. Whole numbers take 8 bytes while they are made.
        """
        clients, together = len(upload.clients), len(upload.clients)
        if self.masked is not None:
            together = max(1, _WORDS_TOGETHER // self.masked.layout.size)
        elif self.transform is not None and self.transform.writes_out:
            summed = isinstance(self.server.combine, Sums)
            together = 1 if summed else max(1, _NOISE_TOGETHER // max(1, upload.numbers_filled(self.world.num_items)))
        if together >= clients:
            return [upload]
        return [upload.chosen(slice(start, start + together)) for start in range(0, clients, together)]

    def sent(self, upload: Upload, number: int, bound: Tensor | None = None, noise: NoiseKey | None = None) -> Upload:
        """Uploads as they leave their clients in round `number`; `bound` where the server sent one.

        Noise is drawn from a device's own `noise`; where there is none, from the terms', as in a simulation.
        """
        if self.transform is None:
            return upload
        return self.transform.on_client(upload, self._sending(upload, number, bound, noise or self.noise))

    def refusals(self, upload: Upload, number: int, opened: Params) -> dict[int, str]:
        """By client, why the server counts no upload that an honest client of round `number` cannot have made.

        Args:
            upload: as it arrived.
            number: of the round.
            opened: what clients made of the download (`Terms.opened`).
        """
        if self.transform is None and isinstance(self.client.work, Reporting):
            return _dishonest(upload, self.client.work, opened)
        if self.transform is None or upload.words is not None or not len(upload.clients):  # masks hide how long it is
            return {}
        excess = self.transform.excess(upload, self._sending(upload, number, opened.get(BOUND), self.noise))
        return {
            client: f"client {client}: an upload that is {over:.5g} times as long as privacy={self.options.privacy} "
            "allows; it is not counted"
            for client, over in zip(upload.clients.tolist(), excess.tolist(), strict=True)
            if not over <= 1
        }

    def opened(self, download: Download) -> Params:
        """The download after `prepare_download`, which is the same for all clients and done once."""
        work = self.client.work
        if not isinstance(work, Reporting) or work.receives_after:
            return download.values
        return {**download.values, **work.prepare_download(download.values)}

    def _sending(self, upload: Upload, number: int, bound: Tensor | None, noise: NoiseKey) -> Sending:
        weights = upload.samples if self.weighting == "samples" else torch.ones_like(upload.samples)
        key = derive(self.seed, "privacy", number) if noise.seeded else noise.number("privacy", number)
        return Sending(key, weights, self.world.num_items, number, bound, noise)

    def seen(self, upload: Upload, number: int, bound: Tensor | None = None) -> Upload:
        """Uploads decoded by the terms: whole numbers stand for tables, which masks may hide."""
        return upload if self.masked is None else self.masked.seen(upload, number, bound)


def _dishonest(upload: Upload, work: Reporting, opened: Params) -> dict[int, str]:
    """By client, why no honest client can have made its summands."""
    found = {}
    for place, client in enumerate(upload.clients.tolist()):
        try:
            require_honest(upload.one(place), work, opened)
        except MessageError as error:
            found[client] = str(error)
    return found


def _require_robust(terms: Terms) -> None:
    """Refuse a robust rule that makes no sense, with the reason."""
    combine, text = terms.server.combine, terms.options.robust
    bounded = text.startswith("bounded:")  # of which every upload stays what it is
    why = None if bounded else Clip(1.0).refusal(terms.client, terms.server)
    if isinstance(combine, Rule) and combine.needs != SUMS:
        why = "its server has a rule of its own about single uploads; expected none"
    elif terms.transform is not None:
        why = f"under privacy={terms.noise_setting!r} uploads are hidden, noisy or clipped already"
    elif isinstance(combine, Sums) and not (bounded or text.startswith("clipped:")):
        why = "a sum over people's own items has no upload in its middle; expected bounded:F or clipped:F"
    elif why is None and not isinstance(combine, Sums) and combine.rows == "touched" and "krum" in text:
        why = "rows are averaged over the clients that touched them, and one upload touches few; expected row_mean=all"
    elif why is None and not (terms.averaged or terms.mixed or isinstance(combine, Sums)):
        why = "nothing leaves its clients"
    if why:
        raise SettingError(f"federation setting robust={text!r} makes no sense for {terms.name}: {why}")


def work_of(home: Household) -> Work:
    """The work of a household's clients: training or reporting."""
    return ReportingWork(home) if isinstance(home.client.work, Reporting) else TrainingWork(home)


def _with_options(method: str, server: Server, options: FederationOptions, client: Client) -> Server:
    """The server with the federation's options applied; refuses options that do not apply to it."""
    combine = server.combine
    plain = FederationOptions()
    if isinstance(combine, Sums):
        for one in (name for name in own_settings(FederationOptions) if name not in _HEEDED_BY_SUMS):
            found, usual = getattr(options, one), getattr(plain, one)
            if found != usual:
                raise SettingError(
                    f"federation setting {one}={found!r}: the server of {method} adds up what clients send and has no "
                    f"mean of tables to change; expected {usual!r}"
                )
        return server
    if options.receiving < 1 and not any(param.role is PERSONAL for param in client.params.values()):
        raise SettingError(
            f"federation setting receiving={options.receiving}: a client of {method} has no table of its own to go on "
            "from; expected 1.0"
        )
    weighting = combine.weighting if options.weighting == "method" else options.weighting
    if isinstance(combine, RowMean):
        return server if options.row_mean == "method" else replace(server, combine=Mean(weighting, options.row_mean))
    rows = combine.rows if options.row_mean == "method" else options.row_mean
    return replace(server, combine=replace(combine, weighting=weighting, rows=rows))


def _uniform(method: str, server: Server, options: FederationOptions) -> Server:
    """The server with clients of equal weight: weights by samples would reveal how many a client has, in clear."""
    if options.weighting == "samples":
        raise SettingError(
            f"federation setting weighting='samples': under privacy={options.privacy!r} clients of {method} count the "
            "same, because the number of a client's samples would leave in clear; expected method or uniform"
        )
    combine = server.combine
    if not isinstance(combine, Mean | Rule):
        return server
    return replace(server, combine=replace(combine, weighting="uniform"))
