"""Which runs stand beside which published figures."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from reproduction.against_papers import against_papers
from reproduction.papers import figures, settings_of
from reproduction.plan import experiment

from ownview.evaluation.named_protocols import HONEST
from ownview.reports.reading import SeenRun, Variant
from ownview.runs.experiment import Experiment
from ownview.runs.files.folder import RunFolder

TEST = {"HR@10": 0.7, "NDCG@10": 0.4}


def asked_by(paper: str, table: str, method: str, data: str) -> tuple[Experiment, float]:
    """What reproduces a published row, as a run writes it down, and the row's HR@10."""
    figure = next(
        one
        for one in figures()
        if (one.paper, one.table, one.method, one.data, one.metric) == (paper, table, method, data, "HR@10")
    )
    setup = settings_of(paper).setup(figure)
    assert setup is not None
    made = experiment(setup, setup.protocol)
    return made.resolved(made.model()), figure.value


def beside(made: Experiment) -> list[dict[str, object]]:
    run = SeenRun(RunFolder(Path("nowhere")), made, {"test": TEST})
    found = against_papers(made.data, [Variant(made.label(), {}, {made.protocol.name: [run]})])
    return [one for one in found if one["metric"] == "HR@10"]


def test_the_row_it_reproduces_matches_exactly() -> None:
    made, published = asked_by("PFedRec", "1", "PFedRec", "ml-100k")
    exact = [one for one in beside(made) if one["paper"] == "PFedRec" and one["table"] == "1"]
    assert [(one["row"], one["published"], one["here"], one["differs"]) for one in exact] == [
        ("PFedRec", published, 0.7, [])
    ]


def test_other_numbers_are_near_and_told() -> None:
    made, _ = asked_by("PFedRec", "1", "PFedRec", "ml-100k")
    shorter = replace(made, rounds=made.rounds + 1)
    near = [one for one in beside(shorter) if one["paper"] == "PFedRec" and one["table"] == "1"]
    assert [one["differs"] for one in near] == [[f"rounds {made.rounds + 1} here, {made.rounds} there"]]


def test_another_variant_protocol_dataset_or_method_is_no_match() -> None:
    made, _ = asked_by("FedEM", "1", "FedEM", "filmtrust")
    assert beside(made)
    assert [one for one in beside(replace(made, protocol=HONEST)) if one["paper"] == "FedEM"] == []
    other = replace(made, settings={**made.settings, "variant": "sr"})
    assert [one for one in beside(other) if one["row"] == "FedEM"] == []
    assert beside(replace(made, data="goodbooks")) == []
    assert [one for one in beside(replace(made, method="fedmf")) if one["row"] == "FedEM"] == []


def test_what_the_round_was_chosen_on_may_differ_and_is_told() -> None:
    made, _ = asked_by("FedEM", "1", "FedEM", "filmtrust")
    assert made.protocol.selection == "test"
    chosen = replace(made.protocol, name="mine", selection="validation")
    differs = [one["differs"] for one in beside(replace(made, protocol=chosen)) if one["row"] == "FedEM"]
    assert ["round chosen on validation here, on test there"] in differs
