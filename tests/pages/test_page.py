"""The page as text: inside its limit, asking nobody, hostile titles as text, and no method known by name."""

from __future__ import annotations

import importlib.resources
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from benchmarks.shop import orders, write

from ownview.base.display.amounts import readable
from ownview.base.errors import OutputError, SettingError
from ownview.pages.page import ENOUGH_ALIKE, HEADING, SCRIPTS, page
from ownview.registry import BASELINES, METHODS, PLUGINS
from ownview.runs.run import Run
from tests.outcome import Outcome
from tests.pages.worlds import HOSTILE, ITEMS

ASSETS = importlib.resources.files("ownview.pages") / "assets"


def model_of(text: str) -> dict[str, Any]:
    found = re.search(r'<script type="application/json" id="model">(.*?)</script>', text, re.DOTALL)
    assert found is not None
    return dict(json.loads(found[1]))


@pytest.fixture(scope="module")
def text(run_of: Callable[[str], Run], tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("page") / "page.html"
    made = page(run_of("whole"), path, title=HOSTILE[0], min_people=1)
    assert made.bytes == path.stat().st_size
    return path.read_text(encoding="utf-8")


def test_it_asks_nobody(text: str) -> None:
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)
    assert policy is not None
    assert policy[1].startswith("default-src 'none';")
    assert "connect-src" not in policy[1]
    for name in (*SCRIPTS, "style.css", "page.html"):
        asset = (ASSETS / name).read_text(encoding="utf-8")
        assert not re.search(r"https?:|@import|url\(|fetch\(|XMLHttpRequest|localStorage|sessionStorage|cookie", asset)


def test_no_code_knows_a_method_by_name() -> None:
    for name in SCRIPTS:
        script = (ASSETS / name).read_text(encoding="utf-8").lower()
        for method in (*METHODS, *BASELINES, *PLUGINS):
            # "text" is a word of every script: as a method's name it would stand in quotation marks.
            named = r"[\"']text[\"']" if method == "text" else rf"\b{method}\b"
            assert not re.search(named, script.replace("popularity", "")), (name, method)


def test_titles_cannot_end_the_script(text: str) -> None:
    assert text.count("</script>") == 2
    assert f"<title>{'&lt;/script&gt;&lt;script&gt;document.title=&#x27;broken&#x27;&lt;/script&gt;'}</title>" in text
    model = model_of(text)
    assert model["title"] == HOSTILE[0]
    assert set(HOSTILE) <= set(model["titles"])
    assert len(model["titles"]) == len(model["ids"]) == len(model["known"]) == ITEMS


def test_it_says_how_much_of_the_model_it_is(text: str) -> None:
    about = model_of(text)["about"]
    assert about["kept"] == 1
    assert about["agreement"]["top_ten_overlap"] > 0.9
    assert "are those of the full model" in about["agreement"]["sentence"]


def test_it_does_not_claim_devices_that_there_were_none_of(text: str) -> None:
    """All rows lay in one file, and the page said that the model was learnt from what devices sent."""
    said = model_of(text)["about"]["privacy"]["sentence"]
    assert said.startswith("simulated: all rows lay in one file, and no device sent anything. A device would have sent")
    assert "devices sent" not in text


def test_a_limit_holds_and_what_cannot_fit_is_refused(run_of: Callable[[str], Run], tmp_path: Path, text: str) -> None:
    size = len(text.encode())
    limit = size / 1e6
    made = page(run_of("whole"), tmp_path / "page.html", megabytes=limit, min_people=1)
    assert made.bytes <= limit * 1e6
    assert made.kept < 1
    assert model_of(made.path.read_text(encoding="utf-8"))["about"]["kept"] == made.kept
    with pytest.raises(SettingError, match="raise --megabytes"):
        page(run_of("whole"), tmp_path / "small.html", megabytes=0.001)
    with pytest.raises(SettingError, match="megabytes=0: expected"):
        page(run_of("whole"), tmp_path / "small.html", megabytes=0)
    assert [file.name for file in tmp_path.iterdir()] == ["page.html"]


def test_an_existing_page_is_overwritten_when_asked(run_of: Callable[[str], Run], tmp_path: Path) -> None:
    there = tmp_path / "page.html"
    there.write_text("mine")
    with pytest.raises(OutputError, match="--force"):
        page(run_of("rows"), there)
    with pytest.raises(OutputError, match="is a folder"):
        page(run_of("rows"), tmp_path)
    assert there.read_text() == "mine"
    page(run_of("rows").folder.path, there, force=True)
    assert there.read_text(encoding="utf-8").startswith("<!doctype html>")


def test_the_command_says_where_it_is(
    run_of: Callable[[str], Run], tmp_path: Path, ownview: Callable[..., Outcome]
) -> None:
    outcome = ownview("page", run_of("ridge").folder.path, "-o", tmp_path / "page.html")
    assert outcome.code == 0
    size = readable((tmp_path / "page.html").stat().st_size)
    assert f"{tmp_path / 'page.html'}: {size}; open it in a browser" in outcome.out
    assert "% of its ten recommendations are those of the full model" in outcome.out
    outcome = ownview("page", run_of("product").folder.path, "-o", tmp_path / "other.html")
    assert "note: scores after a pause are left out" in outcome.out


def test_a_page_of_ids_alone_or_unlike_its_model_is_warned_of(run_of: Callable[[str], Run], tmp_path: Path) -> None:
    made = page(run_of("whole"), tmp_path / "page.html", min_people=1)
    assert model_of(made.path.read_text(encoding="utf-8"))["title"] == HEADING
    assert [one for one in made.warnings() if "items have no titles" in one]
    unlike = made._replace(titled=True, fidelity=made.fidelity._replace(overlap=0.9), kept=0.5)
    (warning,) = unlike.warnings()
    assert warning.startswith("90.0 % of its ten")
    assert "--megabytes" in warning
    assert unlike._replace(fidelity=made.fidelity._replace(overlap=0.96)).warnings() == []


def test_a_page_without_what_few_people_had_says_what_it_would_have_with_it(
    tmp_path: Path, ownview: Callable[..., Outcome]
) -> None:
    """In a small shop most pairs are single people's, and no room for weights brings them back."""
    write(orders(100, 120, 800), tmp_path / "small.csv")
    assert ownview("fit", "fedease", "--data", tmp_path / "small.csv", "--out", tmp_path / "model").code == 0
    made = page(tmp_path / "model", tmp_path / "page.html")
    assert made.kept == 1
    assert made.fidelity.overlap < ENOUGH_ALIKE < (made.whole or 0)
    (warning,) = [one for one in made.warnings() if "less than 95 %" in one]
    assert warning.endswith(f"ownview page --min-people 1 leaves it in, for {100 * (made.whole or 0):.1f} %")
    everything = page(tmp_path / "model", tmp_path / "all.html", min_people=1)
    assert everything.whole is None
    assert everything.fidelity.overlap == pytest.approx(made.whole or 0, abs=0.01)


@pytest.mark.parametrize("command", ["page", "export"])
def test_a_model_without_a_form_is_refused_in_one_line(
    command: str, made: Callable[..., Run], tmp_path: Path, ownview: Callable[..., Outcome]
) -> None:
    run = made("local-only", embedding_size=2, local_epochs=1).folder.path
    outcome = ownview(command, run, "-o", tmp_path / "made")
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err.count("\n") == 1
    assert "local-only cannot be taken along: it shares nothing" in outcome.err
    assert list(tmp_path.iterdir()) == []
