"""Every figure of the pages has a record or a command behind it, and follows the record."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from reproduction.commands.render_results import STRICT_PAGES, figure_pages
from reproduction.pages.anchors import Anchor, read_anchors, with_anchors
from reproduction.pages.figures import Records, with_figures
from reproduction.pages.loose_figures import loose_figures

from ownview.base.errors import OutputError
from ownview.studies.bench.results import read_all
from tests.outcome import Outcome

ROOT = Path(__file__).resolve().parents[3]
PLACES = {"ours": (0.3, 0.157, "best"), "theirs": (0.29, 0.15, "not told apart"), "counts": (0.1, 0.02, "worse")}


def _document(places: dict[str, tuple[float, float, str]]) -> dict[str, Any]:
    """A record of one dataset under `honest` with some rows."""
    runs: list[dict[str, Any]] = []
    compared: list[dict[str, Any]] = []
    for row, (hr, ndcg, mark) in places.items():
        test = {"HR@10": hr, "NDCG@10": ndcg, "recall@20": hr + 0.11}
        run = {"run": row, "method": row, "data": "toys", "protocol": "honest", "seed": 0, "ranked_among": "all"}
        experiment = {"method": "popularity", "settings": {}, "plugins": [], "federation": {}}
        runs.append(
            {
                **run, "test": test, "interval_95": {name: [0.0, 1.0] for name in test}, "users_ranked": 100,
                "warnings": [], "experiment": experiment, "settings_tried": 7, "tried_on": "toys",
                "validation": {"NDCG@10": ndcg + 0.005},
            }
        )  # fmt: skip
        cell = {"spread": None, "low": 0.0, "high": 1.0, "seeds": 1, "users": 100, "persons": 100, "not_above": ""}
        about = {"data": "toys", "protocol": "honest", "method": row, "mark": mark}
        test_against = {"difference": hr - 0.3, "low": hr - 0.31, "high": hr - 0.28}
        compared += [
            {**about, **cell, "metric": metric, "mean": value, "against_best": None if mark == "best" else test_against}
            for metric, value in test.items()
        ]
        if row == "counts":
            difference = {"difference": -0.19, "low": -0.2, "high": -0.1}
            compared[-1] |= {"beside": {"label": "theirs", "test": difference, "p_corrected": 0.01}}
    return {"suite": "mine", "protocols": {"honest": {}}, "runs": runs, "comparison": compared, "failures": []}


def _written(text: str, places: dict[str, tuple[float, float, str]] | None = None) -> str:
    return with_figures(text, Records({"mine": _document(places or PLACES)}), "page.md")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("**.000**<!-- mine: toys honest ours -->", "**.157**<!-- mine: toys honest ours -->"),
        ("0.00<!-- mine: toys honest ours hr -->", "0.30<!-- mine: toys honest ours hr -->"),
        (".0 / .0000<!-- mine: toys honest counts -->", ".1 / .0200<!-- mine: toys honest counts -->"),
        (
            "is behind<!-- mine: toys honest ours ~ theirs -->",
            "cannot be told from<!-- mine: toys honest ours ~ theirs -->",
        ),
        ("is behind<!-- mine: toys honest ours ~ counts -->", "is ahead of<!-- mine: toys honest ours ~ counts -->"),
        ("is ahead of<!-- mine: toys honest counts ~ ours -->", "is behind<!-- mine: toys honest counts ~ ours -->"),
        (".00<!-- mine: toys honest ours recall@20 -->", ".41<!-- mine: toys honest ours recall@20 -->"),
        (
            ".000<!-- mine: toys honest ours validation NDCG@10 -->",
            ".162<!-- mine: toys honest ours validation NDCG@10 -->",
        ),
        (
            ".00 (.00 to .00)<!-- mine: toys honest ours - counts recall@20 -->",
            ".20 (.18 to .21)<!-- mine: toys honest ours - counts recall@20 -->",
        ),
        (
            ".000 (.000 to .000)<!-- mine: toys honest ours - theirs hr -->",
            ".010 (-.010 to .020)<!-- mine: toys honest ours - theirs hr -->",
        ),
        (
            "is ahead of<!-- mine: toys honest counts ~ theirs recall@20 -->",
            "is behind<!-- mine: toys honest counts ~ theirs recall@20 -->",
        ),
        (
            "is behind<!-- mine: toys honest theirs ~ counts recall@20 -->",
            "is ahead of<!-- mine: toys honest theirs ~ counts recall@20 -->",
        ),
        ("9 or 12<!-- mine: toys honest ours tried -->", "9 or 7<!-- mine: toys honest ours tried -->"),
    ],
)
def test_figures_and_verdicts_follow_the_record(text: str, expected: str) -> None:
    assert _written(text) == expected
    assert _written(expected) == expected


def test_a_small_table_and_the_best_rows_follow_the_record() -> None:
    table = "<!-- figures:mine/honest toys\nours = Ours\ncounts = Popularity\n-->\n<!-- end of figures -->"
    made = _written(table)
    assert "| Ours | **.300** / **.157** |" in made
    assert "| Popularity | .100 / .020 |" in made
    assert _written(made) == made
    turned = {"ours": (0.3, 0.157, "not told apart"), "counts": (0.4, 0.2, "best")}
    assert "| Ours | .300≈ / .157≈ |" in _written(made, turned)
    best = _written("<!-- best rows:mine/honest toys -->\n<!-- end of best rows -->")
    assert "NDCG@10: `ours` .157; cannot be told from it: `theirs` .150. HR@10" in best


def test_marks_of_an_earlier_test_are_called_that() -> None:
    record = _document(PLACES)
    for one in record["comparison"]:
        del one["persons"]
    early = Records({"mine": record})
    for text in (
        "<!-- best rows:mine/honest toys -->\n<!-- end of best rows -->",
        "<!-- figures:mine/honest toys\nours = Ours\n-->\n<!-- end of figures -->",
    ):
        assert "arks by an earlier test." in with_figures(text, early, "page.md")
        assert "earlier test" not in _written(text)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (".1<!-- mine: toys honest our -->", "no such figure; did you mean 'ours'"),
        (".1<!-- mine: toys honest ours recall@50 -->", "its runs have no recall@50"),
        (".1<!-- mine: toy honest ours -->", "no such data in it; did you mean 'toys'"),
        ("the best<!-- mine: toys honest ours -->", "expected a figure such as .157 in front of it, or one of"),
        ("is behind<!-- mine: toys honest theirs ~ counts -->", "neither is the best of its column"),
        ("is behind<!-- mine: toys honest ours ~ counts recall@50 -->", "does not compare rows in recall@50"),
        (".1 (.1 to .1)<!-- mine: toys honest theirs - counts -->", "expected the best row of its column first"),
        ("<!-- figures:mine/honest toys\nour = Ours\n-->\n<!-- end of figures -->", "did you mean 'ours'"),
    ],
)
def test_references_that_name_nothing_are_refused(text: str, complaint: str) -> None:
    with pytest.raises(OutputError, match=re.escape(complaint)):
        _written(text)


def test_figures_without_record_or_command_are_found() -> None:
    page = "\n".join(
        [
            "# Page", "It has .157 and 0.1234.", "", "It has .157<!-- mine: toys honest ours -->, 3.141, `0.001`.", "",
            ".3 / .157 is loose, .300 / .157<!-- mine: toys honest ours --> is not.", "",
            "By `ownview run ease`:", "", "| .100 |", "", "## Shown", "", "| .200 |", "",
            "```sh", "ownview run ease   # .900", "```", "", "## Next", "", "| .300 |",
        ]
    )  # fmt: skip
    assert list(loose_figures(page)) == [(2, ".157"), (2, "0.1234"), (6, ".157"), (22, ".300")]
    settings, by = "| setting | default |\n| --- | --- |\n| rate | .001 |", "```sh\nmake demo\n```"
    far = "\n\n".join([page, settings, "By", by, "Near: .700.", "Far: .800."])
    assert list(loose_figures(far)) == [(2, ".157"), (2, "0.1234"), (6, ".157")]
    assert list(loose_figures(far, beside=True))[3:] == [(22, ".300"), (36, ".800")]
    measured = ["<!-- begin: benchmarks/a.py rows -->", "| .100 |", "<!-- end: benchmarks/a.py rows -->"]
    by_themselves = "\n".join(["# Page", *measured, ".200"])
    assert list(loose_figures(by_themselves)) == [(5, ".200")], "tests hold such tables against their records"
    assert list(loose_figures("<!-- sums -->\n.1000\n<!-- end of sums -->\n\nHeld by `tests/a/test_b.py`: .500.")) == []


@pytest.fixture(scope="module")
def records() -> Records:
    return Records(read_all(ROOT / "results"))


@pytest.mark.parametrize("name", [str(one.relative_to(ROOT)) for one in figure_pages(ROOT)])
def test_the_committed_pages_say_what_the_records_say(name: str, records: Records) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    made = with_anchors(text, read_anchors(ROOT / "results" / "anchors.json"), records, name)
    assert with_figures(made, records, name) == text, "run: python -m reproduction results"
    assert list(loose_figures(text, beside=name in STRICT_PAGES)) == []


def test_a_figure_changed_by_hand_is_noticed_and_one_without_a_record_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reproduction: Callable[..., Outcome]
) -> None:
    shutil.copytree(
        ROOT / "results", tmp_path / "results", ignore=shutil.ignore_patterns("ledger.json", "uploads.json")
    )
    shutil.copytree(ROOT / "docs", tmp_path / "docs")
    shutil.copy(ROOT / "README.md", tmp_path / "README.md")
    monkeypatch.chdir(tmp_path)
    readme = tmp_path / "README.md"
    before = readme.read_text(encoding="utf-8")
    spoilt, number = re.subn(r"\*\*\.\d+\*\*<!-- best: ", "**.999**<!-- best: ", before, count=1)
    assert number == 1
    readme.write_text(spoilt, encoding="utf-8")
    assert (
        "README.md: not what results says; run: python -m reproduction results"
        in reproduction("results", "--check").err
    )
    assert reproduction("results").code == 0
    assert readme.read_text(encoding="utf-8") == before
    readme.write_text(before + "\n\nFedMine has .987.\n", encoding="utf-8")
    refused = reproduction("results", "--check")
    assert refused.code == 2
    assert ": .987: nothing says where it comes from" in refused.err


def test_printed_figures_stand_beside_ours_with_what_may_be_said() -> None:
    printed = Anchor("toys", "Theirs", "Venue 2026", {"HR@10": 0.31, "NDCG@10": 0.15}, "all", "as ours", "a log", "")
    text = "<!-- anchors:mine/honest toys\nours = Ours\n-->\n<!-- end of anchors -->"
    made = with_anchors(text, [printed], Records({"mine": _document(PLACES)}), "page.md")
    assert made.index("| **Ours** | .3000 | .1570 |") < made.index("| Theirs (Venue 2026) | .31 | .15 | all |")
    assert "HR@10 .0100 below the highest printed (Theirs .3100), NDCG@10 .0070 above" in made
    assert with_anchors(made, [printed], Records({"mine": _document(PLACES)}), "page.md") == made


def test_a_row_of_another_suite_stands_beside_printed_figures() -> None:
    printed = Anchor("toys", "Theirs", "Venue 2026", {"HR@10": 0.31, "NDCG@10": 0.15}, "all", "as ours", "a log", "")
    text = "<!-- anchors:mine/honest toys\nlater/ours = Later\n-->\n<!-- end of anchors -->"
    known = Records({"later": _document(PLACES)})
    assert "| **Later** | .3000 | .1570 |" in with_anchors(text, [printed], known, "page.md")
    with pytest.raises(OutputError, match="mine"):
        with_anchors(text.replace("later/", ""), [printed], known, "page.md")


def test_a_file_of_printed_figures_that_is_none_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "anchors.json"
    path.write_text(json.dumps({"format": 1, "anchors": [{"name": "x"}]}), encoding="utf-8")
    with pytest.raises(OutputError, match="cannot be read as printed figures"):
        read_anchors(path)
