"""Settings files: sound, in step with the papers' tables, and buildable."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from reproduction.papers import CITATIONS, Figure, Setup, figures, parse, select, settings_of
from reproduction.plan import experiment, missing

from ownview.base.errors import SettingError
from ownview.data import Interactions
from ownview.data.datasets.catalog import catalog, min_interactions
from ownview.evaluation.named_protocols import HONEST, PAPER

COUNTED_OTHERWISE = {("PFedCLR", "lastfm-2k-tags"): 1269, ("FedEM", "lastfm-2k-tags"): 1269}
"""Where a paper's figures are of other users than it counts; test_users_behind_figures.py shows of which."""


def setups(paper: str) -> list[tuple[Figure, Setup]]:
    found = [(figure, settings_of(paper).setup(figure)) for figure in select(paper)]
    return [(figure, setup) for figure, setup in found if setup is not None]


@pytest.mark.parametrize("paper", CITATIONS)
def test_every_experiment_can_be_built(paper: str) -> None:
    built = 0
    for figure, setup in setups(paper):
        assert missing(setup) == "", figure
        for protocol in (setup.protocol, setup.honest):
            made = experiment(setup, protocol)
            assert made.model() is not None
            assert (made.data, made.protocol) == (setup.dataset, protocol)
            built += 1
    assert built


@pytest.mark.parametrize("paper", CITATIONS)
def test_the_protocol_ranks_as_the_table_did(paper: str) -> None:
    for figure, setup in setups(paper):
        if figure.candidates != "-":
            assert setup.protocol.candidates == {"sampled-99": 99, "full": 0}[figure.candidates], figure
            assert setup.protocol.negatives_avoid == "known"
        assert (setup.honest.negatives_avoid, setup.honest.candidates) == ("training", 0)


@pytest.mark.parametrize("paper", CITATIONS)
def test_the_papers_own_method_has_settings_wherever_it_stands(paper: str) -> None:
    own = [figure for figure in select(paper) if figure.method.startswith(paper)]
    with_settings = {figure for figure, _ in setups(paper)}
    assert [figure for figure in own if figure not in with_settings] == []


def test_the_round_is_chosen_as_each_paper_does() -> None:
    chosen = {paper: {setup.protocol.selection for _, setup in setups(paper)} for paper in CITATIONS}
    assert chosen == {
        "PFedRec": {"validation"}, "PFedCLR": {"validation"},
        "FedRAP": {"test"}, "FedEM": {"test"}, "PLGC": {"test"},
    }  # fmt: skip


def one(paper: str, table: str, data: str, method: str) -> Setup:
    figure = next(f for f in select(paper, [table], [data]) if f.method == method)
    setup = settings_of(paper).setup(figure)
    assert setup is not None
    return setup


def test_a_row_like_another_keeps_what_that_says_of_the_data() -> None:
    setup = one("PFedRec", "6", "lastfm-2k-tags", "PFedRec(dim=16)")
    assert setup.experiment["settings"] == {"learning_rate": 0.05, "embedding_size": 16}
    assert one("PFedRec", "6", "ml-1m", "PFedRec(dim=16)").experiment["settings"] == {"embedding_size": 16}


def test_a_filter_that_is_not_the_usual_one_makes_protocols_of_their_own() -> None:
    setup = one("FedRAP", "3", "amazon-instant-video", "FedRAP")
    assert (setup.dataset, setup.protocol.min_interactions, setup.honest.min_interactions) == (
        "amazon-instant-video", 10, 10,
    )  # fmt: skip
    assert setup.protocol.name == "paper-chosen-on-test-from-10"
    assert setup.honest.name == "honest-from-10"
    usual = one("PFedRec", "1", "amazon-instant-video", "PFedRec")
    assert (usual.protocol, usual.honest) == (PAPER, HONEST)


