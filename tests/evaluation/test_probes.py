"""The probes fire where they must and stay silent where they must."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import torch
from tests.outcome import Outcome

from ownview.base.randomness import derive
from ownview.data import Interactions
from ownview.data.datasets.catalog import min_interactions
from ownview.data.negatives import NegativeSampler
from ownview.data.ragged import Ragged
from ownview.data.splitting.causal_splits import next_sitting
from ownview.data.splitting.splits import Split
from ownview.evaluation.findings import selection_mark
from ownview.evaluation.named_protocols import HONEST, PAPER, custom
from ownview.evaluation.probes import _NegativeCounts, answers_probe, audit, duplicate_probe, leak_probe, time_probe
from ownview.evaluation.protocol import Protocol


def _data(users: int = 150, items: int = 220, each: int = 20, *, times: str = "real") -> Interactions:
    random = np.random.default_rng(0)
    user = np.repeat(np.arange(users), each)
    item = np.concatenate([random.choice(items, size=each, replace=False) for _ in range(users)])
    stamps = {"real": random.permutation(len(user)), "tied": np.zeros(len(user)), "none": None}[times]
    return Interactions.from_rows("probed", user, item, timestamp=None if stamps is None else stamps.astype(np.int64))


def test_the_leak_probe_fires_on_paper_and_is_silent_on_honest() -> None:
    paper = leak_probe(PAPER.prepare(_data()), PAPER, rounds=60, seed=0)
    assert paper.fires
    assert float(paper.values["HR@10"]) > 0.99
    assert "a model that learns nothing scores HR@10 1.000" in paper.sentence
    honest = leak_probe(HONEST.prepare(_data()), HONEST, rounds=60, seed=0)
    assert not honest.fires
    low, chance, high = (float(honest.values[name]) for name in ("low", "chance", "high"))
    assert low <= chance <= high


def test_the_leak_is_the_negatives_and_nothing_else() -> None:
    mended = custom({"base": "paper", "negatives_avoid": "training"}, "mended")
    assert not leak_probe(mended.prepare(_data()), mended, rounds=60, seed=0).fires


def test_the_leak_is_found_where_most_items_were_never_drawn() -> None:
    # Some 1,900 draws among 2,200 items leave about 40 of 99 candidates level with the held-out item, which loses ties.
    sparse = PAPER.prepare(_data(users=400, items=2200, each=10))
    leak = leak_probe(sparse, PAPER, rounds=60, seed=0)
    assert PAPER.ties == "last"
    assert leak.fires
    assert 0.18 < float(leak.values["HR@10"]) < 0.32


def test_fewer_users_find_the_same_leak() -> None:
    few = leak_probe(PAPER.prepare(_data()), PAPER, rounds=60, seed=0, most_users=40)
    assert few.fires
    assert few.values["users"] == 40
    assert float(few.values["HR@10"]) > 0.99


def test_users_that_leave_nothing_to_draw_are_not_asked() -> None:
    data = _data(users=150)
    greedy = Interactions.from_rows(
        "greedy",
        np.concatenate([data.users[data.user], np.full(219, 150)]),
        np.concatenate([data.items[data.item], np.arange(219)]),
        timestamp=np.arange(len(data) + 219),
    )
    found = leak_probe(HONEST.prepare(greedy), HONEST, rounds=60, seed=0)
    assert not found.fires
    assert found.values["users"] == 150
    assert "1 of 151 users have too many items" in found.sentence


def test_where_nobody_leaves_anything_to_draw_nothing_is_given_away() -> None:
    small = Interactions.from_rows("small", np.repeat([0, 1], 4), np.tile(np.arange(4), 2), timestamp=np.arange(8))
    assert leak_probe(HONEST.prepare(small), HONEST, rounds=5, seed=0).values == {"told_by": "the data"}


def test_counts_are_those_of_the_negatives_that_training_draws() -> None:
    split = PAPER.prepare(_data(users=70, each=12))
    probed = NegativeSampler(PAPER.training_exclusions(split), split.num_items, 4)
    counted = -_NegativeCounts(split, probed, 3, 5).scores(torch.tensor([64, 3]), None)
    sampler = NegativeSampler(split.known_items(), split.num_items, 4)
    for place, user in enumerate((64, 3)):
        drawn = [sampler.draw(derive(5, "negatives", number), torch.tensor([user]), 10) for number in (1, 2, 3)]
        wanted = torch.bincount(torch.cat(drawn).reshape(-1), minlength=split.num_items)
        assert torch.equal(counted[place].floor().long(), wanted)


def test_the_duplicate_probe_counts_pairs_that_are_trained_on() -> None:
    rows = [("a", k) for k in (1, 2, 3, 4, 1)] + [("b", k) for k in (1, 2, 3, 4, 5)]
    users, items = (np.array(column, dtype=object) for column in zip(*rows, strict=True))
    data = Interactions.from_rows("twice", users, items, timestamp=np.arange(len(rows)))
    kept = duplicate_probe(PAPER.prepare(data))
    assert (kept.fires, kept.values["share"]) == (True, 0.5)
    assert not duplicate_probe(HONEST.prepare(data)).fires


@pytest.mark.parametrize(("users", "fires"), [(40, True), (16, False)])
def test_the_answers_probe_tells_where_one_item_decides(users: int, fires: bool) -> None:
    # Everybody has items of their own; every other user's last one is the same. Eight people are too few for a word.
    user = np.repeat(np.arange(users), 5)
    item = np.arange(len(user))
    item[4::10] = len(user)
    data = Interactions.from_rows("alike", user, item, timestamp=np.arange(len(user)))
    found = answers_probe(PAPER.prepare(data))
    assert (found.values["share"], found.values["users"], found.fires) == (0.5, users // 2, fires)
    assert (
        f"one item is the answer for 50.0% of the users that are asked ({users // 2} of {users})" in found.sentence
    ) is fires


def test_the_duplicate_probe_counts_pairs_and_not_users() -> None:
    """Of four users with two answers each, one answer of the first is trained on: an eighth, not a quarter."""
    split = HONEST.prepare(_data(users=4))
    answers = [other for user in range(4) for other in _never_had(split, user)]
    answers[0] = int(split.train.of(0)[0])
    several = Ragged.from_pairs(np.repeat(np.arange(4), 2), np.array(answers), 4)
    found = duplicate_probe(replace(split, test=replace(split.test, relevant=several)))
    assert found.values == {"share": 1 / 8, "pairs": 1, "users": 1}
    assert "12.5% of the held-out pairs" in found.sentence


def _never_had(split: Split, user: int) -> list[int]:
    had = set(split.known_items().of(user).tolist())
    return [item for item in range(split.num_items) if item not in had][:2]


def test_items_met_after_the_cut_are_answers_of_their_own() -> None:
    """Twenty people come back to the first item of the catalogue, twenty to one that nobody had before.

    The position of the latter is the first beyond the catalogue. The probe took it modulo the catalogue for the first
    item, and said that all forty have one answer.
    """
    day, rows = 86_400, [("first", "old", 0)]
    rows += [(f"u{k}", f"{k} had {place}", place) for k in range(40) for place in range(3)]
    rows += [(f"u{k}", "old" if k < 20 else "new", 30) for k in range(40)]
    users, items, times = zip(*rows, strict=True)
    data = Interactions.from_rows("later", np.array(users), np.array(items), timestamp=np.array(times) * day)
    split = next_sitting(data, moment=20 * day, pause=day, fewest=3, relevant="all", ties="hash", seed=0)
    assert sorted(set(split.test.relevant.values.tolist())) == [0, split.num_items]
    found = answers_probe(split)
    assert found.values == {"share": 0.5, "users": 20}
    assert "(20 of 40)" in found.sentence


@pytest.mark.parametrize(("times", "share", "fires"), [("real", 0.0, False), ("tied", 1.0, True), ("none", 1.0, True)])
def test_the_time_probe(times: str, share: float, fires: bool) -> None:
    found = time_probe(HONEST.prepare(_data(times=times)))
    assert (found.values["share"], found.fires) == (share, fires)


def test_the_selection_mark() -> None:
    assert not selection_mark(PAPER).fires
    assert selection_mark(custom({"base": "paper", "selection": "test"}, "on-test")).fires


def test_audit_on_the_command_line(ownview: Callable[..., Outcome]) -> None:
    done = ownview("audit", "goodbooks", "--protocol", "paper", "--rounds", "20", "--json")
    assert done.code == 0
    found = json.loads(done.out)
    assert {finding["probe"]: finding["fires"] for finding in found["findings"]} == {
        "leak": True, "duplicates": False, "answers": False, "time": False, "selection": False,
        "new-items": False, "sanity-random": False, "sanity-constant": False, "sanity-shuffle": False,
    }  # fmt: skip


@pytest.mark.realdata
def test_on_the_papers_data(real_data: Callable[[str], Interactions]) -> None:
    """ml-100k: the scorer that learns nothing reaches 1.000 / 0.978 under `paper` and chance under `honest`."""

    def prepared(name: str, protocol: Protocol) -> Split:
        return protocol.prepare(real_data(name), min_interactions(name))

    paper = {one.probe: one for one in audit(prepared("ml-100k", PAPER), PAPER, rounds=100)}
    assert paper["leak"].fires
    assert float(paper["leak"].values["HR@10"]) >= 0.99
    assert not any(finding.fires for name, finding in paper.items() if name.startswith(("sanity", "duplicates")))
    honest = leak_probe(prepared("ml-100k", HONEST), HONEST, rounds=30, seed=0)
    assert not honest.fires
    assert float(honest.values["low"]) <= float(honest.values["chance"]) <= float(honest.values["high"])
    tags = {one.probe: one for one in audit(prepared("lastfm-2k-tags", PAPER), PAPER, rounds=1)}
    assert tags["duplicates"].fires
    assert float(tags["duplicates"].values["share"]) > 0.2
    assert not any(finding.fires for name, finding in tags.items() if name.startswith("sanity"))
    assert not duplicate_probe(prepared("lastfm-2k-tags", HONEST)).fires
    assert time_probe(prepared("filmtrust", HONEST)).fires
    assert answers_probe(prepared("filmtrust", PAPER)).values == {"share": 350 / 1002, "users": 350}
    assert not answers_probe(prepared("filmtrust", HONEST)).fires
    assert not answers_probe(prepared("ml-100k", PAPER)).fires
