"""Records made in parts: comparisons stay only where all their rows are still those they were made of."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ownview.evaluation.named_protocols import HONEST
from ownview.studies.bench.renaming import as_called_now
from ownview.studies.bench.results import _still, outdated, read_all
from ownview.studies.bench.suite import load_suite, part_of, plan

RESULTS = Path(__file__).resolve().parents[2] / "results"


def _document(rows: dict[str, int], compared: list[str]) -> dict[str, Any]:
    runs = [{"run": name, "method": "any", "data": name.split("-")[0], "value": value} for name, value in rows.items()]
    return {"runs": runs, "comparison": [{"data": data, "method": "any"} for data in compared]}


def test_a_comparison_of_data_whose_runs_are_all_there_stays() -> None:
    made = _document({"a-1": 1, "a-2": 2, "b-1": 3}, ["a", "b"])
    assert _still(made, made["runs"]) == made["comparison"]


def test_a_comparison_goes_where_a_run_was_made_elsewhere_or_anew() -> None:
    made = _document({"a-1": 1, "b-1": 3}, ["a", "b"])
    other = _document({"a-1": 1, "a-2": 2, "b-1": 3}, [])
    assert [one["data"] for one in _still(made, other["runs"])] == ["b"]
    anew = _document({"a-1": 9, "b-1": 3}, [])
    assert [one["data"] for one in _still(made, anew["runs"])] == ["b"]


def test_a_comparison_stays_where_one_run_stands_behind_two_rows() -> None:
    made = _document({"a-1": 1, "a-2": 2}, ["a"])
    made["runs"].append({**made["runs"][0], "method": "the same by another name"})
    assert _still(made, made["runs"]) == made["comparison"]


def test_runs_from_before_a_setting_came_keep_their_place_in_the_record() -> None:
    whole = plan(part_of(load_suite("papers"), ["fedem", "popularity"], ["ml-100k"]), Path())
    names = {one.folder.name for one in whole}
    mine = [one for one in read_all(RESULTS)["papers"]["runs"] if one["method"] in ("fedem", "popularity")]
    before = [one for one in mine if one["data"] == "ml-100k"]
    assert {one["run"] for one in as_called_now(before, whole, {})} == names
    other = {**before[-1], "run": "other", "experiment": {**before[-1]["experiment"], "settings": {"alpha": 7.0}}}
    assert as_called_now([other], whole, {}) == [other], "made with other settings"
    assert as_called_now([{**other, "method": "gone"}], whole, {})[0]["run"] == "other"


def test_runs_of_a_protocol_that_means_something_else_now_are_not_what_is_asked_for() -> None:
    """Settings of next-sitting were once chosen on questions of its own pooled tests."""
    whole = plan(part_of(load_suite("best"), ["popularity"], ["ml-100k"]), Path())
    planned = next(one for one in whole if one.protocol == "next-sitting")
    made: dict[str, Any] = {"run": "older", "data": planned.data, "protocol": planned.protocol, "seed": planned.seed}
    made |= {"method": "popularity", "rounds": 1}
    made |= {"experiment": {"method": "popularity", "settings": {}, "plugins": [], "federation": {}}}
    now = planned.experiment.protocol.plain()
    assert as_called_now([made], whole, {"next-sitting": now})[0]["run"] == planned.folder.name
    before = {name: value for name, value in now.items() if name != "validation_until"} | {"validation_from": 0.7}
    assert as_called_now([made], whole, {"next-sitting": before}) == [made]
    assert outdated({"next-sitting": before, "honest": HONEST.plain()}) == ["next-sitting"]
    assert outdated({"next-sitting": now}) == []


def test_blends_from_before_a_setting_came_keep_their_place_too() -> None:
    whole = plan(part_of(load_suite("best"), ["blend of closed forms"], ["ml-1m"]), Path())
    (planned,) = [one for one in whole if one.parts]
    mine = [one for one in read_all(RESULTS)["best"]["runs"] if one["method"] == "blend of closed forms"]
    (known,) = [one for one in mine if one["data"] == "ml-1m"]
    older = {name: value for name, value in known["experiment"]["settings"].items() if name != "weights"}
    before = {**known, "run": "older", "experiment": {**known["experiment"], "settings": older}}
    assert as_called_now([before], whole, {})[0]["run"] == planned.folder.name
    parts = [*older["parts"][:-1], "fednext @another-run"]
    other = {**before, "experiment": {**known["experiment"], "settings": {**older, "parts": parts}}}
    assert as_called_now([other], whole, {}) == [other], "of other runs"


def test_blends_of_runs_that_have_another_name_now_keep_their_place() -> None:
    """A new setting renames a part; the blend that was made of it is still what the suite asks for."""
    whole = plan(part_of(load_suite("best"), ["blend, central"], ["ml-1m"]), Path())
    planned = next(one for one in whole if one.parts and one.seed == 0)
    entries: list[dict[str, Any]] = []
    for one in (*planned.parts, planned):
        told = one.experiment.resolved(one.experiment.model()).to_dict()
        experiment = {name: told[name] for name in ("method", "settings", "plugins", "federation")}
        about = {"run": one.folder.name, "method": one.row, "data": one.data, "protocol": one.protocol, "seed": 0}
        entries.append({**about, "rounds": one.experiment.rounds_needed, "experiment": experiment})
    *parts, blend = entries
    late = parts[-1]["experiment"]["settings"]
    earlier = {name: value for name, value in late.items() if name != "label_smoothing"}
    parts[-1] |= {"run": "sasrec-earlier", "experiment": {**parts[-1]["experiment"], "settings": earlier}}
    settings = blend["experiment"]["settings"]
    before = [*settings["parts"][:-1], "sasrec heads=2 @sasrec-earlier"]
    older = {**blend, "run": "blend-earlier"}
    older["experiment"] = {**blend["experiment"], "settings": {**settings, "parts": before}}
    *_, found = as_called_now([older, *parts], whole, {})[::-1]
    assert found["run"] == planned.folder.name
    assert list(found["experiment"]["settings"]["parts"]) == list(settings["parts"])
    assert as_called_now([older], whole, {}) == [older], "nothing is known of the run that it blends"
