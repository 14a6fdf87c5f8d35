"""Whose figures the published ones are: HR@K of one run is a whole number of hits divided by the number of users."""

from __future__ import annotations

from decimal import Decimal

import pytest
from reproduction.papers import figures

DIGITS = 4
"""Decimals the papers print."""


def hit_ratios(paper: str, data: str) -> list[float]:
    """Every HR the paper prints for the data, of all its tables and cut-offs."""
    return [
        figure.value
        for figure in figures()
        if figure.paper == paper and figure.metric.startswith("HR@") and figure.data == data
    ]


def is_whole_number_of_hits(ratio: float, users: int) -> bool:
    """Whether some number of hits among so many users is printed as this ratio; a half may be rounded either way."""
    printed, half = Decimal(str(ratio)), Decimal(5).scaleb(-DIGITS - 1)
    return abs(Decimal(round(ratio * users)) / users - printed) <= half


@pytest.mark.parametrize(
    ("ratio", "users", "possible"),
    [(0.5, 4, True), (0.25, 4, True), (0.3333, 3, True), (0.3, 4, False), (0.844, 1600, False)],
)
def test_a_ratio_is_held_against_a_number_of_users(ratio: float, users: int, possible: bool) -> None:
    assert is_whole_number_of_hits(ratio, users) == possible


@pytest.mark.parametrize(
    ("paper", "data", "users"),
    [
        ("PFedCLR", "filmtrust", 1002),
        ("PFedCLR", "ml-100k", 943),
        ("PFedCLR", "hetrec2011", 2113),
        ("PFedCLR", "lastfm-2k-tags", 1269),
        ("FedEM", "filmtrust", 1002),
        ("FedEM", "ml-100k", 943),
        ("FedEM", "lastfm-2k-tags", 1269),
        ("PFedCLR", "ml-1m", 6040),
        ("FedEM", "ml-1m", 6040),
    ],
)
def test_each_figure_of_these_two_is_one_run_over_so_many_users(paper: str, data: str, users: int) -> None:
    # Means of five runs, which both papers say they print, come in steps a fifth as wide and mostly fall between these.
    ratios = hit_ratios(paper, data)
    assert len(ratios) >= 20
    assert all(is_whole_number_of_hits(ratio, users) for ratio in ratios)


def test_their_figures_on_lastfm_are_not_of_the_1600_users_they_count() -> None:
    ratios = [ratio for paper in ("PFedCLR", "FedEM") for ratio in hit_ratios(paper, "lastfm-2k-tags")]
    assert len(ratios) == 59
    assert sum(is_whole_number_of_hits(ratio, 1600) for ratio in ratios) == 11
    fitting = [users for users in range(500, 2500) if all(is_whole_number_of_hits(ratio, users) for ratio in ratios)]
    assert fitting == [1269]


@pytest.mark.parametrize(
    ("paper", "data", "users"),
    [
        ("PFedRec", "ml-100k", 943),
        ("PFedRec", "lastfm-2k-tags", 1600),
        ("FedRAP", "ml-100k", 943),
        ("PLGC", "ml-100k", 943),
        ("PLGC", "lastfm-2k-artists", 1874),
    ],
)
def test_figures_of_the_others_are_not_each_of_one_run_over_the_users_they_count(
    paper: str, data: str, users: int
) -> None:
    ratios = hit_ratios(paper, data)
    assert sum(is_whole_number_of_hits(ratio, users) for ratio in ratios) < len(ratios) / 2
