"""FedEASE with time and FedNext on two clients, worked out by hand, and against dense sums on a larger world."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from math import exp, sqrt

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from ownview import FedEASE, FedNext
from ownview.base.errors import SettingError
from ownview.data.interactions import Interactions
from ownview.data.splitting.splits import Split, leave_one_out
from ownview.round.federation import Federation
from ownview.round.scorers import asked, scorer_of
from ownview.testing.worlds import federation as small_federation
from ownview.testing.worlds import small_world
from tests.methods.golden import ENVELOPE, heading
from tests.methods.timed import DAY, ITEMS, at_work, two_clients

Matrix = NDArray[np.float64]

NEAR, FAR = exp(-1 / 2), exp(-2 / 2)  # one and two places apart at nearness 2


def _scores(one: Federation, users: int) -> Matrix:
    return scorer_of(one).scores(torch.arange(users), None).numpy()


# --- FedEASE ---

# Client 0 has 0, 1, 2 in this order, client 1 has 2, 0: pairs (0, 1) and (1, 2) are one place apart, (0, 2) two places
# at client 0 and one at client 1.
GRAM = np.zeros((ITEMS, ITEMS))
GRAM[:3, :3] = [[2, NEAR, FAR + NEAR], [NEAR, 1, NEAR], [FAR + NEAR, NEAR, 2]]


@pytest.mark.parametrize("engine", ["loop", "vector"])
def test_fedease_with_time(engine: str) -> None:
    one = at_work(FedEASE(regularization=1.0, nearness=2.0, recency=1.0), two_clients(), engine)
    report = one.round(1)
    assert one.server.held["gram"].numpy() == pytest.approx(GRAM, abs=1e-12)
    inverse = np.linalg.inv(GRAM + np.eye(ITEMS))
    weights = np.eye(ITEMS) - inverse / np.diag(inverse)
    pasts = np.array([[exp(-2), exp(-1), 1, 0, 0], [1, 0, exp(-1), 0, 0]])
    assert _scores(one, 2) == pytest.approx(pasts @ weights, abs=1e-12)
    # How many items and which, and the half of their pairs, eight bytes a number: of three items, and of two.
    assert report.bytes_up == ENVELOPE + heading("pairs", 2) + 4 + (3 + 2) * 4 // 2 + (6 + 3) * 8 // 2


def test_repeated_items_count_at_their_latest_place() -> None:
    user, item = np.array([0, 0, 0, 0, 0, 0]), np.array([0, 1, 0, 2, 3, 4])
    data = Interactions.from_rows("again", user, item, timestamp=np.arange(6))
    split = leave_one_out(data, ties="hash", untimed="random", seed=0)
    one = at_work(FedEASE(regularization=1.0, nearness=2.0, recency=1.0), split)
    one.round(1)
    # 1, 0, 2: the first 0 counts no place.
    expected = np.zeros((ITEMS, ITEMS))
    expected[:3, :3] = [[1, NEAR, NEAR], [NEAR, 1, FAR], [NEAR, FAR, 1]]
    assert one.server.held["gram"].numpy() == pytest.approx(expected, abs=1e-12)


def test_without_any_order_it_is_ease_and_says_so() -> None:
    timed = small_world()
    data = Interactions.from_rows("unordered", timed.data.user, timed.data.item)
    split = leave_one_out(data, ties="hash", untimed="random", seed=0)
    assert split.order == "none"
    with_time, without = (
        small_federation(method, split) for method in (FedEASE(), FedEASE(nearness=math.inf, recency=math.inf))
    )
    for one in (with_time, without):
        one.round(1)
    assert np.array_equal(_scores(with_time, split.num_users), _scores(without, split.num_users))
    (note,) = with_time.method.notes(with_time.world)
    assert "nearness=16 and recency=4 are taken as infinite" in note
    assert without.method.notes(without.world) == ()


# --- FedNext ---


def _dense(split: Split, method: FedNext) -> dict[str, Matrix]:
    """Sums of FedNext's full form as its formula says, one position after the other."""
    m, wide, line = split.num_items, len(method.scales) * split.num_items, split.timeline
    sums = {"pasts": np.zeros((wide, wide)), "follows": np.zeros((wide, m)), "recent": np.zeros(m)}
    sums |= {name: np.zeros((m, m)) for name in ("before", "after", "pairs")}
    assert line.times is not None
    assert line.now is not None
    for user in range(split.num_users):
        items, times = line.items.of(user).tolist(), line.times.of(user).tolist()
        for past, future in _positions(items, m, method):
            sums["pasts"] += np.outer(past, past) / sqrt(len(items) - 1)
            sums["follows"] += np.outer(past, future) / sqrt(len(items) - 1)
        for before, after in _pauses(items, times, m, method):
            sums["before"] += np.outer(before, before)
            sums["after"] += np.outer(before, after)
        seen = np.zeros(m)
        seen[items] = 1
        sums["pairs"] += np.outer(seen, seen)
        for item, time in zip(items, times, strict=True):
            sums["recent"][item] += exp(-(int(line.now[user]) - time) / (method.recent_days * DAY))
    return sums


