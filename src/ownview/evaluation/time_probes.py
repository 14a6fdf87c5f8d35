"""Probes about time: whether a table mostly measures the same sitting, the file, or others' future.

Two of them fit models that need seconds: the last item's successors, and EASE^R or, on many items, popularity.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch

from ownview.baselines.ease import EASE
from ownview.baselines.markov import Markov
from ownview.baselines.parts.central import Asked, OneShot
from ownview.baselines.popularity import Popularity
from ownview.baselines.sitting_counts import SittingStarts
from ownview.data.dates import in_utc
from ownview.data.interactions import FloatArray
from ownview.data.ragged import Ragged
from ownview.data.splitting.splits import Split
from ownview.data.timeline import Timeline
from ownview.evaluation.findings import Finding
from ownview.evaluation.metrics import hit_rate, ndcg
from ownview.evaluation.protocol import SPLITS, Protocol
from ownview.evaluation.ranking import Ranker, rankers
from ownview.evaluation.sign_flips import p_between

_HOUR = 3600
_MOSTLY = 0.5
_SCORE_BYTES = 256 * 10**6
_SOLVED = 4000
"""Items up to which EASE^R takes seconds."""

_USERS = 400
"""Whom the probe of others' future asks at most."""

_FEWEST = 30
"""Users without whom that probe says nothing."""

_SURE = 0.01


def time_probes(split: Split, protocol: Protocol, ranker: Ranker, seed: int, most: int | None = None) -> list[Finding]:
    """Those that the data allows; `ranker` asks the split's test, `most` says how many users at most (None: all)."""
    if split.order != "times" or split.test.when is None:
        return []
    found = [sitting_probe(split)]
    if protocol.split == "leave-one-out":
        found += [tie_probe(split, protocol, seed, most), future_probe(split, ranker)]
    if protocol.split == "next-sitting" and protocol.relevant == "first":
        found.append(first_probe(split, ranker.some(most, seed), protocol.pause_days))
    return found


def first_probe(split: Split, ranker: Ranker, pause_days: float) -> Finding:
    """What plain counts of the items that sittings begin with reach, where the first item alone is asked for.

    It always fires: which item a person takes first on coming back is often decided by the site's page, so no figure
    of this question means anything without these counts beside it.
    """
    standing = ranker.rank(_fitted(SittingStarts(pause_days=pause_days), split, ranker))
    hits, gain = float(hit_rate(standing, 10).mean()), float(ndcg(standing, 10).mean())
    sentence = (
        f"asked for the first item of a sitting alone, plain counts of what sittings begin with have HR@10 {hits:.3f} "
        f"and NDCG@10 {gain:.3f}; what is not above that has learnt the page that people see first"
    )
    return Finding("first", True, sentence, {"HR@10": hits, "NDCG@10": gain})


def sitting_probe(split: Split) -> Finding:
    """How soon after the last known item the held-out one came.

    It fires where more than half of them came within an hour: the question is then mostly which item of the same
    sitting comes next.
    """
    question = split.test
    users = question.users
    assert question.when is not None
    gap = question.when[users] - question.known.last.numpy()[users]
    hour, same = float((gap <= _HOUR).mean()), float((gap == 0).mean())
    fires = hour > _MOSTLY
    sentence = (
        f"{hour:.0%} of the held-out items came within an hour of the last known one "
        f"({_span(float(np.median(gap)))} in the median, {same:.0%} at the very same time)"
    )
    if fires:
        sentence += "; such a table mostly asks for the next item of the same sitting"
    return Finding(
        "sitting", fires, sentence, {"within_hour": hour, "same_time": same, "median_seconds": float(np.median(gap))}
    )


