"""What papers print and what single trials had is written from their files; the demo's record is what the demo runs."""

from __future__ import annotations

import re
import shlex
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from reproduction.pages.loose_figures import loose_figures
from reproduction.pages.quoted import with_quoted

from ownview.base.errors import OutputError
from ownview.cli.settings import with_settings
from ownview.runs.experiment import Experiment
from ownview.studies.bench.suite import load_suite
from tests.reproduction.committed import ROOT

TRIALS = """{"trials": [
    {"method": "two words", "data": "toys", "trial": 1, "validation NDCG@10": 0.1234},
    {"method": "two words", "data": "toys", "trial": 2, "validation NDCG@10": 0.2},
    {"method": "two words", "data": "toys", "trial": 3, "validation NDCG@10": null}]}"""


@pytest.fixture
def trials(tmp_path: Path) -> Path:
    (tmp_path / "mine.json").write_text(TRIALS)
    return tmp_path


@pytest.mark.parametrize(
    ("reference", "digits", "expected"),
    [
        ("printed: FedEM filmtrust FedEM HR@10", "0.000", "0.893"),
        ("printed: PLGC lastfm-2k-artists FedMF+PLGC HR@10", ".0000", ".2898"),
        ("printed: PFedRec ml-100k PFedRec HR@10", "0.000", "0.716"),  # and .1919 among all items
        ("trial: mine toys two words best", ".0000", ".2000"),
        ("trial: mine toys two words trial 1", ".000", ".123"),
    ],
)
def test_a_figure_is_what_its_file_has(reference: str, digits: str, expected: str, trials: Path) -> None:
    text = f"It is {digits}<!-- {reference} --> there."
    assert with_quoted(text, trials, "page.md") == f"It is {expected}<!-- {reference} --> there."
    assert not list(loose_figures(text))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (".1<!-- printed: FedEM filmtrust Nobody HR@10 -->", "0 figures in reproduction/published.csv; expected one"),
        (".1<!-- trial: theirs toys two words best -->", "theirs.json: no such trials"),
        (".1<!-- trial: mine toys two words trial 4 -->", "toys two words trial 4: no such trial"),
        (".1<!-- trial: mine toys two words trial 3 -->", "toys two words trial 3: no such trial"),
        ("much<!-- trial: mine toys two words best -->", "expected a figure such as .157 in front of it"),
        (".1<!-- printed: FedEM -->", "expected a figure such as .157 in front of it"),
    ],
)
def test_a_reference_to_nothing_is_refused(text: str, why: str, trials: Path) -> None:
    with pytest.raises(OutputError, match=re.escape(why)) as raised:
        with_quoted(text, trials, "page.md")
    assert str(raised.value).startswith("page.md: ")


def test_the_demos_record_is_of_what_make_demo_compares() -> None:
    """Settings, rounds and measurements of every run are those that the Makefile's two comparisons ask for."""
    suite = load_suite(str(ROOT / "examples" / "demo.toml"))
    lines = (ROOT / "Makefile").read_text(encoding="utf-8").replace("\\\n", " ").splitlines()
    asked: dict[tuple[str, str], dict[str, Any]] = {}
    for line in lines:
        if "compare" not in line or "runs/demo" not in line:
            continue
        words = shlex.split(line.partition("compare")[2])
        pairs = list(pairwise(words))
        given = {name: [value for option, value in pairs if option == name] for name in ("--protocol", "--set")}
        one = {option: int(value) for option, value in pairs if option in ("--rounds", "--measure-every")}
        methods = words[: next(place for place, word in enumerate(words) if word.startswith("--"))]
        for method in methods:
            for protocol in given["--protocol"] or ["honest"]:
                asked.setdefault((method, protocol), {**one, "--set": given["--set"]})
    planned = {
        (row.name, name): suite.experiment(row, "goodbooks", name) for row in suite.rows for name in row.protocols
    }
    assert planned.keys() == asked.keys()
    for (method, name), made in planned.items():
        own = made.resolved(made.model()).settings
        typed = [pair for pair in asked[method, name]["--set"] if pair.partition("=")[0] in own]
        like = with_settings(Experiment(method), method, (), typed)
        assert like.resolved(like.model()).settings == own, method
        if typed:
            assert (made.rounds, made.measure_every) == (
                asked[method, name]["--rounds"],
                asked[method, name]["--measure-every"],
            )
