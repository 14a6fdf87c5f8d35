"""Records made in parts: marks stay only for rows that are still those they were made of."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ownview.evaluation.named_protocols import HONEST
from ownview.studies.bench.renaming import as_called_now
from ownview.studies.bench.results import _still, outdated, read_all
from ownview.studies.bench.suite import load_suite, part_of, plan

RESULTS = Path(__file__).resolve().parents[3] / "results"


def _run(row: str, value: float, seed: int = 0, protocol: str = "honest") -> dict[str, Any]:
    """A recorded run; its row is compared by one metric."""
    return {
        **{"run": f"{row}-{protocol}-{seed}", "method": row, "data": "books", "protocol": protocol, "seed": seed},
        **{"users_ranked": 10, "test": {"HR@10": value}, "interval_95": {"HR@10": [value, value]}},
    }


def _compared(*runs: dict[str, Any]) -> dict[str, Any]:
    """A document whose rows, of one run each, were compared with each other."""
    cells = [
        {
            **{name: one[name] for name in ("data", "protocol", "method")},
            "metric": "HR@10",
            "mean": one["test"]["HR@10"],
        }
        for one in runs
    ]
    return {"runs": list(runs), "comparison": cells}


def _rows(cells: list[dict[str, Any]]) -> list[str]:
    return [one["method"] for one in cells]


def test_a_comparison_stays_where_all_its_runs_are_there() -> None:
    made = _compared(_run("ease", 0.2), _run("fedease", 0.3))
    assert _still(made, made["runs"]) == made["comparison"]


def test_a_row_that_was_made_anew_loses_its_mark_and_the_others_keep_theirs() -> None:
    made = _compared(_run("ease", 0.2), _run("slist", 0.1), _run("fedease", 0.3))
    assert _rows(_still(made, [_run("ease", 0.25), *made["runs"][1:]])) == ["slist", "fedease"]
    assert _rows(_still(made, [_run("ease", 0.2), _run("ease", 0.2, seed=1), *made["runs"][1:]])) == [
        "slist",
        "fedease",
    ]


def test_a_row_compared_with_another_besides_keeps_that_while_both_are_what_they_were() -> None:
    made = _compared(_run("without", 0.1), _run("with", 0.2), _run("fedease", 0.3))
    made["comparison"][1]["beside"] = {"label": "without"}
    assert _still(made, made["runs"])[1]["beside"] == {"label": "without"}
    again = _still(made, [_run("without", 0.12), *made["runs"][1:]])
    assert _rows(again) == ["with", "fedease"]
    assert "beside" not in again[0]


def test_a_column_loses_all_marks_where_its_best_was_made_anew_or_a_row_beside_it_is_ahead() -> None:
    made = _compared(_run("ease", 0.2), _run("fedease", 0.3))
    assert _still(made, [made["runs"][0], _run("fedease", 0.31)]) == []
    assert _still(made, [*made["runs"], _run("sasrec", 0.4)]) == []
    assert _rows(_still(made, [*made["runs"], _run("sasrec", 0.25)])) == ["ease", "fedease"]


def test_protocols_keep_their_marks_apart() -> None:
    other = [_run("ease", 0.1, protocol="new-users"), _run("slist", 0.2, protocol="new-users")]
    made = _compared(_run("ease", 0.2), _run("slist", 0.1), *other)
    anew = _run("ease", 0.3)
    assert {one["protocol"] for one in _still(made, [anew, *made["runs"][1:]])} == {"new-users"}


def test_a_row_that_is_left_alone_is_not_compared() -> None:
    made = _compared(_run("ease", 0.2), _run("fedease", 0.3))
    assert _still(made, [_run("ease", 0.21), made["runs"][1]]) == []


def test_a_comparison_stays_where_one_run_stands_behind_two_rows() -> None:
    made = _compared(_run("ease", 0.2), _run("fedease", 0.3))
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
    here = [one for one in read_all(RESULTS)["best"]["runs"] if (one["data"], one["protocol"]) == ("ml-1m", "honest")]
    (known,) = [one for one in here if one["method"] == "blend of closed forms"]
    beside = [one for one in here if one["method"].startswith("fed") and one["seed"] == 0]
    older = {name: value for name, value in known["experiment"]["settings"].items() if name != "weights"}
    before = {**known, "run": "older", "experiment": {**known["experiment"], "settings": older}}
    assert as_called_now([*beside, before], whole, {})[-1]["run"] == planned.folder.name
    parts = [*older["parts"][:-1], "fednext @another-run"]
    other = {**before, "experiment": {**known["experiment"], "settings": {**older, "parts": parts}}}
    assert as_called_now([*beside, other], whole, {})[-1] == other, "of other runs"


def test_blends_of_runs_that_have_another_name_now_keep_their_place() -> None:
    """A new setting renames a part; the blend that was made of it is still what the suite asks for."""
    whole = plan(part_of(load_suite("best"), ["blend, central"], ["ml-1m"]), Path())
    planned = next(one for one in whole if one.parts and one.seed == 0)
    entries: list[dict[str, Any]] = []
    for one in (*planned.parts, planned):
        resolved = one.experiment.resolved(one.experiment.model()).to_dict()
        experiment = {name: resolved[name] for name in ("method", "settings", "plugins", "federation")}
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
