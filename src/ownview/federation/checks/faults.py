"""Faults of a method that training would not name: padding that counts, draws that repeat, a download too early.

Each is looked for by trying the method's functions on drawn values, before anything is trained.
"""

from __future__ import annotations

from collections import UserDict
from collections.abc import Callable, Mapping
from itertools import product
from typing import Any, cast

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_leaves

from ownview.base.errors import SettingError
from ownview.seam.client import Client, Reporting, Training
from ownview.seam.initial import Constant
from ownview.seam.roles import CHANCE, OWN_DATA, RECEIVED, TIMELINE, Param
from ownview.seam.training import Batch, Context, Params

_SAME = 1e-9
"""What two ways of the same loss may differ by, in double precision and of its size."""


class Noted(UserDict[str, Tensor]):
    """Values that note which of them are looked at. No `dict`: unpacking one would go unnoticed."""

    def __init__(self, values: Params) -> None:
        self.data, self.read = values, set[str]()

    def __getitem__(self, name: str) -> Tensor:
        self.read.add(name)
        return self.data[name]


def names_read(function: Callable[..., Any], values: Params, *others: Any) -> frozenset[str]:
    """The names of the values that a function looks at, which is pure and has no branches on values.

    One that does with its values what only a dictionary can is taken to look at all of them.
    """
    noted = Noted(values)
    try:
        function(cast("Params", noted), *others)
    except (TypeError, AttributeError):
        return frozenset(values)
    return frozenset(noted.read)


def require_one_value(what: str, first: Tensor, again: Tensor) -> None:
    """Refuse a function that gives something else when it is called again with the same values."""
    if not torch.equal(first.detach().nan_to_num(), again.detach().nan_to_num()):
        raise SettingError(
            f"{what} is another number when it is worked out again: something draws random numbers (Python's random or "
            "numpy, say), and runs of one seed would differ; expected those of a parameter ov.chance()"
        )


class _Sources(TorchFunctionMode):
    """Notes by name what every tensor is made of, and of what the draws: integers that become a number or an index."""

    def __init__(self, named: Mapping[str, Tensor]) -> None:
        super().__init__()
        self.kept, self.of = list(named.values()), {id(one): {name} for name, one in named.items()}
        self.draws: list[set[str]] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = func(*args, **(kwargs or {}))
        given = [one for one in tree_leaves((args, kwargs)) if isinstance(one, Tensor)]
        whole = [one for one in given if not (one.is_floating_point() or one.dtype == torch.bool)]
        for one in (one for one in tree_leaves(made) if isinstance(one, Tensor)):
            self.kept.append(one)  # or another tensor would be noted under its id
            self.of[id(one)] = self._sources([one, *given])
            if whole and (one.is_floating_point() or one.dtype == torch.bool):
                self.draws.append(self._sources(whole))
        return made

    def _sources(self, tensors: list[Tensor]) -> set[str]:
        return set().union(*(self.of.get(id(one), ()) for one in tensors))


def require_other_draws(client: Client, name: str, values: Params, batch: Batch, numbers: Mapping[str, float]) -> None:
    """Refuse a loss that draws from `chance` alone, or from it and the batch where there are several epochs.

    Every batch of a round would have the same draws, or every epoch.
    """
    lucky = {one for one, param in client.params.items() if param.role is CHANCE}
    for place, phase in enumerate(client.phases if lucky else ()):
        parts = {f"batch.{one}": part for one, part in batch._asdict().items()}
        sources = _Sources({**{one: value.clone() for one, value in values.items()}, **parts})
        seen = dict(zip(values, sources.kept, strict=False))
        with sources:
            client.loss(seen, batch, Context(1, place, numbers))
        other = {one for step in phase.steps for part in step.parts for one in part.names}
        if phase.before_epoch is not None:
            other |= phase.before_epoch(dict(values), Context(1, place, numbers)).keys()
        if phase.epochs == 1:  # each sample comes once
            other |= parts.keys()
        for luck in sorted({one for draw in sources.draws if not draw & other for one in draw & lucky}):
            raise SettingError(
                f"method {name}: its loss draws from {luck!r} without the number of the epoch; it is the same in all "
                f"batches of a round, so that draws repeat; expected ov.bits(key, p[{luck!r}], ...) with batch.rows "
                "and the number of the epoch mixed in, or, for one draw a round, an opening that draws "
                "(docs/write-a-method.md)"
            )


