"""How many settings were tried: told by defaults, presets and tunings; kept with results; dropped where not true."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from ownview.base.errors import SettingError
from ownview.config.presets.loading import preset
from ownview.federation.options import FederationOptions
from ownview.runs.experiment import Experiment
from ownview.runs.run import open_run
from ownview.runs.summaries.tried_settings import Tried, tried, tried_of, tried_sentence
from ownview.runs.table import Comparison
from ownview.studies.grid import folder_name
from tests.outcome import Outcome
from tests.studies.worlds import write_world


def _tuned(data: str) -> Experiment:
    return Experiment.from_dict({**preset("fedmf", "tuned", data).experiment(), "data": data})


def test_defaults_count_as_one_written_out_or_not() -> None:
    plain = Experiment("pfedrec", plugins=(("late-aggregation", {}),))
    assert tried(plain) == tried(plain.resolved(plain.model())) == Tried(1, "goodbooks")
    assert tried(Experiment("popularity")) == Tried(1, "goodbooks")


def test_settings_that_were_typed_are_not_known() -> None:
    assert tried(Experiment("pfedrec", settings={"learning_rate": 0.07})) is None
    assert tried(Experiment("pfedrec", federation=FederationOptions(clients="0.6"))) is None
    assert tried(Experiment("pfedrec", plugins=(("late-aggregation", {"begin": 7}),))) is None
    assert tried(Experiment("made in Python")) is None


@pytest.mark.parametrize(
    ("data", "number", "where"), [("ml-100k", 17, "ml-100k"), ("filmtrust", 8, "filmtrust"), ("lastfm", 10, "ml-100k")]
)
def test_a_preset_says_its_number_and_where(data: str, number: int, where: str) -> None:
    found = _tuned(data)
    assert tried(found) == tried(found.resolved(found.model())) == Tried(number, where)
    assert tried(replace(found, settings={**found.settings, "embedding_size": 3})) is None


@pytest.mark.parametrize(
    ("method", "data", "number"), [("fedease", "ml-1m", 16), ("pfedrec", "amazon-instant-video", 9)]
)
def test_defaults_that_a_search_ended_with_count_as_many_as_it_tried(method: str, data: str, number: int) -> None:
    plain = Experiment(method)
    assert {**plain.resolved(plain.model()).settings, **preset(method, "tuned", data).settings} == plain.resolved(
        plain.model()
    ).settings, "the preset is the defaults"
    assert tried(Experiment(method, data=data)) == Tried(number, data)
    elsewhere = Experiment(method, data="lastfm-2k-tags")
    assert tried(elsewhere) == Tried(1, "lastfm-2k-tags"), "nothing was searched there"


def test_what_an_experiment_says_counts_and_changes_no_run() -> None:
    typed = Experiment("pfedrec", settings={"learning_rate": 0.07})
    said = replace(typed, settings_tried=12, tried_on="ml-100k")
    assert tried(said) == Tried(12, "ml-100k")
    assert Experiment.from_toml(said.to_toml()) == said
    assert "tried" not in typed.to_toml()
    assert said.identity() == typed.identity()
    assert folder_name(said) == folder_name(typed)
    with pytest.raises(SettingError, match="settings_tried=-1: expected a whole number at least 0"):
        replace(said, settings_tried=-1)


def test_results_of_earlier_versions_are_asked_by_their_settings() -> None:
    assert tried_of({}, _tuned("ml-100k")) == Tried(17, "ml-100k")
    assert tried_of({"settings_tried": 3, "tried_on": "x"}, _tuned("ml-100k")) == Tried(3, "x")
    assert tried_of({"settings_tried": None, "tried_on": None}, Experiment("popularity")) is None
    assert tried_of({}, Experiment("/no/such/method.py")) is None, "and is not loaded"


def test_the_sentence_under_a_table() -> None:
    one, many, elsewhere = Tried(1, "a"), Tried(17, "a"), Tried(10, "b")
    said = "settings tried on validation: "
    assert tried_sentence({"x": one, "y": one}, "a") == f"{said}1 for every row"
    assert (
        tried_sentence({"x": one, "y": many, "z": None}, "a") == f"{said}17 for y; not recorded for z; 1 for all others"
    )
    assert tried_sentence({"y": elsewhere}, "a") == f"{said}10 for y (on b)"


def test_from_a_tuning_to_the_table(
    ownview: Callable[..., Outcome], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("optuna")
    monkeypatch.delenv("OWNVIEW_DATA", raising=False)
    monkeypatch.chdir(tmp_path)
    write_world(tmp_path / "world.csv")
    tuning = ("--data", "world.csv", "--trials", "3", "--rounds", "2", "--out", "tuning")
    assert ownview("tune", "fedmf", *tuning, "--search", "learning_rate=0.01:0.1:log").code == 0
    best = tomllib.loads(Path("tuning/best.toml").read_text(encoding="utf-8"))
    assert (best["settings_tried"], best["tried_on"]) == (3, "world.csv")
    assert ownview("run", "--config", "tuning/best.toml", "--out", "best").code == 0
    assert ownview("run", "--config", "tuning/best.toml", "--set", "embedding_size=3", "--out", "typed").code == 0
    assert ownview("run", "popularity", "--data", "world.csv", "--out", "popularity").code == 0
    results = {name: json.loads(Path(name, "result.json").read_text()) for name in ("best", "typed", "popularity")}
    assert {name: one["settings_tried"] for name, one in results.items()} == {"best": 3, "typed": None, "popularity": 1}
    table = Comparison.of([open_run(Path(name)) for name in ("popularity", "best")])
    assert table.notes[-1] == "settings tried on validation: 3 for fedmf; 1 for all others"
    assert {row["method"]: row["settings_tried"] for row in table.to_dict()["results"]} == {"popularity": 1, "fedmf": 3}
