"""Clipping and noise on uploads, each client for itself. Composable, pure functions."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from ownview.base.errors import SettingError, suggestion
from ownview.base.randomness import bits, derive, unit
from ownview.messages.sums import Partial
from ownview.messages.upload import Upload, wide
from ownview.privacy.bounds import noise_norm, numbers_of, over
from ownview.privacy.budget import EXPECTED as BUDGETS
from ownview.privacy.entropy import NoiseKey
from ownview.privacy.masks import EXPECTED as MASKED_SUMS
from ownview.privacy.masks import MASKED
from ownview.privacy.whole_steps import WholeSteps
from ownview.seam.client import Client
from ownview.seam.protection import MODES
from ownview.seam.server import RowMean, Server

_EXPECTED = (
    "expected none, laplace:SCALE such as laplace:0.5, gaussian:clip=C,noise=Z such as gaussian:clip=0.1,noise=1, "
    f"{MASKED_SUMS}, or {BUDGETS}"
)

_PART = 1 << 16
"""Numbers of all clients of a block that get their noise at once."""

Draw = Callable[[Tensor, float], Tensor]
"""Uniform numbers in [0, 1) and a scale -> noise of that scale."""


@dataclass(frozen=True, eq=False)
class Sending:
    """What the client's half of a transform may know besides the upload.

    Args:
        key: random number of the round, for draws that hide nothing.
        weights: [B] how much each client counts in the server's sum.
        num_items: m.
        number: of the round, from 1.
        bound: [] clip C that the server sent for this round; None where the terms fix it.
        noise: what noise is drawn from.
    """

    key: int
    weights: Tensor
    num_items: int
    number: int = 1
    bound: Tensor | None = None
    noise: NoiseKey = field(default_factory=NoiseKey.fresh)


@dataclass(frozen=True, eq=False)
class Summing:
    """What the server's half of a transform may know besides the sums.

    Args:
        number: of the round, from 1.
        bound: [] C as sent to the clients; None where the terms fix it.
        noise: what noise is drawn from.
    """

    number: int
    bound: Tensor | None = None
    noise: NoiseKey = field(default_factory=NoiseKey.fresh)


class Transform(ABC):
    """A step on uploads on their way to the sum, such as clipping or noise: a half at the client, one at the server."""

    @property
    def writes_out(self) -> bool:
        """Whether uploads are dense: every number is sent, zeros included."""
        return True

    def refusal(self, client: Client, server: Server) -> str | None:
        """Why it makes no sense for this method; None where it does."""
        return None

    @abstractmethod
    def on_client(self, upload: Upload, sending: Sending) -> Upload:
        """The uploads of B clients as they leave, each transformed for itself."""

    def on_server(self, partial: Partial, summing: Summing) -> None:
        """The sum as it is used; unchanged unless a transform overrides it."""
        return

    def longest(self, before: float, numbers: int) -> float:
        """The largest weighted norm of an honest client's upload as it leaves; infinite where nothing bounds it.

        Args:
            before: the largest norm before this transform.
            numbers: that a client sends.
        """
        return math.inf

    def excess(self, upload: Upload, sending: Sending) -> Tensor:
        """[B] weighted norms of uploads as they arrive over the largest honest one; above 1 or nan is refused."""
        return over(upload, self.longest(math.inf, numbers_of(upload)), sending.weights)

    def counted(self, number: int, bound: Tensor | None) -> WholeSteps | None:
        """Rounding of contributions to whole steps; None where they are added as they arrive."""
        return None


@dataclass(frozen=True)
class Clip(Transform):
    """Scales a client's weighted change w_u (x_u - x), its summand in the server's sum, down to a norm of at most C.

    Args:
        bound: C, the largest norm of everything a client adds to the sum.
    """

    bound: float

    def refusal(self, client: Client, server: Server) -> str | None:
        """Why not: a clip needs one sum of weighted changes."""
        if server.mixing is not None:
            return "its server keeps every client's table and adds up no changes that a clip could bound"
        if isinstance(server.combine, RowMean):
            return "its server weighs every row by the change itself, so that no clip bounds what is added up"
        if any(param.role.sends == "whole" for param in client.params.values()):
            return "its clients send whole values of their own, which have grown over all rounds, and no changes"
        return None

    def on_client(self, upload: Upload, sending: Sending) -> Upload:
        """Changes times min(1, C / (w |change|))."""
        norms = (upload.norms() * sending.weights).clamp(min=1e-30)
        return upload.scaled((self.bound / norms).clamp(max=1.0))

    def longest(self, before: float, numbers: int) -> float:
        """C."""
        return min(before, self.bound)


@dataclass(frozen=True)
class Noise(Transform):
    """Adds independent noise to every number a client sends, zeros of tables included. It has no epsilon.

    A simulation draws it from the run's seed, as the papers' figures must repeat: with the seed it can be taken off,
    and with a few true values the stream can be recovered (SplitMix64 is invertible). Devices draw from a secret.

    Args:
        scale: of the noise.
        draw: its distribution.
        weighted: whether the noise is that of the weighted change; else of the change itself.
    """

    scale: float
    draw: Draw
    weighted: bool = False

    def on_client(self, upload: Upload, sending: Sending) -> Upload:
        """Every number with noise; the server multiplies by w, so noise of the weighted change is divided by it."""
        upload = upload.spread(sending.num_items)
        factors = 1 / sending.weights.double() if self.weighted else None
        whole, sums = (
            {name: self._hidden(value, name, sending, upload.clients, factors) for name, value in part.items()}
            for part in (upload.whole, upload.written_out())
        )
        return replace(upload, whole=whole, sums=sums)

    def longest(self, before: float, numbers: int) -> float:
        """The largest norm before noise, plus the largest of the noise; infinite unless noise is `weighted`."""
        return before + noise_norm(self.scale, numbers) if self.weighted else math.inf

    def _hidden(self, change: Tensor, name: str, sending: Sending, clients: Tensor, factors: Tensor | None) -> Tensor:
        if sending.noise.seeded:
            return self.noisy(change, derive(sending.key, name), clients, factors)
        streams = [sending.noise.stream("unaccounted", sending.number, name, one) for one in clients.tolist()]
        uniform = torch.stack([torch.from_numpy(one.units(change[0].numel())) for one in streams]).to(change.device)
        noise = self.draw(uniform, self.scale).to(change.dtype).reshape(change.shape)
        return change + (noise if factors is None else noise * wide(factors.to(noise.dtype), noise))

    def noisy(self, change: Tensor, key: int, clients: Tensor, factors: Tensor | None = None) -> Tensor:
        """Values [B, ...] with each client's own noise; `key` is derived from the round and the values' name."""
        noise = drawn(change, key, clients, self.draw, self.scale)
        return change + (noise if factors is None else noise * wide(factors.to(noise.dtype), noise))


def drawn(like: Tensor, key: int, clients: Tensor, draw: Draw, scale: float) -> Tensor:
    """Noise of the shape of `like` [B, ...], from one stream a client; `key` is of the round and the purpose."""
    places = torch.arange(like[0].numel() if len(like) else 0, device=like.device)
    # On a CPU in parts that stay in its caches: several times as fast, and the same numbers.
    together = max(1, _PART // max(1, len(like))) if like.device.type == "cpu" else max(1, len(places))
    noise = like.new_empty(len(like), len(places))
    for part, here in zip(torch.split(places, together), torch.split(noise, together, dim=1), strict=True):
        here.copy_(draw(unit(bits(key, clients[:, None], part)), scale))
    return noise.reshape(like.shape)


@dataclass(frozen=True)
class Chain(Transform):
    """Transforms one after the other at the client, and in reverse order at the server."""

    parts: tuple[Transform, ...]

    def refusal(self, client: Client, server: Server) -> str | None:
        """The first reason of any part."""
        return next((why for part in self.parts if (why := part.refusal(client, server))), None)

    def on_client(self, upload: Upload, sending: Sending) -> Upload:
        """In order."""
        for part in self.parts:
            upload = part.on_client(upload, sending)
        return upload

    def on_server(self, partial: Partial, summing: Summing) -> None:
        """In reverse order."""
        for part in reversed(self.parts):
            part.on_server(partial, summing)

    def longest(self, before: float, numbers: int) -> float:
        """After the last of them."""
        for part in self.parts:
            before = part.longest(before, numbers)
        return before


def transforms(text: str) -> Transform | None:
    """Read the setting `privacy`; None for no protection.

    laplace:S                every number sent gets Laplace noise of scale S; nothing is clipped
    gaussian:clip=C,noise=Z  what a client adds to the server's sum is scaled down to norm C at most; then every number
                             of it gets Gaussian noise of standard deviation Z C
    """
    kind, _, given = text.partition(":")
    if text == "none":
        return None
    if kind == "laplace":
        return Noise(_positive(given, text), laplace)
    if kind == "gaussian":
        named = _named(given, text)
        return Chain((Clip(named["clip"]), Noise(named["noise"] * named["clip"], gaussian, weighted=True)))
    near = suggestion(kind, ("none", "laplace", "gaussian", MASKED, *MODES))
    raise SettingError(f"federation setting privacy={text!r}: {_EXPECTED}{near if 'did you mean' in near else ''}")


def laplace(uniform: Tensor, scale: float) -> Tensor:
    """Laplace quantile: -scale sign(x) log(1 - 2 |x|) with x = u - 1/2."""
    centred = uniform - 0.5
    size = centred.abs().mul_(-2).clamp_(min=2.0**-53 - 1).log1p_().mul_(-scale)
    return size.copysign_(centred)


def gaussian(uniform: Tensor, scale: float) -> Tensor:
    """Scale times the normal distribution's quantile of u."""
    quantile: Tensor = torch.special.ndtri(uniform.clamp(min=2.0**-54))
    return scale * quantile


def _named(given: str, text: str) -> dict[str, float]:
    parts = [part.partition("=")[::2] for part in given.split(",") if part]
    pairs = dict(parts)
    if "clip" not in pairs:
        raise SettingError(
            f"federation setting privacy={text!r}: Gaussian noise protects only what was clipped before; {_EXPECTED}"
        )
    if sorted(name for name, _ in parts) != ["clip", "noise"]:
        raise SettingError(f"federation setting privacy={text!r}: {_EXPECTED}")
    return {name: _positive(value, text) for name, value in pairs.items()}


def _positive(value: str, text: str) -> float:
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if not (math.isfinite(number) and number > 0):
        raise SettingError(f"federation setting privacy={text!r}: {value!r} is not above 0; {_EXPECTED}")
    return number