def require_masked(client: Client, name: str, values: Params, batch: Batch, numbers: Mapping[str, float]) -> None:
    """Refuse a loss that counts padding: samples whose mask is 0, and rows that stand there a second time.

    Args:
        client: that trains.
        name: of the method.
        values: of one client.
        batch: of one client; its last sample is padding, and every row counts.
        numbers: of the first round.
    """
    params, work = client.params, client.work
    if not isinstance(work, Training) or any(one.role is TIMELINE for one in params.values()):
        return
    begun = {one: value.double() if value.is_floating_point() else value for one, value in values.items()}
    batch = Batch(*(part.double() if part.is_floating_point() else part for part in batch))
    # What begins with 0 hides what it is multiplied by; after a round it is another number.
    for (place, phase), plain in product(enumerate(client.phases), (begun, _moved_on(begun, params))):
        context = Context(1, place, numbers)
        opened = plain if phase.opening is None else {**plain, **phase.opening(plain, context)}
        loss = work.loss(opened, batch, context).detach()
        other = batch._replace(rows=_last(batch.rows, 1), labels=_last(batch.labels, 1.0))
        if not _alike(loss, work.loss(opened, other, context).detach()):
            raise SettingError(
                f"method {name}: its loss counts samples of padding, which shorter clients have; expected them "
                "multiplied by batch.mask, and divided by batch.mask.sum()"
            )
        tables = _with_a_row_again(opened, params)
        longer = batch._replace(positives=_more(batch.positives), counts=_more(batch.counts))
        if tables and not _alike(loss, work.loss({**opened, **tables}, longer, context).detach()):
            raise SettingError(
                f"method {name}: its loss counts rows that no sample is about, and a client has such rows for padding; "
                "expected what is taken of rows multiplied by batch.counts, or by (batch.counts > 0)"
            )


def _moved_on(values: Params, params: Mapping[str, Param]) -> Params:
    """Values of a later round: what begins alike everywhere has been moved, each number by another little."""
    constant = [one for one, param in params.items() if isinstance(param.initial, Constant) and not param.role.given]
    return dict(values) | {
        one: values[one] + torch.linspace(0.1, 0.2, values[one].numel(), dtype=torch.double).view(values[one].shape)
        for one in constant
        if one in values and values[one].is_floating_point()
    }


def _with_a_row_again(values: Params, params: Mapping[str, Param]) -> Params:
    """Tables with their first row once more at the end, as padding has it; nothing where squares are noted apart."""
    tables: dict[str, Tensor] = {}
    for name, param in params.items():
        if param.squares_outside:
            return {}
        for one in (name, *param.tables_beside):
            if param.rows and one in values:
                again = values[one][:1] * (0 if param.role in OWN_DATA else 1)
                tables[one] = torch.cat([values[one], again])
    return tables


def _last(values: Tensor, last: float) -> Tensor:
    return torch.cat([values[:-1], torch.full_like(values[-1:], last)])


def _more(counts: Tensor) -> Tensor:
    return torch.cat([counts, torch.zeros_like(counts[:1])])


def _alike(one: Tensor, other: Tensor) -> bool:
    apart = float((one - other).abs().nan_to_num())
    return apart <= _SAME * max(1.0, float(one.abs().nan_to_num()))


def require_received_in_time(client: Client, name: str, values: Params, batch: Batch) -> None:
    """Refuse values that clients receive before they work and look at only when they predict.

    What a round costs would be that of an empty value, and the one that is used would never be counted.
    """
    work = client.work
    if not isinstance(work, Reporting) or work.receives_after:
        return
    received = {one for one, param in client.params.items() if param.role is RECEIVED}
    try:
        # In a later round a client may look at what the first has made, as closed forms under a budget do.
        each = [names_read(work.report, work.prepare_download(dict(values)), batch, Context(k)) for k in (1, 2)]
        worked = each[0] | each[1]
    except Exception:  # drawn values need not be what a report can work on; the first round shows it
        return
    late = sorted(received & names_read(client.scores, dict(values)) - worked) if received else []
    if late and not received & worked and not any(one.role is CHANCE for one in client.params.values()):
        raise SettingError(
            f"method {name}: clients receive {late[0]!r} before they report, and look at it only when they predict; "
            "expected Reporting(..., receives_after=True), so that the download that is used is the one that is counted"
        )
