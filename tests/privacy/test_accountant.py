"""Noise and epsilon against figures that are known, and plans of whole federations."""

from __future__ import annotations

import builtins
import importlib
import math
import sys

import pytest

from ownview import FederationOptions
from ownview.base.errors import SettingError
from ownview.privacy.accountant import Sampling, epsilon_of, noise_for
from ownview.privacy.planning import planned, warnings_of
from ownview.seam.protection import QUANTILE_SHARE

DELTA = 1e-5
EVERYBODY, TENTH, COHORT = Sampling(), Sampling(rate=0.1), Sampling(cohort=94, population=943)


def test_known_figures_of_sampled_rounds() -> None:
    assert epsilon_of([1.0] * 60, DELTA, TENTH) == pytest.approx(5.57, abs=0.05)
    assert epsilon_of([1.0] * 60, DELTA, COHORT) == pytest.approx(54.2, abs=0.5)


def test_known_figures_of_everybody_in_every_round() -> None:
    for rounds, known in ((1, 4.4), (60, 62.0), (100, 92.0)):
        assert epsilon_of([1.0] * rounds, DELTA, EVERYBODY) == pytest.approx(known, rel=0.02)


@pytest.mark.parametrize("epsilon", [1.0, 8.0])
def test_two_releases_compose_to_the_whole_budget(epsilon: float) -> None:
    plan = planned(FederationOptions(privacy=f"central:epsilon={epsilon}"), 943, (0.1, 0.9))
    assert plan is not None
    assert epsilon_of(plan.noise, DELTA, EVERYBODY) == pytest.approx(epsilon, abs=1e-3)
    shares = [1 / z**2 for z in plan.noise]
    assert shares[0] / sum(shares) == pytest.approx(0.1)


def test_calibrated_noise_costs_what_was_asked_for_and_no_more() -> None:
    z = noise_for(8.0, DELTA, 60, TENTH)
    assert 7.9 < epsilon_of([z] * 60, DELTA, TENTH) <= 8.0 + 1e-6
    assert z < noise_for(8.0, DELTA, 60, EVERYBODY)


def test_a_cohort_of_fixed_size_needs_noise_for_a_replaced_user() -> None:
    z = noise_for(8.0, DELTA, 5, COHORT)
    assert 7.8 < epsilon_of([z] * 5, DELTA, COHORT) <= 8.0 + 1e-6


def test_who_is_chosen_is_hidden_from_nobody_who_chooses() -> None:
    asked = "{}:epsilon=8,clip=1,rounds=4"
    local, shared = (
        planned(FederationOptions(privacy=asked.format(mode), clients="20"), 100) for mode in ("local", "distributed")
    )
    assert local is not None
    assert shared is not None
    assert local.noise == shared.noise == (noise_for(8.0, DELTA, 4, EVERYBODY),) * 4
    assert shared.threshold == 16
    assert local.in_sum(1) == pytest.approx(shared.in_sum(1) * math.sqrt(16)), "20 devices bring noise for 16"


def test_turns_count_once_a_pass() -> None:
    plan = planned(FederationOptions(privacy="central:epsilon=8,clip=1,rounds=10", clients="turns:20"), 100)
    assert plan is not None
    assert plan.noise == (noise_for(8.0, DELTA, 2, EVERYBODY),) * 10  # five rounds are a pass
    assert plan.clients == 20


def test_an_adaptive_clip_pays_for_its_quantile() -> None:
    plan = planned(FederationOptions(privacy="central:epsilon=8,rounds=3"), 100)
    assert plan is not None
    assert plan.adaptive
    spent = 1 / plan.of_changes(1) ** 2 + 0.25 / plan.of_quantile(1) ** 2  # what a client adds moves by 1 and by 1/2
    assert spent == pytest.approx(1 / plan.noise[0] ** 2)
    assert 0.25 / plan.of_quantile(1) ** 2 == pytest.approx(QUANTILE_SHARE / plan.noise[0] ** 2)


def test_a_delta_above_one_over_n_is_warned_of() -> None:
    for delta, warned in ((0.02, True), (0.01, False)):
        plan = planned(FederationOptions(privacy=f"central:epsilon=8,delta={delta}"), 100, (1.0,))
        assert plan is not None
        assert bool(warnings_of(plan, 100)) == warned


def test_without_the_package_the_error_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [one for one in sys.modules if one.split(".")[0] == "dp_accounting"]:
        monkeypatch.delitem(sys.modules, name)
    real = builtins.__import__

    def absent(name: str, *given: object) -> object:
        if name.split(".", maxsplit=1)[0] == "dp_accounting":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return real(name, *given)  # type: ignore[arg-type]

    monkeypatch.setattr(importlib, "import_module", absent)
    with pytest.raises(SettingError, match=r'pip install -e "\.\[privacy\]"'):
        epsilon_of([1.0], DELTA, EVERYBODY)