def tie_probe(split: Split, protocol: Protocol, seed: int, most: int | None = None) -> Finding:
    """What the file's order within equal times is worth: the last item's successors, ties by rows and by lot.

    It fires where the protocol keeps the file's order and that is worth a tenth of the hits.
    """
    hits = {}
    for ties in ("rows", "hash"):
        other = replace(protocol, name="tie probe", split_ties=ties, candidates=0, same_candidates=False)
        again = split if ties == protocol.split_ties else SPLITS[protocol.split](other, split.data)
        ranker = rankers(other, again, seed, torch.device("cpu"), _SCORE_BYTES)[1].some(most, seed)
        hits[ties] = float(_hits(Markov(), again, ranker).mean())
    gain = hits["rows"] - hits["hash"]
    fires = protocol.split_ties == "rows" and gain > 0.1 * hits["hash"]
    sentence = (
        f"the order of the file within equal times is worth {gain:+.3f} in HR@10 to the last item's successors "
        f"({hits['hash']:.3f} with ties by lot, {hits['rows']:.3f} by the file)"
    )
    if fires:
        sentence += "; part of such a table measures how the file was written"
    return Finding("ties", fires, sentence, {"rows": hits["rows"], "lot": hits["hash"]})


def future_probe(split: Split, ranker: Ranker) -> Finding:
    """The same model and users with others' later interactions in training and without.

    Asked are up to 400 users whose held-out item came soonest after the median one's time; left out is everything from
    there on. It fires where the later interactions help, and the sign-flip test is sure of it (p < 0.01).
    """
    question = split.test
    assert question.when is not None
    users = question.users
    when = question.when[users]
    moment = int(np.median(when))
    places = np.argsort(when, kind="stable")
    places = places[when[places] >= moment][:_USERS]
    past = _before(split, moment)
    model: OneShot = EASE() if split.num_items <= _SOLVED else Popularity()
    if len(places) < _FEWEST or not len(past.train.values):
        return Finding("future", False, "too few users to tell what others' later interactions are worth")
    asked = replace(ranker.of(torch.from_numpy(np.sort(places)).to(ranker.device)), sampled=None)
    with_it, without = _hits(model, split, asked), _hits(model, past, asked)
    p = float(p_between(np.stack([with_it, without], axis=1), 0)[0, 1])
    fires = bool(with_it.mean() > without.mean()) and p < _SURE
    sentence = (
        f"{model.title} has HR@10 {with_it.mean():.3f} for {len(places)} users, and {without.mean():.3f} without what "
        f"others did after {in_utc(moment)}"
    )
    if fires:
        sentence += "; part of such a table measures that others' future was trained on"
    values: dict[str, float | str] = {"with": float(with_it.mean()), "without": float(without.mean()), "p": p}
    return Finding("future", fires, sentence, values)


def _before(split: Split, moment: int) -> Split:
    """The same users and items; what trains is what came before a moment."""
    line = split.timeline
    assert line.times is not None
    early = (line.times.values < moment).numpy()
    user = np.repeat(np.arange(split.num_users), line.items.lengths.numpy())[early]
    items = Ragged.from_pairs(user, line.items.values.numpy()[early], split.num_users)
    times = items.with_values(line.times.values.numpy()[early])
    return replace(split, train=items, timeline=Timeline(items, times, torch.full((split.num_users,), moment)))


def _hits(model: OneShot, split: Split, ranker: Ranker) -> FloatArray:
    """[users] HR@10 of a model that is fitted on the split."""
    return hit_rate(ranker.rank(_fitted(model, split, ranker)), 10)


def _fitted(model: OneShot, split: Split, ranker: Ranker) -> Fitted:
    return Fitted(model, model.fit(split, split.training_items(), 0), ranker.question.known)


class Fitted:
    """A central model as a scorer."""

    def __init__(self, model: OneShot, learned: dict[str, torch.Tensor], known: Timeline) -> None:
        self.model, self.learned, self.known = model, learned, known

    def scores(self, users: torch.Tensor, items: torch.Tensor | None) -> torch.Tensor:
        """[B, m]."""
        every = self.model.scores(self.learned, Asked(users, self.known))
        return every if items is None else every.gather(1, items)


def _span(seconds: float) -> str:
    """In the unit that people would use."""
    for unit, size in (("days", 86_400), ("hours", _HOUR), ("minutes", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} seconds"
