"""The pages that show results say what the committed results say."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from reproduction.commands.render_results import figure_pages
from reproduction.pages.result_tables import with_tables

from ownview.evaluation.named_protocols import pooled
from ownview.studies.bench.renaming import as_called_now
from ownview.studies.bench.results import Document, combined, outdated, read_all, suites_in, tables, write_document
from ownview.studies.bench.results_page import page
from ownview.studies.bench.suite import Suite, load_suite, plan
from tests.outcome import Outcome
from tests.reproduction.committed import MACHINE, ROOT, copy_of_committed

STALE = "not what results says; run: python -m reproduction results"


@pytest.fixture
def copy(own_folder: Path) -> Path:
    """Results and pages as they are committed, to be spoilt."""
    return copy_of_committed(
        own_folder, ("docs/results.md", *(str(one.relative_to(ROOT)) for one in figure_pages(ROOT)))
    )


def _suite(found: Document) -> Suite:
    """By name, or from the file in the project that the record names."""
    return load_suite(str(ROOT / found["file"]) if "file" in found else found["suite"])


def _files_between(old: str, new: str) -> list[str]:
    """What differs between two commits: where all of it was changed, the tree was that of the newer one."""
    command = ["git", "-C", str(ROOT), "diff", "--name-only", old, new]
    found = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    if found.returncode:
        pytest.skip(f"the history that {new} is in is not here: {found.stderr.strip()[:100]}")
    return found.stdout.split()


def test_the_committed_pages_are_in_step_with_the_committed_results() -> None:
    documents = read_all(ROOT / "results")
    advice = "run: python -m reproduction results"
    assert (ROOT / "docs" / "results.md").read_text(encoding="utf-8") == page(documents.values()), advice
    published = (ROOT / "docs" / "published.md").read_text(encoding="utf-8")
    assert with_tables(published, documents, "docs/published.md") == published, advice


def test_committed_results_are_whole_and_come_from_somewhere() -> None:
    documents = read_all(ROOT / "results")
    assert {path.stem for path in suites_in(ROOT / "results")} == set(documents)
    assert len(documents) > 8
    for found in read_all(ROOT / "results").values():
        rows = {row.name for row in _suite(found).rows}
        assert {one["method"] for one in found["runs"]} <= rows
        for one in found["runs"]:
            known = one["provenance"]
            assert known["revision"], one["run"]
            # What was changed is named: suites, whose settings a run's name holds, tests and records.
            if known["revision"].endswith("+"):
                changed = known.get("changed", {"files": []})
                assert changed["files"], f"{one['run']}: made from a changed source tree"
                harmless = re.compile(r"src/ownview/studies/suites/\w+\.toml|tests/[\w/]+\.py|results/[\w/]+\.json")
                assert re.fullmatch(r"[0-9a-f]{12}", changed["committed"]), "the commit that holds them"
                if not all(harmless.fullmatch(file) for file in changed["files"]):
                    assert changed["files"] == _files_between(known["revision"][:-1], changed["committed"])
            assert known["machine"].keys() - {"engine"} == MACHINE, "no host names"
            assert known["data"]["fingerprint"]
            assert known["packages"]["torch"]


def test_committed_runs_are_those_the_suites_ask_for() -> None:
    """Defaults written out, a setting that came later counting with its own: what is not would go with the next one."""
    for found in read_all(ROOT / "results").values():
        planned = plan(_suite(found), ROOT)
        asked = {(one.row, one.data, one.protocol, one.seed): one.folder.name for one in planned}
        recorded = as_called_now(found["runs"], planned, found["protocols"])
        recorded = [one for one in recorded if one["protocol"] not in outdated(found["protocols"])]  # tables say so
        called = {(one["method"], one["data"], one["protocol"], one["seed"]): one["run"] for one in recorded}
        assert called == {key: asked.get(key) for key in called}
        assert found.get("asked_for", len(found["runs"])) == len(asked), "a record of a part says of how many"


def test_every_figure_of_the_page_is_in_the_results(copy: Path) -> None:
    documents = read_all(copy / "results")
    text = (copy / "docs" / "results.md").read_text(encoding="utf-8")
    number = 0
    for found in documents.values():
        for table in tables(found):
            for (method, protocol, metric), figure in table.cells.items():
                same = [
                    one
                    for one in found["runs"]
                    if (one["data"], one["method"], pooled(one["protocol"])) == (table.data, method, protocol)
                ]
                # A person who is asked counts once: seeds ask the same users, cuts of one protocol others.
                total = sum(one["test"][metric] * one["users_ranked"] for one in same)
                assert figure.mean == pytest.approx(total / sum(one["users_ranked"] for one in same))
                assert f" {figure} " in text
                number += 1
    assert number >= 8


@pytest.mark.parametrize("name", ["docs/published.md", "docs/results.md"])
def test_a_figure_changed_by_hand_is_noticed(name: str, copy: Path, reproduction: Callable[..., Outcome]) -> None:
    assert reproduction("results", "--check").code == 0
    path = copy / name
    before = path.read_text(encoding="utf-8")
    found = read_all(copy / "results")["quick"]
    figure = str(next(iter(tables(found)[0].cells.values())))
    assert figure in before
    path.write_text(before.replace(figure, figure.replace("0.", "9.", 1)), encoding="utf-8")
    outcome = reproduction("results", "--check")
    assert (outcome.code, outcome.err) == (2, f"reproduction: {name}: {STALE}\n")
    assert path.read_text(encoding="utf-8") != before, "--check changes nothing"
    assert reproduction("results").out.startswith("1 of ")
    assert path.read_text(encoding="utf-8") == before


def test_results_changed_by_hand_are_noticed(copy: Path, reproduction: Callable[..., Outcome]) -> None:
    found = read_all(copy / "results")["quick"]
    found["comparison"][0]["mean"] += 0.1
    write_document(copy / "results" / "quick.json", found)
    assert json.loads((copy / "results" / "quick.json").read_text()) == found
    assert reproduction("results", "--check").err == f"reproduction: docs/results.md, docs/published.md: {STALE}\n"


def test_marks_and_warnings_stand_beside_the_figures(copy: Path) -> None:
    found = read_all(copy / "results")["quick"]
    (table,) = tables(found)
    for column in table.columns:
        best = max(table.methods, key=lambda method: table.cells[method, *column].mean)
        assert re.search(r" ▲○? \(", str(table.cells[best, *column]))
    assert table.warnings("honest") == []
    (leak,) = table.warnings("paper")
    assert "a model that learns nothing scores HR@10 1.000" in leak.sentence
    assert f"- **`paper`**: {leak.sentence}" in (copy / "docs" / "published.md").read_text(encoding="utf-8")


def test_tables_say_how_their_marks_were_made(copy: Path) -> None:
    """Records of earlier versions keep the marks they were made with."""
    found = read_all(copy / "results")["papers"]
    for name in ("runs", "comparison"):
        found[name] = [one for one in found[name] if one["data"] == "filmtrust"]
    (before,) = tables(found)
    assert "Wilcoxon's test, Holm's correction over the table, recorded before" in before.legend
    for entry in found["comparison"]:
        entry["p_corrected"] = entry.pop("p_holm")
    (by_question,) = tables(found)
    assert "recorded before a person who is asked at several cuts counted once" in by_question.legend
    for entry in found["comparison"]:
        entry["persons"] = 1000
    (now,) = tables(found)
    assert "signs of the paired differences flipped by person" in now.legend
    assert "before" not in now.legend
    assert [str(one) for one in now.cells.values()] == [str(one) for one in before.cells.values()]


def test_tables_say_how_many_settings_were_tried(copy: Path) -> None:
    found = read_all(copy / "results")["papers"]
    by_data = {table.data: table for table in tables(found)}
    assert by_data["ml-100k"].label("fedmf (tuned)") == "fedmf (tuned), 17 tried"
    assert by_data["ml-100k"].label("fedmf (published)") == "fedmf (published)"
    assert by_data["ml-100k"].label("fedrap") == "fedrap, settings tried: not recorded"
    assert "10 for fedmf (tuned) (on ml-100k); not recorded for fedrap, " in by_data["lastfm-2k-artists"].settings
    assert by_data["filmtrust"].settings in (copy / "docs" / "results.md").read_text(encoding="utf-8")
    for entry in found["runs"]:
        entry |= {"settings_tried": 5, "tried_on": entry["data"]}
    assert tables(found)[0].label("fedmf (tuned)") == "fedmf (tuned), 5 tried", "what a record says counts"
    assert tables(found)[0].settings.endswith("validation values: not recorded for any row")
    for entry in found["runs"]:
        entry["validation"] = {"NDCG@10": 0.1}
    assert "validation values" not in tables(found)[0].settings


def test_new_runs_are_recorded_beside_cells_of_early_ones_that_have_no_mean() -> None:
    suite, found = load_suite("quick"), read_all(ROOT / "results")["quick"]
    early = {**found, "comparison": [{k: v for k, v in one.items() if k != "mean"} for one in found["comparison"]]}
    again = {name: [one for one in found[name] if one["protocol"] == "honest"] for name in ("runs", "comparison")}
    made = combined(suite, plan(suite, ROOT), {**found, **again}, early)
    assert made["runs"] == found["runs"]
    assert {("mean" in one, one["protocol"]) for one in made["comparison"]} == {(True, "honest"), (False, "paper")}


def test_one_dataset_of_a_suite_can_be_shown(copy: Path, reproduction: Callable[..., Outcome]) -> None:
    place = copy / "one.md"
    place.write_text("<!-- results:papers/ml-100k -->\n<!-- end of results -->\n")
    assert reproduction("results", "--into", "one.md").code == 0
    text = place.read_text(encoding="utf-8")
    assert "ml-100k: test, " in text
    assert "filmtrust" not in text


def test_what_cannot_be_rendered_is_said(copy: Path, reproduction: Callable[..., Outcome]) -> None:
    (copy / "none").mkdir()
    assert "none: no results; make some with: ownview bench SUITE --record none" in reproduction("results", "none").err
    (copy / "plain.md").write_text("nothing\n")
    assert "plain.md: expected lines <!-- results:SUITE -->" in reproduction("results", "--into", "plain.md").err
    (copy / "plain.md").write_text("<!-- results:quik -->\n<!-- end of results -->\n")
    assert "did you mean 'quick'?" in reproduction("results", "--into", "plain.md").err
    (copy / "plain.md").write_text("<!-- results:quick/goodbook -->\n<!-- end of results -->\n")
    assert "did you mean 'goodbooks'?" in reproduction("results", "--into", "plain.md").err
    (copy / "results" / "quick.json").write_text('{"format": 7, "suite": "quick"}')
    assert "quick.json: format 7, expected 2" in reproduction("results").err
