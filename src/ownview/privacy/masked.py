"""Masked sums: uploads are clipped and encoded as whole numbers modulo 2^32, of which the server needs only the sum.

With a budget (`distributed`) every device adds a share of the noise, of variance sigma^2 / T, rounded to whole numbers
(`privacy.rounded_noise`); without one (`masked`) there is none. Masks themselves are put on afterwards, by the exchange
of a round (`privacy.masking.exchange`), and change no sum.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from ownview.base.errors import SettingError
from ownview.base.randomness import bits, derive, unit
from ownview.messages.layout import Layout
from ownview.messages.sums import Partial
from ownview.messages.upload import MODULUS, Upload
from ownview.privacy.exact_gaussian import rounded_gaussian
from ownview.privacy.masking.cohort import COLLUDING, MOST, Cohort, cohort
from ownview.privacy.masking.fixed_point import FixedPoint
from ownview.privacy.masking.primitives import require_package
from ownview.privacy.masks import Masks
from ownview.privacy.protected import bounded, no_sums, require_planned
from ownview.privacy.rounded_noise import LEAST_STEPS, delta_of_rounding
from ownview.privacy.transforms import Sending, Summing, Transform
from ownview.privacy.whole_steps import BOUND
from ownview.seam.client import Client
from ownview.seam.protection import QUANTILE_SHARE, Protection
from ownview.seam.server import Server

_OF_MEDIAN = (
    "where all are honest at most pi / 2 times the variance of the sum of all groups, which in_the_sum counts with; "
    "less of few groups, 1.35 times the variance of three"
)


@dataclass(frozen=True)
class Masked(Transform):
    """Clients send whole numbers modulo 2^32 whose norm is bounded; the server learns their sum.

    Args:
        layout: where every number stands.
        clip: C, the largest norm of what a client adds; the first one where it is adaptive.
        clients: of a round.
        threshold: T, how many of them, or of a group where there are groups, must send at least.
        masks: settings of the masks.
        plan: the budget; None where there is no noise.
    """

    layout: Layout
    clip: float
    clients: int
    threshold: int
    masks: Masks
    plan: Protection | None = None

    def require_possible(self) -> None:
        """Refuse a sum that does not fit, noise too fine to be rounded, and masks without their package."""
        if self.masks.real:
            require_package()
            together = -(-self.clients // self.groups)
            if together > MOST:
                raise SettingError(
                    f"federation setting privacy: masks of {together:,} clients: everybody holds a share of "
                    f"everybody's secrets, which is too much for more than {MOST:,} in a round; expected such as "
                    f"clients={MOST}, or masks=skipped in a simulation"
                )
        self.cohort  # noqa: B018 - refuses too few neighbours
        self.coding(1, None)
        if self.plan is not None and self.least_steps < LEAST_STEPS:
            raise SettingError(
                f"federation setting privacy: the share of the noise that one of {self.threshold:,} devices adds has "
                f"{self.least_steps:.2g} steps; expected at least {LEAST_STEPS:g}: a smaller epsilon, or fewer clients "
                "in a round"
            )

    @cached_property
    def cohort(self) -> Cohort:
        """Sizes of one sum: its clients at most, how many must be left, and neighbours that share masks.

        Groups are as large as places make them, and below 2 T: two sums over T of a group have a client in common.
        Groups are drawn, so one may hold more than its share of clients that collude with the server: all members of
        a group are neighbours, and no client can be left with colluding neighbours alone.
        """
        if self.groups == 1:
            return cohort(self.clients, self.threshold, self.masks.neighbours)
        return Cohort(2 * self.threshold - 1, self.threshold, 2 * self.threshold - 2)

    @property
    def groups(self) -> int:
        """G, how many sums a round has."""
        return self.masks.groups

    @property
    def fewest(self) -> int:
        """How many clients a round needs."""
        return self.groups * self.threshold

    def refusal(self, client: Client, server: Server) -> str | None:
        """Why not: uploads must go into sums and nothing else."""
        return no_sums(client, server)

    def on_client(self, upload: Upload, sending: Sending) -> Upload:
        """Whole numbers modulo 2^32, with the device's share of the noise where there is a budget."""
        bound = torch.as_tensor(self.clip) if sending.bound is None else sending.bound
        coding = self.coding(sending.number, sending.bound)
        adaptive = self.plan is not None and self.plan.adaptive
        upload = bounded(upload, sending, bound, tells_whether=adaptive).spread(sending.num_items)
        if adaptive:
            length = self._length_of_count(sending.number, float(bound))
            upload = replace(upload, whole={**upload.whole, BOUND: upload.whole[BOUND] * length})
        flat = self.layout.flat(upload)
        if self.plan is None:
            # Nothing stays nothing however it is rounded, and most of a sparse matrix is: no chances are drawn for it.
            places = flat.any(0).nonzero()[:, 0]
            chances = unit(bits(derive(sending.key, "rounding"), upload.clients[:, None], places))
            words = torch.zeros(flat.shape, dtype=torch.int64, device=flat.device)
            words[:, places] = coding.steps(flat[:, places], chances) % MODULUS
        else:
            share = self._noise(sending.number, float(bound)) * coding.scale
            words = self._hidden(flat, coding, round(math.log2(share)), sending, upload.clients) % MODULUS
        nothing = upload.items[:, :0]
        return Upload(
            upload.clients, torch.zeros_like(upload.samples), nothing, nothing.bool(), shapes=upload.shapes,
            words=words,
        )  # fmt: skip

    def _hidden(self, flat: Tensor, coding: FixedPoint, exponent: int, sending: Sending, clients: Tensor) -> Tensor:
        """[B, D] whole numbers with noise of 2^exponent steps; random bits for rounding are as secret as the noise."""
        size, content = flat.shape[1], flat.cpu().numpy()
        streams = [
            sending.noise.stream("share", sending.number, one, content=mine)
            for one, mine in zip(clients.tolist(), content, strict=True)
        ]
        chances = [torch.from_numpy(stream.units(size)) for stream in streams]
        noise = [torch.from_numpy(rounded_gaussian(stream, size, exponent)) for stream in streams]
        if not streams:
            return flat.long()
        return coding.steps(flat, torch.stack(chances).to(flat.device)) + torch.stack(noise).to(flat.device)

    def on_server(self, partial: Partial, summing: Summing) -> None:
        """The sums by name, from the sum of all whole numbers."""
        if partial.words is None:
            return
        named = self.named(partial.words[None], summing.number, summing.bound)
        for name, total in partial.sums.items():
            total.copy_(named[name][0])

    def seen(self, upload: Upload, number: int, bound: Tensor | None) -> Upload:
        """Uploads decoded by the terms: tables of values, or of random numbers where masks are on."""
        if upload.words is None:
            return upload
        return self.layout.spread_out(upload, self.named(upload.words, number, bound))

    def named(self, words: Tensor, number: int, bound: Tensor | None) -> dict[str, Tensor]:
        """By name [B, ...], the numbers that words [B, D] stand for."""
        named = self.layout.named(self.coding(number, bound).values(words))
        if BOUND in named:
            length = self._length_of_count(number, self.clip if bound is None else float(bound))
            named[BOUND] = named[BOUND] / length
        return named

    def coding(self, number: int, bound: Tensor | None) -> FixedPoint:
        """Fixed-point coding of round `number`, as fine as the sum of all clients allows."""
        clip = self.clip if bound is None else float(bound)
        if self.plan is None:
            return FixedPoint.fitting(clip, self.clients)
        require_planned(self.plan, number)
        share = self._noise(number, clip)
        return FixedPoint.fitting(clip * self._longer, self.clients, share * math.sqrt(self.clients), unit=share)

    @property
    def _longer(self) -> float:
        """The largest norm over C; above 1 where C is adaptive, which adds one number to the vector."""
        return (1 - QUANTILE_SHARE) ** -0.5 if self.plan is not None and self.plan.adaptive else 1.0

    def _noise(self, number: int, bound: float) -> float:
        """Standard deviation of one device's share of the noise, in units of the values."""
        return 0.0 if self.plan is None else self.plan.of_changes(number) * bound / math.sqrt(self.threshold)

    def _length_of_count(self, number: int, bound: float) -> float:
        """Factor on the count of norms within C, so that all of the vector needs the same noise."""
        return 1.0 if self.plan is None else self.plan.of_changes(number) * bound / self.plan.of_quantile(number)

    @property
    def least_steps(self) -> float:
        """Smallest standard deviation of a device's noise, in steps, for any clip."""
        if self.plan is None:
            return 0.0
        each = [self._noise(k, self.clip) * self.coding(k, None).scale for k in range(1, self.plan.rounds + 1)]
        return min(each) / (2 if self.plan.adaptive else 1)  # each is a power of 2, and may be just below one

    def sentence(self) -> str:
        """A sentence: what the server sees."""
        sums = f"sums over {self.threshold} to {self.clients} clients"
        if self.groups > 1:
            about = f"about {round(self.clients / self.groups)} clients each (at least {self.threshold})"
            sums = f"{self.groups} sums over {about}, in groups drawn by chance"
        sentence = f"masked: the server sees {sums}, and no single upload"
        if self.plan is None:
            sentence += "; there is no noise, and no epsilon"
        return sentence if self.masks.real else sentence + "; this simulation left the masks out, which changes no sum"

    def described(self) -> dict[str, Any]:
        """For privacy.json."""
        entry: dict[str, Any] = {
            "clients": self.clients,
            "threshold": self.threshold,
            "neighbours": self.cohort.neighbours,
            "clients_that_lift_masks": self.cohort.survivors,
            "colluding_share": COLLUDING,
            "carried_out": self.masks.real,
            "numbers": self.layout.size,
            "modulus": MODULUS,
            "steps_of_one": self.coding(1, None).scale,
        }
        if self.groups > 1:
            entry |= {"groups": self.groups, "combine": "median" if self.masks.median else "alike"}
        if self.plan is not None:
            if self.masks.median:
                entry["noise_of_the_median"] = _OF_MEDIAN
            entry["noise_of_a_device"] = {
                "distribution": "Gaussian, rounded to whole steps, drawn exactly",
                "steps_at_least": self.least_steps,
                "variance": "sigma^2 / threshold",
                "delta_of_rounding": delta_of_rounding(
                    self.plan.epsilon, self.plan.rounds, self.layout.size, self.threshold, self.least_steps
                ),
            }
        return entry
