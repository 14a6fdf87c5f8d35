"""Probes: what a protocol gives away on some data, told in sentences. They train nothing."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ownview.data.negatives import NegativeSampler
from ownview.data.splits import NONE, Split
from ownview.evaluation.metrics import hit_rate, ndcg
from ownview.evaluation.protocol import Protocol
from ownview.evaluation.ranking import rankers
from ownview.evaluation.statistics import bootstrap_interval
from ownview.random import derive

_NEGATIVES = 4
_BLOCK = 512


@dataclass(frozen=True)
class Finding:
    """What a probe found. `fires`: numbers measured this way need the sentence beside them."""

    probe: str
    fires: bool
    sentence: str
    values: dict[str, float | str] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """As plain values."""
        return asdict(self)


def audit(split: Split, protocol: Protocol, *, rounds: int = 100, seed: int = 0) -> list[Finding]:
    """All probes of a protocol on data that it has split."""
    return [
        leak_probe(split, protocol, rounds=rounds, seed=seed),
        duplicate_probe(split),
        time_probe(split),
        selection_mark(protocol),
    ]


def leak_probe(split: Split, protocol: Protocol, *, rounds: int, seed: int) -> Finding:
    """Score an item by minus the number of times it was drawn as a training negative in `rounds` rounds.

    This learns nothing about preference, so anything above chance (10 of the candidates) is what the choice of
    negatives gives away. It fires where the lower end of HR@10's 95 % interval over users is above chance.
    """
    drawn = _NegativeCounts(split, protocol, rounds, seed)
    _, test = rankers(protocol, split, seed, torch.device("cpu"), 256 * 10**6)
    standing = test.rank(drawn)
    hits = hit_rate(standing, 10)
    low, high = bootstrap_interval(hits)
    chance = float(np.minimum(10 / standing.candidates, 1).mean())
    reached, fires = float(hits.mean()), low > chance
    sentence = (
        f"under protocol {protocol.name} a model that learns nothing scores HR@10 {reached:.3f} after {rounds} rounds, "
        f"where chance is {chance:.3f}"
    )
    sentence += (
        "; numbers measured with it say little about preference"
        if fires
        else "; which items are drawn as negatives gives nothing away"
    )
    values: dict[str, float | str] = {"HR@10": reached, "low": low, "high": high, "chance": chance}
    return Finding("leak", fires, sentence, {**values, "NDCG@10": float(ndcg(standing, 10).mean()), "rounds": rounds})


def duplicate_probe(split: Split) -> Finding:
    """Share of test pairs that stand in training too."""
    train, has = split.training_items(), np.flatnonzero(split.test != NONE)
    seen = np.mean([bool((train.of(int(u)) == int(split.test[u])).any()) for u in has])
    sentence = (
        f"{seen:.1%} of the held-out pairs stand in training too; a model that repeats training finds them"
        if seen
        else "no held-out pair stands in training"
    )
    return Finding("duplicates", bool(seen), sentence, {"share": float(seen)})


def time_probe(split: Split) -> Finding:
    """Share of users whose held-out item was not decided by time, because times are absent or tied."""
    data = split.data
    if data.timestamp is None:
        return Finding(
            "time", True, "there are no timestamps: no held-out item is known to be a user's latest", {"share": 1.0}
        )
    latest = np.maximum.reduceat(data.timestamp, data.offsets[:-1])
    at_latest = data.timestamp == np.repeat(latest, data.counts)
    tied = float((np.add.reduceat(at_latest, data.offsets[:-1]) > 1).mean())
    sentence = (
        f"for {tied:.1%} of the users several interactions share the latest timestamp, and a tie rule chose among them"
    )
    return Finding("time", tied > 0.5, sentence, {"share": tied})


def selection_mark(protocol: Protocol) -> Finding:
    """Whether the round is chosen on test."""
    on_test = protocol.selection == "test"
    sentence = f"the round is chosen on {protocol.selection}" + ("; test figures are its best case" if on_test else "")
    return Finding("selection", on_test, sentence, {"selection": protocol.selection})


class _NegativeCounts:
    """How often each item was drawn as a training negative of each user; scores are minus that."""

    def __init__(self, split: Split, protocol: Protocol, rounds: int, seed: int) -> None:
        sampler = NegativeSampler(protocol.training_exclusions(split), split.num_items, _NEGATIVES)
        self.counts = torch.zeros(split.num_users, split.num_items, dtype=torch.int32)
        for users in torch.split(torch.arange(split.num_users), _BLOCK):
            real = split.train.padded(users)[1]
            present = real[..., None].expand(*real.shape, _NEGATIVES).reshape(len(users), -1).int()
            for number in range(1, rounds + 1):
                drawn = sampler.draw(derive(seed, "negatives", number), users, real.shape[1])
                self.counts[users[0] : users[-1] + 1].scatter_add_(1, drawn.reshape(len(users), -1), present)

    def scores(self, users: Tensor, items: Tensor | None) -> Tensor:
        """[B, C] minus the counts."""
        every = -self.counts[users].float()
        return every if items is None else every.gather(1, items)
