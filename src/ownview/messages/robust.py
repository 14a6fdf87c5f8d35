"""Robust rules: how much of every upload a server counts, when some clients may lie.

    bounded:F     samples, rows of tables and parts of uploads, each at most F times the round's median (`bounded`)
    clipped:F     weighted norms above F times the median of the round's are brought down to that
    trimmed:S     of every number the share S of its highest and of its lowest is left out, among clients that sent it
    median        of every number the middle one, or the middle two, among clients that sent it
    krum:L        the one upload that is nearest to its n - L - 2 nearest others, L liars (Blanchard et al. 2017)
    multi-krum:L  the mean of the n - L uploads that are nearest so
    geometric     the point with the least sum of distances to all uploads (Pillutla et al. 2022), by Weiszfeld's steps

A rule maps all uploads of a round to changed ones, which are then added up. So a server keeps every upload until the
round is over.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from ownview.base.errors import SettingError, suggestion
from ownview.messages.bounded import bounded
from ownview.messages.upload import Upload, wide
from ownview.seam.training import Params

NONE = "none"
_EXPECTED = "expected none, bounded:F, clipped:F, trimmed:S, median, krum:L, multi-krum:L or geometric"
_WEISZFELD = 100
_TOGETHER = 2**28
"""Numbers of all uploads that are compared with each other at most."""

RobustRule = Callable[[list[Upload], Tensor], list[Upload]]
"""Uploads, and [n] how much each client counts -> what is added up in their place, of the same clients."""


def settled(
    uploads: Iterable[Upload], rule: RobustRule, weighting: str = "uniform", personal: Params | None = None
) -> Iterator[Upload]:
    """All uploads of a round, changed by a rule.

    Args:
        uploads: of the round.
        rule: that changes them.
        weighting: clients count by their "samples", or are "uniform".
        personal: by name, the server's tables where clients send whole tables; a rule sees differences from them.
    """
    base = personal or {}
    held = [with_tables_moved(one, base, -1) for one in uploads if len(one.clients)]
    if held:
        samples = torch.cat([one.samples for one in held]).double()
        weights = samples if weighting == "samples" else torch.ones_like(samples)
        yield from (with_tables_moved(one, base, 1) for one in rule(held, weights))


def with_tables_moved(upload: Upload, base: Params, sign: int) -> Upload:
    """Personal tables as changes (sign -1), or changes as personal tables (sign 1)."""
    tables = {name: one + sign * base[name] for name, one in upload.whole.items() if name in base}
    return replace(upload, whole={**upload.whole, **tables}) if tables else upload


def robust_rule(text: str) -> RobustRule | None:
    """Read the setting `robust`; None for none."""
    name, _, given = text.partition(":")
    if text == NONE:
        return None
    numbers = dict.fromkeys(("bounded", "clipped"), (0.0, float("inf"))) | {"trimmed": (0.0, 0.5)}
    numbers |= dict.fromkeys(("krum", "multi-krum"), (0.0, 1e9))
    rules = {"bounded": bounded, "clipped": clipped, "trimmed": trimmed, "krum": krum, "multi-krum": multi_krum}
    if name in rules:
        low, high = numbers[name]
        try:
            number = float(given)
        except ValueError:
            number = -1.0
        whole = name not in ("krum", "multi-krum") or number == int(number)
        if not (low < number < high and whole):
            kind = "a whole number of liars above 0" if "krum" in name else f"a number between {low:g} and {high:g}"
            raise SettingError(f"federation setting robust={text!r}: found {given!r}, expected {kind}")
        return lambda uploads, weights: rules[name](uploads, weights, number)
    if not given and name in ("median", "geometric"):
        return (lambda uploads, weights: trimmed(uploads, weights, 0.5)) if name == "median" else geometric
    near = suggestion(name, ("none", "bounded", "clipped", "trimmed", "median", "krum", "multi-krum", "geometric"))
    raise SettingError(f"federation setting robust={text!r}: {_EXPECTED}{near if 'did you mean' in near else ''}")


def clipped(uploads: list[Upload], weights: Tensor, factor: float) -> list[Upload]:
    """Uploads whose weighted norm is at most `factor` times the median of those that are not 0."""
    norms = torch.cat([one.norms() for one in uploads]) * weights
    there = norms[norms > 0]
    most = factor * float(there.median()) if len(there) else 0.0
    return _scaled(uploads, (most / norms.clamp(min=1e-300)).clamp(max=1.0))


def trimmed(uploads: list[Upload], weights: Tensor, share: float) -> list[Upload]:
    """Trimmed mean: of t clients floor(share t) numbers at either end become 0, the k others are scaled by t / k.

    At least one, or of an even t two, are left: with share = 1/2 it is the median.
    """
    rows = {name: [one.rows[name] for one in uploads] for name in uploads[0].rows}
    whole = {name: [one.whole[name] for one in uploads] for name in uploads[0].whole}
    items = torch.cat([one.items[one.touched] for one in uploads])
    touched = [int(one.touched.sum()) for one in uploads]
    kept: dict[str, Sequence[Tensor]] = {}
    for name, parts in rows.items():
        flat = torch.cat([part[one.touched] for part, one in zip(parts, uploads, strict=True)])
        kept[name] = torch.split(_trimmed(items, flat, share), touched)
    one_group = torch.zeros(len(weights), dtype=torch.long, device=weights.device)
    for name, parts in whole.items():
        kept[name] = torch.split(_trimmed(one_group, torch.cat(parts), share), [len(one.clients) for one in uploads])
    made = []
    for place, one in enumerate(uploads):
        spread = {name: torch.zeros_like(one.rows[name]) for name in rows}
        for name, table in spread.items():
            table[one.touched] = kept[name][place]
        made.append(replace(one, rows=spread, whole={name: kept[name][place] for name in whole}))
    return made


def _trimmed(group: Tensor, values: Tensor, share: float) -> Tensor:
    """[N, ...] values with those at the ends of their group's order 0, number by number, and the others enlarged."""
    if not len(values):
        return values
    flat = values.reshape(len(values), -1)
    counts = torch.bincount(group)[group]
    starts = (torch.bincount(group).cumsum(0) - torch.bincount(group))[group]
    cut = torch.minimum((share * counts).floor().long(), (counts - 1) // 2)
    by_value = flat.argsort(dim=0, stable=True)
    order = by_value.gather(0, group[by_value].argsort(dim=0, stable=True))
    rank = torch.empty_like(order).scatter_(
        0, order, torch.arange(len(flat), device=flat.device)[:, None].expand_as(order)
    )
    rank = rank - starts[:, None]
    kept = (rank >= cut[:, None]) & (rank < (counts - cut)[:, None])
    larger = (counts / (counts - 2 * cut)).to(flat.dtype)[:, None]
    return (flat * kept * larger).reshape(values.shape)


def krum(uploads: list[Upload], weights: Tensor, liars: float) -> list[Upload]:
    """The upload with the least sum of squared distances to its n - L - 2 nearest, in the place of all."""
    return _mean_of(uploads, weights, _nearest(uploads, liars)[:1])


def multi_krum(uploads: list[Upload], weights: Tensor, liars: float) -> list[Upload]:
    """The mean of the n - L uploads with the least sums of squared distances to their nearest."""
    best = _nearest(uploads, liars)
    return _mean_of(uploads, weights, best[: max(1, len(best) - int(liars))])


def geometric(uploads: list[Upload], weights: Tensor) -> list[Upload]:
    """Weiszfeld: reweigh by a_u / distance to the current mean, repeatedly; distances follow from inner products."""
    inner = _inner(uploads)
    alpha = weights / weights.sum()
    for _ in range(_WEISZFELD):
        apart = (inner.diagonal() - 2 * inner @ alpha + alpha @ inner @ alpha).clamp(min=0).sqrt()
        new = weights / apart.clamp(min=1e-6 * float(inner.diagonal().max()) ** 0.5 + 1e-300)
        new = new / new.sum()
        if float((new - alpha).abs().max()) < 1e-9:
            break
        alpha = new
    return _scaled(uploads, alpha * weights.sum() / weights)


def _nearest(uploads: list[Upload], liars: float) -> Tensor:
    """[n] places of the uploads, the one that is nearest to others first."""
    inner = _inner(uploads)
    squares = inner.diagonal()[:, None] + inner.diagonal() - 2 * inner
    count = len(squares) - int(liars) - 2
    if count < 1:
        raise SettingError(
            f"federation setting robust: {int(liars)} liars of {len(squares)} clients leave no honest neighbour; "
            f"expected {max(0, len(squares) - 3)} liars at most"
        )
    squares.fill_diagonal_(float("inf"))
    return squares.sort(dim=1).values[:, :count].sum(1).argsort(stable=True)


def _mean_of(uploads: list[Upload], weights: Tensor, chosen: Tensor) -> list[Upload]:
    """Uploads whose weighted mean over all clients equals that of the chosen ones."""
    factors = torch.zeros_like(weights)
    factors[chosen] = weights.sum() / weights[chosen].sum()
    return _scaled(uploads, factors)


def _scaled(uploads: list[Upload], factors: Tensor) -> list[Upload]:
    parts = torch.split(factors, [len(one.clients) for one in uploads])
    return [one.scaled(part) for one, part in zip(uploads, parts, strict=True)]


def _inner(uploads: list[Upload]) -> Tensor:
    """[n, n] inner products of all that clients send, in float64."""
    clients = sum(len(one.clients) for one in uploads)
    width = max((int(one.items.max()) + 1 for one in uploads if one.items.numel()), default=0)
    total = torch.zeros(clients, clients, dtype=torch.float64, device=uploads[0].clients.device)
    for name in (*uploads[0].rows, *uploads[0].whole):
        tables = [_dense(one, name, width) for one in uploads]
        numbers = sum(one.numel() for one in tables)
        if numbers > _TOGETHER:
            raise SettingError(
                f"federation setting robust: {numbers:,} numbers of {name!r} would be compared with each other, "
                f"{_TOGETHER:,} at most; expected clipped:F, or fewer clients in a round"
            )
        flat = torch.cat(tables)
        total += (flat @ flat.T).double()
    return total


def _dense(upload: Upload, name: str, width: int) -> Tensor:
    """[B, D] one part of the uploads of a block."""
    if name in upload.whole:
        return upload.whole[name].reshape(len(upload.clients), -1)
    change = upload.rows[name]
    table = change.new_zeros(len(change), width, *change.shape[2:])
    index = wide(upload.items, change).expand_as(change)
    return table.scatter_add_(1, index, change * wide(upload.touched, change)).reshape(len(change), -1)