@pytest.mark.realdata
@pytest.mark.parametrize("paper", CITATIONS)
def test_filters_leave_the_users_items_and_rows_the_paper_counts(
    paper: str, real_data_dir: Path, real_data: Callable[[str], Interactions]
) -> None:
    checked = 0
    for label, choice in settings_of(paper).data.items():
        counts = [c for c in catalog()[choice.dataset].counts if paper in c.papers]
        if (real_data_dir / choice.dataset).is_dir():
            setup = next(setup for figure, setup in setups(paper) if figure.data == label)
            split = setup.protocol.prepare(real_data(choice.dataset), min_interactions(choice.dataset))
            (count,) = counts
            if users := COUNTED_OTHERWISE.get((paper, label)):
                assert split.num_users == users < count.users
            else:
                found = (split.num_users, split.num_items, len(split.data))
                assert found == (count.users, count.items, count.rows), label
            checked += 1
    assert checked


@pytest.mark.realdata
@pytest.mark.parametrize(("data", "users"), [("ml-100k", 199), ("ml-1m", 751), ("lastfm-2k-tags", 641)])
def test_inactive_users_are_as_many_as_the_paper_counts(
    data: str, users: int, real_data: Callable[[str], Interactions]
) -> None:
    setup = one("PFedRec", "10", data, "PFedRec inactive users")
    assert setup.inactive is not None
    low, high = setup.inactive
    split = setup.protocol.prepare(real_data(data), min_interactions(data))
    interactions = split.train.lengths.numpy() + 2
    assert np.count_nonzero((interactions >= low) & (interactions < high)) == users


DATA = "[data.ml-100k]\n[data.ml-1m]\n[data.lastfm-2k-tags]\n[data.amazon-instant-video]\n"
ROW = "[[rows]]\ntables = ['1']\nmethod = 'PFedRec'\nexperiment = { method = 'pfedrec' }\n"


@pytest.mark.parametrize(
    ("text", "fact"),
    [
        ("rounds = ", "mine.toml: not TOML"),
        (f"round = 3\n{DATA}", "has no setting 'round'; did you mean 'rounds'?"),
        (f"rounds = 'ten'\n{DATA}", "rounds = 'ten': expected a whole number"),
        ("[data.ml-100k]\n", r"expected [data.'ml-1m']"),
        (f"{DATA}[data.ml-100]\n", "unknown dataset 'ml-100'; did you mean 'ml-100k'?"),
        (f"{DATA}[tables.81]\n", "the paper has no table '81'; did you mean '8'?"),
        (f"{DATA}[[rows]]\nmethod = 'PFedRek'\n", "the paper has no row 'PFedRek'"),
        (f"{DATA}{ROW}{ROW}", "row PFedRec stands twice"),
        (f"{DATA}{ROW.replace('1', '7')}", "row PFedRec: not in table '7' of the paper"),
        (f"{DATA}{ROW}like = 'FedMF'\n", "like = 'FedMF' names no earlier row"),
        (f"{DATA}[[rows]]\ntables = ['1']\nmethod = 'PFedRec'\n", "expected experiment = { method = ... } or like"),
        (f"{DATA}{ROW}[rows.data.ml-10k]\n", "the paper has no data 'ml-10k'; did you mean 'ml-100k'?"),
        (f"{DATA}{ROW}[rows.data.ml-100k]\nsetting = {{}}\n", "has no setting 'setting'; did you mean 'settings'?"),
    ],
    ids=lambda value: value[-30:],
)  # fmt: skip
def test_a_slip_in_a_settings_file_is_named(text: str, fact: str) -> None:
    with pytest.raises(SettingError) as caught:
        parse(text, "mine.toml", [figure for figure in figures() if figure.paper == "PFedRec"])
    assert fact in str(caught.value)


def test_bounds_of_a_group_are_checked() -> None:
    published = [figure for figure in figures() if figure.paper == "PFedRec"]
    settings = parse(f"{DATA}{ROW}[rows.data.ml-100k]\ninactive = '30:20'\n", "mine.toml", published)
    with pytest.raises(SettingError, match="row PFedRec: setting inactive='30:20': expected FEWEST:BELOW"):
        settings.setup(next(f for f in published if (f.method, f.data) == ("PFedRec", "ml-100k")))
