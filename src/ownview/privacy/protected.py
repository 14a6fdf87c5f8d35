"""An accounted budget at work: summands are clipped, and noise is added once, by the aggregator or by devices.

Here the aggregator adds it, or every device as much as its own upload needs. Devices that share the noise send whole
numbers, and are masked: `privacy.masked`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from ownview.base.errors import SettingError, TrainingError
from ownview.messages.sums import Partial
from ownview.messages.upload import Upload
from ownview.privacy.bounds import noise_norm, numbers_of, over
from ownview.privacy.transforms import Clip, Sending, Summing, Transform
from ownview.privacy.whole_steps import BOUND, WholeSteps
from ownview.seam.client import Client, Reporting
from ownview.seam.initial import Constant
from ownview.seam.protection import CENTRAL, Protection
from ownview.seam.roles import received
from ownview.seam.server import SUMS, RowMean, Server, Sums
from ownview.seam.training import Params

_ADAPTION = 0.2
"""C moves by exp(-_ADAPTION (share of clients within C - 1/2)) a round (Andrew et al., NeurIPS 2021)."""


@dataclass(frozen=True)
class Protected(Transform):
    """Clients clip their summands to norm C; noise of z C is added once to every sum, in whole steps.

    Symmetric matrices have noise of z C on the diagonal and z C / sqrt 2 off it, the same above and below: of the
    independent numbers, each one off the diagonal counts twice in the norm.

    Where the aggregator adds the noise, it also rounds contributions to whole steps and clips them once more: clients
    are not trusted with the bound.

    Args:
        plan: who adds how much noise.
        symmetric: names of the sums that are symmetric matrices.
    """

    plan: Protection
    symmetric: frozenset[str] = frozenset()

    @classmethod
    def by(cls, plan: Protection, client: Client) -> Protected:
        """Protection of a method's uploads under a plan."""
        sends = client.work.sends if isinstance(client.work, Reporting) else {}
        return cls(plan, frozenset(name for name, one in sends.items() if one.symmetric))

    @property
    def writes_out(self) -> bool:
        """Devices that add noise send every number."""
        return self.plan.mode != CENTRAL

    def refusal(self, client: Client, server: Server) -> str | None:
        """Why not: uploads must go into sums and nothing else."""
        return no_sums(client, server)

    def on_client(self, upload: Upload, sending: Sending) -> Upload:
        """Clipped, and with noise where devices add it."""
        number = require_planned(self.plan, sending.number)
        bound = torch.as_tensor(self.plan.clip) if sending.bound is None else sending.bound
        upload = bounded(upload, sending, bound, tells_whether=self.plan.adaptive)
        if not self.writes_out:
            return upload
        upload = upload.spread(sending.num_items)
        sums = upload.written_out()
        steps = WholeSteps.of(self.plan, number, float(bound), self.symmetric)
        made, clients = steps.whole(replace(upload, sums=sums)), upload.clients.tolist()

        def noisy(name: str, value: Tensor) -> Tensor:
            each = [
                steps.noisy(name, mine.contiguous(), sending.noise, "upload", number, client)
                for mine, client in zip(value, clients, strict=True)
            ]
            return torch.stack(each) if each else value

        whole = {name: noisy(name, value).to(upload.whole[name].dtype) for name, value in made.whole.items()}
        added = {name: noisy(name, value).to(sums[name].dtype) for name, value in made.written_out().items()}
        return replace(upload, whole=whole, sums=added)

    def excess(self, upload: Upload, sending: Sending) -> Tensor:
        """[B] norms over C (plus the largest noise), or |number sent about C| over 1/2 if that is more."""
        number = require_planned(self.plan, sending.number)
        bound = self.plan.clip if sending.bound is None else float(sending.bound)
        longest, inside = bound, 0.5
        learnt = replace(upload, whole=without_bound(upload.whole))
        if self.writes_out:
            longest += noise_norm(self.plan.of_changes(number) * bound, numbers_of(learnt, self.symmetric))
            inside += noise_norm(self.plan.of_quantile(number), 1)
        found = over(learnt, longest, sending.weights)
        if BOUND not in upload.whole:
            return found
        said = replace(upload, rows={}, sums={}, whole={BOUND: upload.whole[BOUND]})
        return torch.maximum(found, over(said, inside, torch.ones_like(sending.weights)))

    def on_server(self, partial: Partial, summing: Summing) -> None:
        """The sum with noise, where the aggregator adds it; from whole steps back to numbers."""
        number = require_planned(self.plan, summing.number)
        steps = self.counted(number, summing.bound)
        if steps is None:
            return
        for name, total in partial.sums.items():
            found = steps.noisy(name, total, summing.noise, "sum", number)
            partial.sums[name] = found.to(partial.value_type)

    def counted(self, number: int, bound: Tensor | None) -> WholeSteps | None:
        """Rounding of contributions to whole steps; None where they are added as they arrive."""
        if self.writes_out:
            return None
        clip = self.plan.clip if bound is None else float(bound)
        return WholeSteps.of(self.plan, require_planned(self.plan, number), clip, self.symmetric)


def no_sums(client: Client, server: Server) -> str | None:
    """Why a method's uploads cannot be protected; None where they are summed, so that each can be clipped."""
    if server.needs != SUMS:
        return "its server needs every single upload, and only sums can be protected"
    if not isinstance(server.combine, RowMean | Sums) and server.combine.rows == "touched":
        return "which rows a client touched tells its items, noise or not; expected row_mean=all"
    return Clip(1.0).refusal(client, server)


def bounded(upload: Upload, sending: Sending, bound: Tensor, *, tells_whether: bool) -> Upload:
    """All summands of a client scaled down to norm C together; and 1/2 where they were within C, else -1/2.

    Args:
        upload: of B clients.
        sending: their weights.
        bound: [] C.
        tells_whether: whether clients send that 1/2 or -1/2 too.
    """
    norms = upload.norms() * sending.weights.double()
    upload = upload.scaled((bound.double() / norms.clamp(min=1e-30)).clamp(max=1.0))
    if not tells_whether:
        return upload
    inside = (norms <= bound).to(bound.dtype) - 0.5
    return replace(upload, whole={**upload.whole, BOUND: inside})


def require_planned(plan: Protection, number: int) -> int:
    """The number of a round that the budget is for."""
    if number > plan.rounds:
        raise TrainingError(f"round {number}: the budget is for {plan.rounds} rounds, and they are over")
    return number


def with_bound(client: Client, plan: Protection | None) -> Client:
    """The client, which receives C where it is adaptive."""
    if plan is None or not plan.adaptive:
        return client
    if isinstance(client.work, Reporting):
        raise SettingError(
            "federation setting privacy: an adaptive clip is for methods that train; one that reports sums needs a "
            "bound for them; expected clip=C, such as clip=1"
        )
    return replace(client, params={**client.params, BOUND: received(initial=Constant(plan.clip))})


def next_bound(bound: Tensor, within: Tensor) -> Tensor:
    """C after a round in which the (noisy) share of clients within it was 1/2 + `within`."""
    return bound * torch.exp(-_ADAPTION * within)


def without_bound(values: Params) -> Params:
    """Values by name without C."""
    return {name: value for name, value in values.items() if name != BOUND}
