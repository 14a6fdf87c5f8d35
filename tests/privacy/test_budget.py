"""Budgets as people write them: read, written, and refused in one line."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ownview import (
    CoLR,
    FedCIA,
    FedEASE,
    FedEM,
    Federated,
    FederationOptions,
    FedFast,
    FedMF,
    GPFedRec,
    LocalOnly,
    PerFedRec,
    PFedGraph,
)
from ownview.base.errors import SettingError
from ownview.privacy.budget import Budget, budget
from ownview.runs.experiment import Experiment
from ownview.runs.run import run
from ownview.testing.worlds import federation, small_world
from tests.outcome import Outcome

CENTRAL = "central:epsilon=8,clip=1,rounds=2"


def test_budgets_are_read_and_written() -> None:
    assert budget("laplace:0.5") is None
    assert budget("none") is None
    assert budget("central:epsilon=8") == Budget("central", 8.0, 1e-5)
    for text in ("local:epsilon=0.5,delta=1e-06,clip=0.1", "distributed:epsilon=2,clip=adaptive,rounds=7"):
        assert str(budget(text)) == text


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("central:epsilon=0", "epsilon '0' is not above 0"),
        ("central:epsilon=-1", "epsilon '-1' is not above 0"),
        ("central:epsilon=nan", "epsilon 'nan' is not above 0"),
        ("central", "epsilon is missing"),
        ("central:epsilon=8,delta=0", "delta '0' is not above 0"),
        ("central:epsilon=8,delta=1", "delta '1' is not below 1"),
        ("central:epsilon=8,clip=-1", "clip '-1' is not above 0"),
        ("central:epsilon=8,rounds=1.5", "rounds '1.5' is no whole number"),
        ("central:epsilon=8,epsilon=9", "a part is given twice"),
        ("central:epsilonn=8", "did you mean 'epsilon'"),
        ("centrl:epsilon=8", "did you mean 'central'"),
    ],
)
def test_bad_budgets_are_refused_with_the_reason(text: str, reason: str) -> None:
    with pytest.raises(SettingError) as caught:
        FederationOptions(privacy=text)
    assert reason in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("method", "options", "reason"),
    [
        (FedEM(), {}, "needs every single upload"),
        (GPFedRec(), {}, "needs every single upload"),
        (PFedGraph(), {}, "needs every single upload"),
        (PerFedRec(), {}, "needs every single upload"),
        (FedFast(), {}, "needs every single upload"),
        (LocalOnly(), {}, "nothing leaves its clients"),
        (FedMF(), {"row_mean": "touched"}, "row_mean=all"),
        (CoLR(), {}, "row_mean=all"),
        (FedMF(), {"weighting": "samples"}, "the number of a client's samples would leave in clear"),
        (FedMF(), {"clients": "poisson:0.5", "privacy": "distributed:epsilon=8,clip=1,rounds=2"}, "share the noise"),
        (FedMF(), {"privacy": "central:epsilon=8"}, "for how many rounds"),
        (FedCIA(), {"privacy": "central:epsilon=8,rounds=2"}, "expected clip=C"),
        (FedEASE(), {"privacy": "central:epsilon=8,clip=2"}, "expected no clip"),
        (FedEASE(), {"privacy": "central:epsilon=8", "clients": "0.5"}, "with everybody in them; expected all"),
    ],
)
def test_what_cannot_be_protected_is_refused_with_the_reason(
    method: Federated, options: dict[str, str], reason: str
) -> None:
    with pytest.raises(SettingError) as caught:
        federation(method, small_world(num_users=5), options=FederationOptions.of({"privacy": CENTRAL, **options}))
    assert reason in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_blend_would_spend_the_budget_several_times() -> None:
    with pytest.raises(SettingError, match="every part of a blend would spend the budget anew"):
        run(Experiment(method="blend", federation=FederationOptions(privacy="central:epsilon=8")))


def test_a_budget_for_fewer_rounds_than_the_run_has_is_refused() -> None:
    options = FederationOptions(privacy="central:epsilon=8,rounds=3")
    assert options.for_rounds(2) == options
    with pytest.raises(SettingError, match="the budget is for 3 rounds, and the run has 4"):
        options.for_rounds(4)


@pytest.mark.parametrize(
    ("method", "privacy", "reason"),
    [
        ("fedmf", "central:epsilon=0", "is not above 0"),
        ("fedem", "central:epsilon=8", "needs every single upload"),
    ],
)
def test_the_command_line_says_it_in_one_line(
    ownview: Callable[..., Outcome], method: str, privacy: str, reason: str
) -> None:
    done = ownview("run", method, "--privacy", privacy, "--rounds", "1")
    assert done.code == 2
    assert reason in done.err
    assert len(done.err.strip().splitlines()) == 1
