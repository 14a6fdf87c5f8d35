"""The papers' figures and how a person names them."""

from __future__ import annotations

import pytest
from reproduction.papers import CITATIONS, figures, find_paper, select

from ownview.base.errors import SettingError


def test_every_figure_is_there_once_and_in_range() -> None:
    every = figures()
    assert len(every) == 1083
    assert len({(f.paper, f.table, f.data, f.method, f.metric) for f in every}) == len(every)
    assert {f.paper for f in every} == set(CITATIONS)
    assert all(0 < f.value < 1 for f in every if "@" in f.metric)
    assert {f.candidates for f in every} == {"sampled-99", "full", "-"}


def test_a_figure_is_what_the_paper_prints() -> None:
    (figure,) = [f for f in select("PFedRec", ["1"], ["ml-100k"]) if (f.method, f.metric) == ("PFedRec", "HR@10")]
    assert figure.value == 0.7162


def test_papers_are_found_whatever_their_capital_letters() -> None:
    assert [find_paper(name) for name in ("pfedrec", "FEDRAP", "Plgc")] == ["PFedRec", "FedRAP", "PLGC"]


@pytest.mark.parametrize(
    ("paper", "asked", "table"),
    [
        ("PFedRec", "8", "8 full ranking"),
        ("PFedRec", "8 full ranking", "8 full ranking"),
        ("PFedRec", "1", "1"),
        ("PFedRec", "10", "10 user groups"),
        ("FedRAP", "3", "3-4"),
        ("FedRAP", "4", "3-4"),
        ("FedRAP", "1", "1 Gaussian DP (tau 0.1, z 1)"),
        ("PLGC", "iv", "IV ablation"),
    ],
)
def test_tables_go_by_number_or_name(paper: str, asked: str, table: str) -> None:
    assert {f.table for f in select(paper, [asked])} == {table}


def test_data_with_a_filter_of_its_own_goes_by_its_plain_name_too() -> None:
    assert {f.data for f in select("FedRAP", (), ["amazon-instant-video"])} == {"amazon-instant-video>=10"}


def test_tables_come_in_the_order_of_their_numbers() -> None:
    assert list(dict.fromkeys(f.number for f in select("PFedRec"))) == ["1", "2", "6", "7", "8", "10"]
    assert list(dict.fromkeys(f.number for f in select("PLGC"))) == ["II", "III", "IV"]
    assert len(select("PFedRec")) == sum(f.paper == "PFedRec" for f in figures())


def test_unknown_names_tell_the_nearest_and_list_all() -> None:
    with pytest.raises(SettingError, match=r"unknown paper: 'pfedrek'; did you mean 'pfedrec'\?; choose from PFedRec"):
        find_paper("pfedrek")
    with pytest.raises(SettingError, match=r"unknown paper: 'zzz'; choose from PFedRec, FedRAP, PFedCLR, FedEM, PLGC"):
        find_paper("zzz")
    with pytest.raises(SettingError, match=r"unknown table of PFedRec: '3'; choose from 1, 2 plug-in, 8 full"):
        select("PFedRec", ["3"])
    with pytest.raises(SettingError, match=r"unknown data of PFedRec, table 1: 'ml-10k'; did you mean 'ml-100k'\?;"):
        select("PFedRec", ["1"], ["ml-10k"])
    with pytest.raises(SettingError, match=r"choose from ml-100k, ml-1m, lastfm-2k-tags$"):
        select("PFedRec", ["10"], ["amazon-instant-video"])