def _positions(items: list[int], m: int, method: FedNext) -> Iterator[tuple[Matrix, Matrix]]:
    """Past and future of every place but the first."""
    for t in range(1, len(items)):
        past, future = np.zeros(len(method.scales) * m), np.zeros(m)
        for k, tau in enumerate(method.scales):
            for j in range(t):
                past[k * m + items[j]] = exp(-(t - 1 - j) / tau)
        for j in range(t, len(items)):
            future[items[j]] = exp(-(j - t) / method.horizon)
        yield past, future


def _pauses(items: list[int], times: list[int], m: int, method: FedNext) -> Iterator[tuple[Matrix, Matrix]]:
    """What was before every pause, and the sitting after it."""
    sitting = np.cumsum([0, *(b - a > method.pause_days * DAY for a, b in pairwise(times))])
    for s in range(1, sitting[-1] + 1):
        before, after = np.zeros(m), np.zeros(m)
        for item, mine in zip(items, sitting, strict=True):
            if mine < s:
                before[item] = exp(-(s - 1 - mine) / method.sittings) / sqrt((sitting < s).sum())
            if mine == s:
                after[item] = 1 / sqrt((sitting == s).sum())
        yield before, after


@pytest.mark.parametrize("engine", ["loop", "vector"])
def test_fednext_by_hand(engine: str) -> None:
    one = at_work(FedNext(scales=(2.0,), horizon=1.0, regularization=1.0), two_clients(), engine)
    one.round(1)
    # Client 0 has two positions, each weighs 2^-1/2: from 0 to 1 and then 2, and from 1 and, a place behind, 0 to 2.
    # Client 1 has one: from 2 to 0.
    half = sqrt(1 / 2)
    pasts, follows = np.zeros((ITEMS, ITEMS)), np.zeros((ITEMS, ITEMS))
    pasts[:3, :3] = [[half + half * NEAR**2, half * NEAR, 0], [half * NEAR, half, 0], [0.0, 0.0, 1.0]]
    follows[:3, :3] = [[0, half, half * exp(-1) + half * NEAR], [0, 0, half], [1.0, 0.0, 0.0]]
    before, after = np.zeros((ITEMS, ITEMS)), np.zeros((ITEMS, ITEMS))
    before[:2, :2], after[:2, 2] = 1 / 2, sqrt(1 / 2)
    for name, expected in {"pasts": pasts, "follows": follows, "before": before, "after": after}.items():
        assert one.server.held[name].numpy() == pytest.approx(expected, abs=1e-12), name
    weights = np.linalg.solve(pasts + np.trace(pasts) / ITEMS * np.eye(ITEMS), follows)
    known = np.array([[exp(-1), exp(-1 / 2), 1, 0, 0], [1, 0, exp(-1 / 2), 0, 0]])
    assert _asked_at(one, two_clients(), later=0) == pytest.approx(known @ weights, abs=1e-12)


