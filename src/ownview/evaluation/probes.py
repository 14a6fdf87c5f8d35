"""Probes: what a protocol gives away on some data, in sentences. They train nothing but what takes seconds."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from ownview.base.randomness import bits, derive, unit
from ownview.data.negatives import NegativeSampler
from ownview.data.splitting.splits import Split
from ownview.evaluation.findings import Finding, selection_mark
from ownview.evaluation.metrics import chance_of_hit, hit_rate, ndcg
from ownview.evaluation.protocol import Protocol
from ownview.evaluation.ranking import Ranker, rankers
from ownview.evaluation.sanity import sanity_probes, standard_errors
from ownview.evaluation.statistics import mean_interval
from ownview.evaluation.time_probes import time_probes

_NEGATIVES = 4
_BLOCK = 32
"""Users whose negatives are drawn together: few enough to be of like length, and for their draws to stay in a cache."""

_SCORE_BYTES = 256 * 10**6

ROUNDS = 100
"""Of the leak probe unless said otherwise: as many as the publications train."""

MOST_USERS = 2000
"""The leak probe asks so many users at most, drawn at random; its interval shows what that costs."""

_CLEARLY = 3.0
"""Standard errors above chance from which on the leak probe fires: by chance alone once in 700 audits."""


_SAME_SHARE, _SAME_USERS = 0.1, 10
"""Share of the users that are asked, and how many, who must have one answer in common before that is worth a word."""

_NEW_SHARE = 0.05
"""Share of answers without training interactions from which on a table must say so."""


STEPS = 6
"""Of an audit: groups of probes, each reported when done."""


def audit(
    split: Split,
    protocol: Protocol,
    *,
    rounds: int = ROUNDS,
    seed: int = 0,
    most_users: int = MOST_USERS,
    most_ranked: int | None = None,
    done: Callable[[str], None] = lambda what: None,
) -> list[Finding]:
    """All probes of a protocol on data that it has split; the other arguments are those of `leak_probe`.

    Args:
        split: the data as the protocol splits it.
        protocol: that is probed.
        rounds: of the leak probe.
        seed: of all draws.
        most_users: that the leak probe asks at most.
        most_ranked: that all other probes ask at most; None for all users.
        done: called `STEPS` times, with the name of the group of probes that has ended.
    """
    _, test = rankers(protocol, split, seed, torch.device("cpu"), _SCORE_BYTES)
    steps: dict[str, Callable[[], list[Finding]]] = {
        "leak": lambda: [leak_probe(split, protocol, rounds=rounds, seed=seed, most_users=most_users, ranker=test)],
        "held-out pairs": lambda: [duplicate_probe(split), answers_probe(split), new_items_probe(split)],
        "times": lambda: [time_probe(split)],
        "questions of time": lambda: time_probes(split, protocol, test, seed, most_ranked),
        "selection": lambda: [selection_mark(protocol)],
        "ranking": lambda: sanity_probes(test.some(most_ranked, seed), seed),
    }
    found = []
    for name, look in steps.items():
        found += look()
        done(name)
    return found


def leak_probe(
    split: Split,
    protocol: Protocol,
    *,
    rounds: int,
    seed: int,
    most_users: int = MOST_USERS,
    ranker: Ranker | None = None,
) -> Finding:
    """Score an item by minus the number of times it was drawn as a training negative in `rounds` rounds.

    Items drawn equally often stand in a random order, as in a trained model, whose scores seldom tie: a tie rule that
    puts the held-out item last would hide the leak wherever many items were never drawn.
    This learns nothing about preference, so anything above chance (10 of the candidates) is what the choice of
    negatives gives away. It fires where the lower end of HR@10's 95 % interval over users is above chance, and HR@10
    lies more than three of chance's standard errors above it: a 95 % interval alone cries wolf once in forty times.

    Args:
        split: the data as the protocol splits it.
        protocol: whose negatives are drawn and whose test is asked.
        rounds: of drawing.
        seed: of negatives and candidates, as in a run.
        most_users: asked at most, drawn at random.
        ranker: the test's questions where they are already there.
    """
    if split.test.strangers is not None:
        sentence = "nothing of the users that are asked is trained on, so no negative of theirs can give anything away"
        return Finding("leak", False, sentence, {"told_by": "the split"})
    if split.num_new:
        sentence = "no client draws new items as negatives: training treats all of them alike"
        return Finding("leak", False, sentence, {"told_by": "the split"})
    test = ranker or rankers(protocol, split, seed, torch.device("cpu"), _SCORE_BYTES)[1]
    excluded = protocol.training_exclusions(split)
    enough = split.num_items - excluded.lengths >= _NEGATIVES
    asked = enough[test.users.cpu()].nonzero()[:, 0]
    without = len(test.users) - len(asked)
    if not len(asked):
        sentence = f"no user leaves {_NEGATIVES} items to draw negatives from, so none can give anything away"
        return Finding("leak", False, sentence, {"told_by": "the data"})
    some = (test.of(asked.to(test.device)) if without else test).some(most_users, seed)
    sampler = NegativeSampler(excluded.only(enough), split.num_items, _NEGATIVES, split.data.users)
    standing = some.rank(_NegativeCounts(split, sampler, rounds, seed))
    hits = hit_rate(standing, 10)
    low, high = mean_interval(hits)
    odds = chance_of_hit(standing.candidates - (some.answers - some.met), some.met, 10)
    chance, reached = float(odds.mean()), float(hits.mean())
    fires = low > chance and standard_errors(hits - odds, odds * (1 - odds)) > _CLEARLY
    sentence = (
        f"under protocol {protocol.name} a model that learns nothing scores HR@10 {reached:.3f} after {rounds} rounds, "
        f"where chance is {chance:.3f}"
    )
    sentence += (
        "; numbers measured with it say little about preference"
        if fires
        else "; which items are drawn as negatives gives nothing away"
    )
    if without:
        sentence += f" ({without} of {len(test.users)} users have too many items for that and were not asked)"
    values: dict[str, float | str] = {"HR@10": reached, "low": low, "high": high, "chance": chance}
    values |= {"NDCG@10": float(ndcg(standing, 10).mean()), "rounds": rounds, "users": len(hits)}
    return Finding("leak", fires, sentence, values)


def duplicate_probe(split: Split) -> Finding:
    """Share of test pairs (a user and one right answer) that stand in training too."""
    if split.test.strangers is not None:
        return Finding("duplicates", False, "nothing of the users that are asked is trained on", {"share": 0.0})
    train = split.training_items()
    each = [torch.isin(split.test.relevant.of(u), train.of(u)) for u in split.test.users.tolist()]
    pairs, users = sum(int(one.sum()) for one in each), sum(bool(one.any()) for one in each)
    seen = pairs / max(sum(len(one) for one in each), 1)
    sentence = (
        f"{seen:.1%} of the held-out pairs stand in training too; a model that repeats training finds them"
        if seen
        else "no held-out pair stands in training"
    )
    return Finding("duplicates", bool(seen), sentence, {"share": seen, "pairs": pairs, "users": users})


def answers_probe(split: Split) -> Finding:
    """Share of the users that are asked who have the same answer: where it is large, one item decides a table.

    Data without times may have it where items that many people know come first in the file: the last of these is then
    taken for the latest item of most people who have it. Items that were met only after the model was made have
    positions beyond the catalogue (`Question.relevant`) and count as any others.
    """
    relevant, asked = split.test.relevant, len(split.test.users)
    owners = torch.repeat_interleave(relevant.lengths)
    span = len(split.items_of(split.test))
    answers = torch.unique(owners * span + relevant.values) % span
    most = int(torch.bincount(answers, minlength=1).max())
    share = most / max(asked, 1)
    fires = share > _SAME_SHARE and most >= _SAME_USERS
    sentence = (
        f"one item is the answer for {share:.1%} of the users that are asked ({most} of {asked}); a method that "
        "ranks it well for all looks good, whatever else it learnt"
        if fires
        else f"no item is the answer for more than {share:.1%} of the users that are asked"
    )
    return Finding("answers", fires, sentence, {"share": share, "users": most})


def new_items_probe(split: Split) -> Finding:
    """Share of right answers without training interactions: found by attributes of items alone."""
    right = split.test.relevant.values
    taken = torch.zeros(len(split.items_of(split.test)), dtype=torch.bool)
    taken[split.train.values] = True
    share = float((~taken[right]).double().mean()) if len(right) else 0.0
    fires = share > _NEW_SHARE and not split.num_new
    sentence = f"{share:.1%} of the answers are items that nobody trains on"
    if fires:
        sentence += (
            "; a model that knows items by their ids alone cannot find them (--protocol new-items asks for such)"
        )
    return Finding("new-items", fires, sentence, {"share": share})


def time_probe(split: Split) -> Finding:
    """Share of users whose held-out item was not decided by time, because times are absent or tied."""
    data = split.data
    if split.order == "rows" and data.timestamp is None:
        sentence = "there are no timestamps: the rows of the file are taken to be in time order"
        return Finding("time", False, sentence, {"share": 0.0})
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


class _NegativeCounts:
    """How often each item was drawn as a training negative of each user; scores are minus that.

    Counts are made for the users that are asked about, so memory does not grow with their number. A user's draws do not
    depend on who is drawn for beside it, so users of similar length go together: little is drawn for padding.
    """

    def __init__(self, split: Split, sampler: NegativeSampler, rounds: int, seed: int) -> None:
        self.split, self.sampler, self.rounds, self.seed = split, sampler, rounds, seed

    def scores(self, users: Tensor, items: Tensor | None) -> Tensor:
        """[B, C] minus the counts, less a part in [0, 1) of the user's and the item's own."""
        counts = torch.zeros(len(users), self.split.num_items, dtype=torch.int32)
        for places in torch.split(self.split.train.lengths[users].argsort(stable=True), _BLOCK):
            counts[places] = self._counts(users[places])
        parts = unit(bits(derive(self.seed, "probe ties"), users[:, None], torch.arange(self.split.num_items)))
        every = -(counts + parts.float())
        return every if items is None else every.gather(1, items)

    def _counts(self, users: Tensor) -> Tensor:
        real = self.split.train.padded(users)[1]
        present = real[..., None].expand(*real.shape, _NEGATIVES).reshape(len(users), -1).int()
        counts = torch.zeros(len(users), self.split.num_items, dtype=torch.int32)
        for number in range(1, self.rounds + 1):
            drawn = self.sampler.draw(derive(self.seed, "negatives", number), users, real.shape[1])
            counts.scatter_add_(1, drawn.reshape(len(users), -1), present)
        return counts
