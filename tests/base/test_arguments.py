"""Arguments of public functions are held against their annotations."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypedDict, cast

import pytest

import ownview as ov
from ownview.base.arguments import kinds_checked
from ownview.base.errors import SettingError


class Options(TypedDict, total=False):
    """Of the function below."""

    tolerant: bool


@kinds_checked()
def taken(
    name: str | Path, *places: Path | None, options: Options | None = None, count: int = 1, rate: float = 1.0
) -> tuple[Any, ...]:
    return name, places, options, count, rate


def test_typed_dictionaries_are_mappings() -> None:
    assert taken("a", options={"tolerant": True})[2] == {"tolerant": True}
    wrong: Any = ["tolerant"]
    with pytest.raises(SettingError, match=r"^taken: options is a list; expected names with values or nothing$"):
        taken("a", options=wrong)


def test_text_is_a_path_where_one_is_expected_and_stays_text_elsewhere(tmp_path: Path) -> None:
    @kinds_checked()
    def kept(place: Path | None, name: str | Path) -> tuple[Any, Any]:
        return place, name

    text: Any = "folder"
    assert kept(text, "name") == (Path("folder"), "name")
    number: Any = 3
    with pytest.raises(SettingError, match=r"^kept: place is an int; expected a path or nothing$"):
        kept(number, "name")
    assert len(ov.load("goodbooks", data_dir=str(tmp_path), options={"tolerant": True})) > 0  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("function", "values"),
    [(ov.load, {"options": {}, "columns": {}, "data_dir": Path()}), (ov.read, {"titles": "a.csv", "users": "b.csv"})],
)
def test_options_and_paths_reach_what_reads_files(function: Callable[..., Any], values: Mapping[str, Any]) -> None:
    for name, value in values.items():
        with pytest.raises(ov.OwnviewError, match="no such file"):
            function("nowhere.csv", **{name: value})


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ov.page(cast("Any", 3)), "page: run is an int; expected Run or text or a path"),
        (lambda: ov.export(cast("Any", 3), "out"), "export: run is an int; expected Run or text or a path"),
        (lambda: ov.report([cast("Any", 3)]), "one of runs is an int; expected a run or its folder"),
        (lambda: ov.read_lists(cast("Any", 3)), "read_lists: path is an int; expected text or a path"),
        (lambda: ov.skew(cast("Any", "a"), cast("Any", "b")), "skew: one is a str; expected Run"),
        (lambda: ov.trust(cast("Any", 3)), "trust: file is an int; expected text or a path"),
    ],
    ids=["page", "export", "report", "read_lists", "skew", "trust"],
)
def test_functions_about_runs_and_files_say_what_they_expect(call: Callable[[], object], message: str) -> None:
    with pytest.raises(SettingError, match=f"^{re.escape(message)}$"):
        call()
