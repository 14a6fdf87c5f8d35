"""Records made in parts: comparisons stay only where all their rows are still those they were made of."""

from __future__ import annotations

from typing import Any

from ownview.studies.bench.results import _still


def _document(rows: dict[str, int], compared: list[str]) -> dict[str, Any]:
    runs = [{"run": name, "data": name.split("-")[0], "value": value} for name, value in rows.items()]
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