def _asked_at(one: Federation, split: Split, later: int) -> Matrix:
    """Scores of everybody whose clock shows so many seconds after its last item."""
    known = split.validation.known
    assert known.now is not None
    question = replace(split.validation, known=replace(known, now=known.now + later))
    return asked(one, question).scores(torch.arange(split.num_users), None).numpy()


def _standard(scores: Matrix) -> Matrix:
    standard: Matrix = (scores - scores.mean()) / scores.std()
    return standard


def test_after_a_pause_a_client_looks_across_it() -> None:
    method, split = FedNext(across_regularization=1.0, ease_regularization=1.0), two_clients()
    one = at_work(method, split)
    one.round(1)
    sums = _dense(split, method)
    across = np.linalg.solve(sums["before"] + np.trace(sums["before"]) / ITEMS * np.eye(ITEMS), sums["after"])
    inverse = np.linalg.inv(sums["pairs"] + np.eye(ITEMS))
    ease = np.eye(ITEMS) - inverse / np.diag(inverse)
    by_sitting, seen = np.array([exp(-1 / 4), exp(-1 / 4), 1, 0, 0]), np.array([1, 1, 1, 0, 0])
    expected = _standard(by_sitting @ across) + _standard(seen @ ease) + 0.5 * _standard(sums["recent"])
    assert _asked_at(one, split, later=DAY + 1)[0] == pytest.approx(expected, abs=1e-10)
    within, still_within = (_asked_at(one, split, later=seconds) for seconds in (0, DAY))
    assert np.array_equal(within, still_within)
    assert not np.allclose(within[0], expected)


def test_the_sums_of_clients_are_the_dense_sums() -> None:
    split, method = _sittings(), FedNext(scales=(1.0, 8.0), horizon=2.0)
    one = small_federation(method, split)
    one.round(1)
    for name, expected in _dense(split, method).items():
        found = (one.server.shared if name == "recent" else one.server.held)[name].numpy()
        assert np.abs(found - expected).max() < 1e-9, name


def test_only_the_latest_items_are_looked_at() -> None:
    split = small_world()
    whole, short = (small_federation(FedNext(length=length), split) for length in (200, 5))
    for one in (whole, short):
        one.round(1)
    lengths = split.train.lengths.numpy()
    assert lengths.max() > 5
    assert float(short.server.held["pairs"].sum()) == pytest.approx((np.minimum(lengths, 5) ** 2).sum())
    assert float(whole.server.held["pairs"].sum()) == pytest.approx((lengths**2).sum())


def _sittings() -> Split:
    """A small world whose users come back now and then."""
    random = np.random.default_rng(5)
    world = small_world()
    times = np.cumsum(random.choice([60, 2 * DAY], size=len(world.data.user), p=[0.8, 0.2]))
    data = Interactions.from_rows("sittings", world.data.user, world.data.item, timestamp=times)
    return leave_one_out(data, ties="hash", untimed="random", seed=0)


# --- FedNext by rank ---


def test_by_rank_it_is_a_ridge_on_the_leading_space() -> None:
    """With as many iterations as it takes, the space is that of the largest eigenvalues."""
    split, rank = _sittings(), 3
    method = FedNext(rank=rank, iterations=400, scales=(2.0,), regularization=0.1, nearness=4.0)
    one = small_federation(method, split)
    for number in range(1, method.enough + 1):
        one.round(number)
    assert method.enough == 401
    gram, sums = _gram(split, 4.0), _dense(split, method)
    root = np.sqrt(np.diag(gram) + 1)
    _, vectors = np.linalg.eigh(gram / np.outer(root, root))
    leading = vectors[:, -rank:] / np.sqrt(root)[:, None]
    pasts = leading.T @ sums["pasts"] @ leading
    weights = np.linalg.solve(pasts + 0.1 * np.trace(pasts) / rank * np.eye(rank), leading.T @ sums["follows"])
    known = np.zeros((split.num_users, split.num_items))
    for user in range(split.num_users):
        items = split.timeline.items.of(user).tolist()
        known[user, items] = np.exp(-np.arange(len(items))[::-1] / 2.0)
    found = _asked_at(one, split, later=0)
    assert np.abs(found - known @ leading @ weights).max() < 1e-6 * np.abs(found).max()


