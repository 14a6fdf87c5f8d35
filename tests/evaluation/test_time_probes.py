"""Probes about time on worlds whose answers are known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from ownview.data.interactions import Interactions
from ownview.data.splitting.splits import Split
from ownview.evaluation.findings import Finding
from ownview.evaluation.named_protocols import HONEST, NEXT_SITTING, SEQUENTIAL
from ownview.evaluation.protocol import SPLITS, Protocol
from ownview.evaluation.ranking import rankers
from ownview.evaluation.time_probes import time_probes

DAY = 86_400


def probed(data: Interactions, protocol: Protocol) -> dict[str, Finding]:
    split = protocol.prepare(data)
    test = rankers(protocol, split, 0, torch.device("cpu"), 10**8)[1]
    return {one.probe: one for one in time_probes(split, protocol, test, 0)}


def world(gap: int, users: int = 60, length: int = 6, items: int = 40, step: int = 7) -> Interactions:
    """Every user has `length` items, `gap` seconds apart; item numbers rise by `step` along a history."""
    user = np.repeat(np.arange(users), length)
    place = np.tile(np.arange(length), users)
    item = (user * 3 + place * step) % items
    return Interactions.from_rows("world", user, item, timestamp=user * DAY * 3 + place * gap)


def test_the_sitting_probe_tells_how_soon_the_held_out_item_came() -> None:
    close, far, same = (probed(world(gap), HONEST)["sitting"] for gap in (30, 2 * DAY, 0))
    assert close.fires
    assert close.values == {"within_hour": 1.0, "same_time": 0.0, "median_seconds": 60.0}  # validation lies between
    assert "60 seconds in the median" in close.sentence
    assert not far.fires
    assert far.values["within_hour"] == 0
    assert same.values["same_time"] == 1


def test_what_is_known_at_test_counts_in_the_sitting_probe() -> None:
    assert probed(world(30), replace(SEQUENTIAL, min_item_interactions=0))["sitting"].values["median_seconds"] == 30


def test_the_tie_probe_fires_where_the_file_is_in_order_within_equal_times() -> None:
    """All of a user's rows bear one time, and in the file each item is followed by the same successor."""
    ordered = probed(world(0), replace(SEQUENTIAL, min_item_interactions=0))["ties"]
    assert ordered.fires
    assert float(ordered.values["rows"]) > float(ordered.values["lot"])
    by_lot = probed(world(0), HONEST)["ties"]
    assert not by_lot.fires, "honest does not keep the file's order"


@pytest.mark.parametrize(("protocol", "anew"), [(HONEST, ["rows"]), (SEQUENTIAL, ["hash"])])
def test_the_tie_probe_splits_anew_by_the_other_rule_alone(
    protocol: Protocol, anew: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the protocol's own split has need not be split again, and the figures are those of two splits."""
    wanted, split_anew = replace(protocol, min_item_interactions=0), SPLITS[protocol.split]
    both = {
        ties: split_anew(replace(wanted, split_ties=ties), wanted.prepare(world(0)).data) for ties in ("rows", "hash")
    }
    monkeypatch.setitem(SPLITS, protocol.split, lambda asked, data: both[asked.split_ties])
    expected = probed(world(0), wanted)["ties"]
    asked: list[str] = []

    def seen(other: Protocol, data: Interactions) -> Split:
        asked.append(other.split_ties)
        return split_anew(other, data)

    monkeypatch.setitem(SPLITS, protocol.split, seen)
    assert probed(world(0), wanted)["ties"].values == expected.values
    assert asked == [wanted.split_ties, *anew]


def test_the_future_probe_fires_where_later_rows_give_the_answer_away() -> None:
    """Each item is popular for a while alone; without what came later an item of later days was never seen."""
    users, length = 200, 6
    user = np.repeat(np.arange(users), length)
    place = np.tile(np.arange(length), users)
    item = user // 20 * 6 + (place + user) % length  # twenty users after each other share six items
    data = Interactions.from_rows("waves", user, item, timestamp=1_700_000_000 + user * DAY + place * 60)
    found = probed(data, HONEST)["future"]
    assert found.fires
    assert "without what others did after 2024-02-" in found.sentence
    assert float(found.values["with"]) > float(found.values["without"]) + 0.2


def test_the_future_probe_says_nothing_of_few_users() -> None:
    found = probed(world(30, users=20), HONEST)["future"]
    assert not found.fires
    assert found.sentence.startswith("too few users")


def test_asked_for_the_first_item_the_counts_are_always_told() -> None:
    data = world(2 * DAY, users=80, length=8)
    found = probed(data, replace(NEXT_SITTING, name="first", relevant="first"))
    assert found["first"].fires
    assert 0 <= float(found["first"].values["HR@10"]) <= 1
    assert "first" not in probed(data, NEXT_SITTING)


def test_without_times_there_is_nothing_to_probe() -> None:
    timed = world(30)
    data = Interactions.from_rows("untimed", timed.users[timed.user], timed.items[timed.item])
    assert probed(data, HONEST) == {}
