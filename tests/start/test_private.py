"""`start --private` and `fit --private`: ways to be private side by side; the rule looks at no private figure."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
import torch

from ownview import FedEASE
from ownview.base.errors import SettingError
from ownview.data.reading.readers import read
from ownview.parts.text.text_beside import UNDER_A_BUDGET
from ownview.privacy.budget import budget
from ownview.runs.run import Run, open_run
from ownview.start.private import (
    HIDDEN,
    NOTHING,
    WHO,
    People,
    length_of_pairs,
    private_ways,
    recommended,
    without_figures,
)
from tests.outcome import Outcome
from tests.start.worlds import write_shop

PLACE = Path("runs/start-shop")


@pytest.fixture(autouse=True)
def _shop(own_folder: Path) -> None:
    """Two tastes, and titles that tell them."""
    write_shop(own_folder / "shop.csv", lambda item: f"{'green tea' if item < 12 else 'black coffee'} {item}")


def runs_with(figures: dict[str, float]) -> dict[str, Run]:
    """Finished runs as far as the rule reads them."""

    def one(value: float) -> Run:
        run = object.__new__(Run)
        object.__setattr__(run, "result", {"validation": {"NDCG@10": value}})
        return run

    return {way: one(value) for way, value in figures.items()}


FEW = People(400, 2_000, 16.0, 90, True)


def test_every_way_stands_in_the_table_and_what_is_recommended_is_fitted(ownview: Callable[..., Outcome]) -> None:
    outcome = ownview("start", "shop.csv", "--private", "-k", "3")
    assert outcome.code == 0, outcome.err
    for sentence in WHO:
        assert sentence in outcome.words
    assert outcome.words.index(WHO[0]) < outcome.words.index("1/7 Read")
    for way in ("nothing-sent", "sums-hidden", "epsilon-8", "epsilon-1"):
        run = open_run(PLACE / "comparison" / way)
        for part in ("validation", "test"):
            assert f"{run.result[part]['NDCG@10']:.3f}" in outcome.out
        assert (sum(line.get("bytes_up_per_client", 0) for line in run.rounds) == 0) is (way == "nothing-sent")
        assert run.result["rounds"] == (len(FedEASE.releases) if way.startswith("epsilon") else 1), "every release"
    assert "rows with an epsilon simulate a budget" in outcome.words
    verdict = json.loads((PLACE / "verdict.json").read_text())
    way = verdict["numbers"]["way"]
    assert f"recommended: {way}" in outcome.words
    fitted, compared = open_run(PLACE / "model"), open_run(PLACE / "comparison" / way.replace(" ", "-"))
    assert fitted.experiment.method == compared.experiment.method
    assert fitted.experiment.federation == compared.experiment.federation
    home = open_run(PLACE / "comparison" / "nothing-sent")
    assert compared.result["validation"]["NDCG@10"] >= 0.95 * home.result["validation"]["NDCG@10"]
    assert pl.read_csv(PLACE / "lists.csv")["user"].n_unique() == 40
    again = ownview("start", "shop.csv", "--private", "-k", "3")
    assert json.loads((PLACE / "verdict.json").read_text()) == verdict, again.err


def test_budgets_of_the_comparison_make_all_their_releases_with_secret_noise() -> None:
    """A round that held-out interactions chose would be covered by no epsilon."""
    ways = private_ways(FEW).methods
    budgets = [asked for one in ways if (asked := budget(one.privacy)) is not None]
    assert [one.epsilon for one in budgets] == [8.0, 1.0]
    assert not any(one.seeded for one in budgets)
    many = People(300_000, 2_000, 16.0, 90, True)
    asked = budget(many.budget(8.0))
    assert asked is not None
    assert asked.delta < 1 / many.number


@pytest.mark.parametrize(
    ("figures", "way"),
    [
        ({NOTHING: 0.04, HIDDEN: 0.09, "epsilon 8": 0.03, "epsilon 1": 0.0}, HIDDEN),
        ({NOTHING: 0.089, HIDDEN: 0.09, "epsilon 8": 0.03, "epsilon 1": 0.0}, NOTHING),
        ({NOTHING: 0.04, "epsilon 8": 0.5, "epsilon 1": 0.5}, NOTHING),
        ({HIDDEN: 0.01, "epsilon 8": 0.5, "epsilon 1": 0.5}, HIDDEN),
    ],
)
def test_figures_choose_between_ways_without_epsilon_alone(figures: dict[str, float], way: str) -> None:
    assert recommended(FEW, runs_with(figures)).way == way


@pytest.mark.parametrize(("number", "way"), [(400, HIDDEN), (5_000, "epsilon 8"), (200_000, "epsilon 1")])
def test_a_budget_is_chosen_by_numbers_of_people_and_items_whatever_its_figure(number: int, way: str) -> None:
    people = People(number, 2_000, 16.0, 90, True)
    for figure in (0.0, 0.9):
        runs = runs_with({HIDDEN: 0.09, "epsilon 8": figure, "epsilon 1": figure})
        assert recommended(people, runs).way == way
    assert without_figures(people).way == way


def test_what_a_budget_leaves_is_said() -> None:
    runs = runs_with({NOTHING: 0.04, HIDDEN: 0.08, "epsilon 8": 0.03, "epsilon 1": 0.0})
    reasons = recommended(FEW, runs).reasons
    assert reasons[0] == "with 400 people a budget of 1 leaves nothing of the sums (0%); text at home has 50%"
    assert not any("budget of 8" in one for one in reasons), "a third of the sums is something"
    assert any("recommended clip is 16" in one for one in reasons)


@pytest.mark.parametrize("ordered", [True, False])
def test_the_recommended_clip_shortens_one_in_a_hundred_at_most(ordered: bool) -> None:
    data = read(Path("shop.csv"))
    people = People.of(data, ordered=ordered)
    length = length_of_pairs(7, ordered=ordered)
    assert people.clip / 2 < length <= people.clip
    assert length_of_pairs(people.most, ordered=ordered) <= people.clip
    near = FedEASE().nearness if ordered else math.inf
    places = torch.arange(7.0)
    pairs = torch.exp(-(places[:, None] - places).abs() / near)
    assert length == pytest.approx(float(pairs.norm()))


def test_too_few_people_and_no_text_leave_no_way() -> None:
    with pytest.raises(SettingError, match="2 people are too few to hide among"):
        without_figures(People(2, 10, 4.0, 9, False))
    assert without_figures(People(2, 10, 4.0, 9, True)).way == NOTHING


def test_fit_private_names_what_it_takes(ownview: Callable[..., Outcome]) -> None:
    outcome = ownview("fit", "--private", "--data", "shop.csv", "--out", "model")
    assert outcome.code == 0, outcome.err
    assert "private: sums hidden: fedease --privacy masked:clip=8,masks=skipped, by 40 people" in outcome.err
    assert open_run(Path("model")).experiment.federation.privacy == "masked:clip=8,masks=skipped"
    refused = ownview("fit", "fedmf", "--private", "--data", "shop.csv")
    assert (refused.code, "METHOD: not with --private" in refused.err) == (2, True)
    refused = ownview("start", "shop.csv", "--private", "--method", "fedmf")
    assert (refused.code, "leave --method out" in refused.err) == (2, True)
    assert not Path("runs").exists()


def test_fit_like_takes_another_privacy(ownview: Callable[..., Outcome]) -> None:
    assert ownview("run", "fedease", "--data", "shop.csv", "--out", "measured").code == 0
    outcome = ownview("fit", "--like", "measured", "--privacy", "central:epsilon=8", "--out", "model")
    assert outcome.code == 0, outcome.err
    run = open_run(Path("model"))
    assert run.experiment.federation.privacy.startswith("central:epsilon=8")
    assert run.result["rounds"] == len(FedEASE.releases), "every release is made"
    assert ownview("fit", "--like", "measured", "--privacy", "masked:clip=8", "--out", "masked").code == 0
    assert open_run(Path("masked")).result["rounds"] == 1
    assert ownview("run", "popularity", "--data", "shop.csv", "--out", "counts").code == 0
    refused = ownview("fit", "--like", "counts", "--privacy", "masked:clip=8", "--out", "no")
    assert (refused.code, "popularity is no federated method" in refused.err) == (2, True)
    assert not Path("no").exists()


@pytest.mark.parametrize("number", [2_000, 50_000, 300_000])
def test_text_weighs_the_same_by_rule_whatever_the_people_and_the_budget(number: int) -> None:
    """Chosen on people's validation it would be a release that no epsilon covers."""
    ways = [one for one in private_ways(People(number, 2_000, 16.0, 90, True)).methods if one.method == "fedease"]
    assert ways
    assert {one.settings["text"] for one in ways} == {UNDER_A_BUDGET}
    without = [one for one in private_ways(People(number, 2_000, 16.0, 90, False)).methods if one.method == "fedease"]
    assert all("text" not in one.settings for one in without)