def _gram(split: Split, nearness: float) -> Matrix:
    gram = np.zeros((split.num_items, split.num_items))
    for user in range(split.num_users):
        items = split.timeline.items.of(user).numpy()
        place = np.arange(len(items))
        gram[np.ix_(items, items)] += np.exp(-np.abs(place[:, None] - place) / nearness)
    return gram


@pytest.mark.parametrize("engine", ["loop", "vector"])
def test_the_first_round_by_rank_by_hand(engine: str) -> None:
    """One vector: what is near each item, over the root of how many have it, to length 1 over that root again."""
    one = at_work(FedNext(rank=1, iterations=1, nearness=2.0), two_clients(), engine)
    start = one.server.shared["vectors"].numpy().copy()
    one.round(1)
    root = np.sqrt(np.array([2, 1, 2, 0, 0]) + 1)[:, None]
    spread = GRAM @ start / root
    expected = spread / np.linalg.norm(spread) / np.sqrt(root)
    found = one.server.shared["vectors"].numpy()
    assert found * np.sign(found[0]) == pytest.approx(expected * np.sign(expected[0]), abs=1e-12)


# --- bad input ---


def test_data_without_order_is_refused_in_one_line() -> None:
    data = Interactions.from_rows("unordered", np.repeat([0, 1], 4), np.array([0, 1, 2, 3] * 2))
    split = leave_one_out(data, ties="hash", untimed="random", seed=0)
    with pytest.raises(SettingError, match="fednext needs items in time order, and this data has no times") as caught:
        small_federation(FedNext(), split)
    assert "\n" not in str(caught.value)


def test_rows_in_order_without_times_leave_sittings_out() -> None:
    data = Interactions.from_rows("rows", np.repeat([0, 1], 5), np.array([0, 1, 2, 3, 4] * 2))
    one = small_federation(FedNext(), leave_one_out(data, ties="rows", untimed="rows", seed=0))
    one.round(1)
    assert set(one.server.held) == {"pasts", "follows"}
    (note,) = one.method.notes(one.world)
    assert "nothing is known of sittings" in note


@pytest.mark.parametrize("rank", [0, 2])
@pytest.mark.parametrize("case", ["one interaction", "one time", "backwards"])
def test_odd_histories_give_finite_scores(case: str, rank: int) -> None:
    user, item = np.repeat(np.arange(4), 5), np.tile(np.arange(5), 4)
    times = {
        "one interaction": np.arange(20),
        "one time": np.full(20, 7),
        "backwards": np.arange(20)[::-1] * 3 * DAY,
    }[case]
    keep = np.concatenate([np.arange(k * 5, k * 5 + 3) for k in range(4)]) if case == "one interaction" else slice(None)
    data = Interactions.from_rows(case, user[keep], item[keep], timestamp=times[keep].copy())
    split = leave_one_out(data, ties="hash", untimed="random", seed=0)
    for method in (FedNext(rank=rank, iterations=1), FedEASE()):
        one = small_federation(method, split)
        for number in range(1, 3):
            one.round(number)
        assert np.isfinite(_scores(one, 4)).all()


def test_a_rank_above_the_number_of_items_is_refused() -> None:
    with pytest.raises(SettingError, match="setting rank=6: expected at most 5"):
        at_work(FedNext(rank=6), two_clients())
