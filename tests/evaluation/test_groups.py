"""Groups by activity: a partition of the ranked users whose means add up, and the papers' inactive users."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ownview.base.errors import SettingError
from ownview.data import Interactions
from ownview.data.datasets.catalog import min_interactions
from ownview.evaluation.groups import ActivityRange, by_activity, quarters, summary
from ownview.evaluation.metrics import Standing, means, per_user
from ownview.evaluation.named_protocols import HONEST, PAPER
from ownview.runs.experiment import Experiment

ACTIVITIES = st.lists(st.integers(3, 40), min_size=1, max_size=60).map(np.array)


@given(interactions=ACTIVITIES)
def test_groups_partition_the_users_by_rank_of_activity(interactions: np.ndarray) -> None:
    parts = quarters(interactions)
    assert 1 <= len(parts) <= min(4, len(set(interactions.tolist())))
    assert sorted(np.concatenate(parts).tolist()) == list(range(len(interactions)))
    spans = [(int(interactions[part].min()), int(interactions[part].max())) for part in parts]
    assert all(low[1] < high[0] for low, high in pairwise(spans)), "no activity is in two groups"
    ranked = [(int(interactions[place]), int(place)) for part in parts for place in part]
    assert ranked == sorted(ranked), "by activity, then by position"


@given(interactions=ACTIVITIES, data=st.data())
def test_means_of_groups_weighted_by_users_are_the_overall_means(interactions: np.ndarray, data: st.DataObject) -> None:
    count = len(interactions)
    columns = st.lists(st.integers(0, 30), min_size=count, max_size=count).map(np.array)
    better, tied, worse = (data.draw(columns) for _ in range(3))
    standing = Standing(np.arange(count), better, tied, better + tied + worse + 1, "expected")
    groups = by_activity(interactions, per_user(standing, (5, 10)))
    assert sum(group["users"] for group in groups) == count
    for name, value in means(standing, (5, 10)).items():
        assert sum(group["users"] * group["test"][name] for group in groups) / count == pytest.approx(value)


def test_a_group_says_who_is_in_it() -> None:
    interactions = np.array([9, 3, 5, 4, 100, 4, 7])
    values = {"HR@10": np.array([1.0, 0, 1, 0, 1, 1, 0])}
    assert by_activity(interactions, values) == [
        {"label": "group 1 of 4", "interactions": [3, 3], "users": 1, "test": {"HR@10": 0.0}},
        {"label": "group 2 of 4", "interactions": [4, 4], "users": 2, "test": {"HR@10": 0.5}},
        {"label": "group 3 of 4", "interactions": [5, 7], "users": 2, "test": {"HR@10": 0.5}},
        {"label": "group 4 of 4", "interactions": [9, 100], "users": 2, "test": {"HR@10": 1.0}},
    ]
    inside = ActivityRange(4, 9).members(interactions)
    assert inside.tolist() == [2, 3, 5, 6], "from the lower end on, without the upper end"
    assert summary("few", inside, interactions, values) == {
        "label": "few",
        "interactions": [4, 7],
        "users": 4,
        "test": {"HR@10": 0.5},
    }


@pytest.mark.parametrize("text", ["", "20", "20-30", "a:b", "-1:4", "5:5", "9:5", "1:2:3", "2.5:4"])
def test_what_is_no_range_is_refused(text: str) -> None:
    with pytest.raises(SettingError, match=r"expected FEWEST:BELOW.*such as 20:30"):
        ActivityRange.parse(text)


def test_a_range_without_users_names_the_activities_there_are() -> None:
    with pytest.raises(SettingError, match=r"inactive='1:3': no ranked user .* meets 3 to 40, such as 3:21"):
        ActivityRange(1, 3).members(np.array([3, 40, 7]))


@given(fewest=st.integers(0, 10**6), width=st.integers(1, 10**6))
def test_a_range_survives_text_and_an_experiment_file(fewest: int, width: int) -> None:
    asked = ActivityRange(fewest, fewest + width)
    assert ActivityRange.parse(str(asked)) == asked
    experiment = Experiment("fedmf", inactive=f" {fewest} : {fewest + width} ")
    assert experiment.inactive == str(asked)
    assert Experiment.from_toml(experiment.to_toml()) == experiment


def test_an_experiment_file_without_a_range_or_with_a_number_for_one() -> None:
    assert Experiment.from_toml("method = 'fedmf'").inactive == ""
    with pytest.raises(SettingError, match="inactive=20: expected a range of interactions as text, such as '20:30'"):
        Experiment.from_toml("method = 'fedmf'\ninactive = 20")
    with pytest.raises(SettingError, match="expected FEWEST:BELOW"):
        Experiment("fedmf", inactive=(20, 30))  # type: ignore[arg-type]


@pytest.mark.realdata
@pytest.mark.parametrize(
    ("name", "asked", "inactive", "users"),
    [("ml-100k", "20:30", 199, 943), ("ml-1m", "20:30", 751, 6040), ("lastfm-2k-tags", "5:20", 641, 1600)],
)
def test_inactive_users_are_as_many_as_in_the_paper(
    name: str, asked: str, inactive: int, users: int, real_data: Callable[[str], Interactions]
) -> None:
    """PFedRec's Table 9."""
    data = real_data(name)
    interactions = PAPER.prepare(data, min_interactions(name)).data.counts
    asked_range = ActivityRange.parse(asked)
    assert (len(asked_range.members(interactions)), len(interactions)) == (inactive, users)
    closed = ActivityRange(asked_range.fewest, asked_range.below + 1)
    assert len(closed.members(interactions)) > inactive, "the upper end is outside"
    if name.startswith("ml"):  # without repeated pairs both protocols see the same activity
        honest = HONEST.prepare(data, min_interactions(name)).data.counts
        assert len(asked_range.members(honest)) == inactive
