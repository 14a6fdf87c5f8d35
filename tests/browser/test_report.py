"""The report in a real browser: it opens without a complaint or a request, and answers to what a reader does."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from ownview.reports.gather import gather, render
from ownview.reports.reading import find_runs
from tests.browser.chromium import Chromium, require_chromium
from tests.reports.worlds import HOSTILE, make_runs, make_sittings

pytestmark = pytest.mark.browser

DESKTOP, PHONE = (1200, 900), (360, 740)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("browser")
    path = folder / "report.html"
    path.write_text(render(gather(find_runs([make_runs(folder)]), title=HOSTILE)), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def browser() -> Iterator[Chromium]:
    with require_chromium() as started:
        yield started


@pytest.fixture(params=[DESKTOP, PHONE], ids=["desktop", "phone"])
def opened(request: pytest.FixtureRequest, browser: Chromium, page: Path) -> Chromium:
    browser.complaints.clear()
    browser.requests.clear()
    browser.size(*request.param, phone=request.param == PHONE)
    browser.open(page)
    browser.run("document.querySelector('#bar .methods').open = true")
    return browser


@pytest.fixture(scope="module")
def sittings(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sittings")
    path = folder / "report.html"
    path.write_text(render(gather(find_runs([make_sittings(folder)]), title="sittings")), encoding="utf-8")
    return path


@pytest.fixture(autouse=True)
def _nothing_to_complain(browser: Chromium, page: Path, sittings: Path) -> Iterator[None]:
    """Whatever a test did: no error or warning in the console, and nothing was asked for but the page itself."""
    yield
    assert browser.complaints == []
    assert {url for url in browser.requests if not url.startswith("data:")} <= {page.as_uri(), sittings.as_uri()}


def text(browser: Chromium, selector: str) -> str:
    return str(browser.run(f"document.querySelector({json.dumps(selector)}).textContent"))


def figure(browser: Chromium, title: str) -> str:
    """A selector for the figure with this title, and its drawing."""
    browser.run(
        f"[...document.querySelectorAll('figure')].find((one) => one.querySelector('h3').textContent === "
        f"{json.dumps(title)}).dataset.under = 'test'; "
        "document.querySelectorAll('figure[data-under]').forEach((one) => one.querySelector('h3').textContent === "
        f"{json.dumps(title)} || delete one.dataset.under)"
    )
    return "figure[data-under]"


def drawn(browser: Chromium, title: str) -> str:
    return str(browser.run(f"document.querySelector('{figure(browser, title)} .host').innerHTML"))


def test_it_opens_whole_and_fits_the_window(opened: Chromium) -> None:
    assert text(opened, "h1") == HOSTILE
    assert opened.run("document.title").startswith("Ownview: </script>")
    assert opened.run("innerWidth") in (DESKTOP[0], PHONE[0])  # a phone zooms out where the page is wider than it
    assert opened.run("document.documentElement.scrollWidth <= innerWidth")
    titles = opened.run("[...document.querySelectorAll('figure h3')].map((one) => one.textContent)")
    assert len(titles) == len(set(titles)) >= 15
    empty = (
        "[...document.querySelectorAll('figure:not([hidden]) .host')].filter((one) => !one.childElementCount).length"
    )
    assert opened.run(empty) == 0
    assert opened.run("document.querySelectorAll('figure:not([hidden]) .empty').length") == 0
    assert "NaN" not in opened.run("document.getElementById('main').innerHTML")
    assert "undefined" not in opened.run("document.getElementById('main').innerHTML")


def test_what_has_nothing_to_show_takes_no_room_and_is_named_at_the_end(opened: Chromium, sittings: Path) -> None:
    opened.open(sittings)
    hidden = opened.run("[...document.querySelectorAll('figure[hidden] h3')].map((one) => one.textContent)")
    assert "Item tables of one client" in hidden
    assert opened.run("document.querySelectorAll('figure:not([hidden]) .empty').length") == 0
    assert opened.run("document.getElementById('papers').getBoundingClientRect().height") == 0
    assert all(title in text(opened, "#absent") for title in hidden)


def test_ticks_are_not_repeated_and_there_are_enough(opened: Chromium) -> None:
    charts = opened.run(
        "[...document.querySelectorAll('figure:not([hidden]) svg.chart')].map((chart) => {"
        "const ticks = [...chart.querySelectorAll('text.tick[text-anchor=middle]')];"
        "const rows = Map.groupBy(ticks, (one) => one.getAttribute('y'));"
        "return [chart.ariaLabel, [...rows.values()].map((row) => row.map((one) => one.textContent))]})"
    )
    by_round = {name: rows for name, rows in charts if "by round" in name}
    assert by_round
    for name, rows in by_round.items():
        assert rows == [["1", "2", "3", "4"]], name


def test_methods_stand_by_score_with_chance_and_direction(opened: Chromium) -> None:
    cells = 'table.results td[data-protocol=honest][data-metric="HR@10"] .value'
    shown = opened.run(f"[...document.querySelectorAll('{cells}')].map((one) => one.textContent)")
    first = [float(value.lstrip("≈○ ")) for value in shown]
    assert len(set(first)) > 1
    assert first == sorted(first, reverse=True)
    for title in ("HR@10 under every protocol", "Convergence", "By activity"):
        made = drawn(opened, title)
        assert 'class="chance"' in made, title
        assert " better)" in made, title
    assert opened.run(f"document.querySelectorAll('{figure(opened, 'Convergence')} .ring').length") >= 3


def test_every_point_has_its_name(opened: Chromium) -> None:
    for title in ("Accuracy and bytes", "How much of the catalogue?"):
        place = figure(opened, title)
        points = opened.run(f"document.querySelectorAll('{place} path[role=img]').length")
        assert opened.run(f"document.querySelectorAll('{place} text.label').length") == points > 1


def test_equal_curves_are_drawn_in_turns(opened: Chromium) -> None:
    place = figure(opened, "Over users")
    drawings = opened.run(f"[...document.querySelectorAll('{place} path.line')].map((one) => one.getAttribute('d'))")
    dashes = opened.run(
        f"[...document.querySelectorAll('{place} path.line')].map((one) => "
        "[one.getAttribute('stroke-dasharray'), one.getAttribute('stroke-dashoffset')].join())"
    )
    equal = [dash for drawing, dash in zip(drawings, dashes, strict=True) if drawings.count(drawing) > 1]
    assert len(set(equal)) == len(equal)
    assert ("Equal, drawn in turns" in text(opened, f"{place} .host")) == bool(equal)


def test_a_figure_is_saved_as_a_drawing_and_as_pixels(opened: Chromium) -> None:
    place = figure(opened, "By activity")
    opened.run(
        "window.saved = []; HTMLAnchorElement.prototype.click = function () { this.save = 1; };"
        "URL.createObjectURL = (blob) => { const reader = new FileReader();"
        "reader.onload = () => window.saved.push(reader.result); reader.readAsDataURL(blob); return 'data:,'; };"
    )
    opened.run(f"document.querySelectorAll('{place} .save').forEach((one) => one.click())")
    opened.until(lambda: opened.run("window.saved.length") == 2)
    vector, pixels = sorted(opened.run("window.saved"), reverse=True)
    assert vector.startswith("data:image/svg+xml;base64,")
    drawing = base64.b64decode(vector.partition(",")[2]).decode()
    root = ElementTree.fromstring(drawing)
    words = {"".join(one.itertext()) for one in root.iter("{http://www.w3.org/2000/svg}text")}
    assert {"popularity", "HR@10  (↑ better)"} <= words
    assert "var(--" not in drawing
    assert base64.b64decode(pixels.partition(",")[2]).startswith(b"\x89PNG")
    width = int.from_bytes(base64.b64decode(pixels.partition(",")[2])[16:20], "big")
    assert width == 3 * int(root.attrib["width"])


def test_findings_stand_before_the_table(opened: Chromium) -> None:
    assert "never serve as training negatives" in text(opened, "#findings .fires")
    follows = "document.querySelector('#findings').compareDocumentPosition(document.querySelector('table.results')) & 4"
    assert opened.run(follows)


def test_choosing_methods_changes_table_and_charts(opened: Chromium) -> None:
    before = drawn(opened, "Convergence")
    assert "fedrap" in before
    opened.click('input[name=method][value="fedrap"]')
    assert "fedrap" not in drawn(opened, "Convergence")
    assert "off" in opened.run(
        "[...document.querySelectorAll('table.results tbody tr')].find((row) => row.textContent.startsWith('fedrap'))"
        ".className"
    )
    assert opened.run("document.querySelector('.methods summary').textContent").startswith("Methods: 6 of 7")
    opened.click("button[name=none]")
    assert "None of the chosen methods" in text(opened, f"{figure(opened, 'Convergence')} .host")
    opened.click("button[name=all]")
    assert drawn(opened, "Convergence").count("<path") == before.count("<path")


def test_switching_the_protocol_changes_the_charts(opened: Chromium) -> None:
    before = drawn(opened, "Convergence")
    opened.click("#bar label:has(input[name=protocol][value=paper])")
    assert opened.run("document.querySelector('input[name=protocol]:checked').value") == "paper"
    assert "protocol paper: HR@10 of 100 items" in text(opened, f"{figure(opened, 'Convergence')} p")
    assert drawn(opened, "Convergence") != before
    opened.click("#bar label:has(input[name=metric][value='NDCG@10'])")
    assert "NDCG@10 of 100 items" in text(opened, f"{figure(opened, 'Convergence')} p")


def test_choosing_a_user_shows_their_history_and_lists(opened: Chromium) -> None:
    chooser = f"{figure(opened, 'One user, every method')} select"
    first = opened.run("document.querySelector('.person').dataset.user")
    shown = text(opened, ".person")
    value = opened.run(f"document.querySelector('{chooser}').options[3].value")
    assert value != first
    opened.run(f"document.querySelector('{chooser}').focus()")
    for _ in range(3):
        opened.press("ArrowDown")
    opened.until(lambda: opened.run("document.querySelector('.person').dataset.user") == value)
    assert text(opened, ".person") != shown
    assert opened.run("document.querySelectorAll('.person .lists ol').length") == 4
    assert opened.run("document.querySelectorAll('.person .lists ol')[0].children.length") == 10


def test_one_answer_is_a_line_and_several_are_a_list(opened: Chromium, sittings: Path) -> None:
    assert text(opened, ".person .held-out").startswith("Held out: ")
    assert opened.run("document.querySelectorAll('.person .held-out li').length") == 0
    opened.open(sittings)
    person = gather(find_runs([sittings.parent / "runs"]), title="sittings")["datasets"][0]
    first = person["people"]["next-sitting"][0]
    right = [person["titles"][place] for place in first["test"]]
    assert len(right) > 1
    shown = opened.run("[...document.querySelectorAll('.person .held-out li')].map((one) => one.textContent)")
    assert shown == right
    assert text(opened, ".person .held-out").startswith(f"Held out ({len(right)}):")
    assert opened.run("document.documentElement.scrollWidth <= innerWidth")
    assert "undefined" not in opened.run("document.getElementById('main').innerHTML")


def test_names_of_items_are_text(opened: Chromium) -> None:
    assert HOSTILE in opened.run("document.getElementById('main').textContent")
    assert opened.run("document.querySelectorAll('main script').length") == 0


def test_a_number_tells_its_protocol_seeds_and_settings(opened: Chromium) -> None:
    cell = '[data-method="fedmf (learning_rate=0.01)"][data-protocol=honest][data-metric="HR@10"]'
    opened.hover(cell)
    tooltip = text(opened, "#tooltip")
    assert not opened.run("document.getElementById('tooltip').hidden")
    for part in ("protocol honest", "of all items", "2 seeds (0, 1)", "95 % interval", "embedding_size 4", "of 4"):
        assert part in tooltip
    opened.run(f"document.querySelector({json.dumps(cell)}).focus()")
    opened.press("Escape")
    assert opened.run("document.getElementById('tooltip').hidden")


def test_curves_are_read_by_keyboard(opened: Chromium) -> None:
    area = f"{figure(opened, 'Convergence')} [role=slider]"
    opened.run(f"document.querySelector('{area}').focus()")
    opened.press("Home")
    opened.press("ArrowRight")
    assert opened.run(f"document.querySelector('{area}').getAttribute('aria-valuenow')") == "2"
    assert text(opened, "#tooltip").startswith("round 2")


def test_a_log_scale_and_the_table_behind_a_chart(opened: Chromium) -> None:
    place = figure(opened, "Convergence")
    before = drawn(opened, "Convergence")
    opened.click(f"{place} input[name=log]")
    assert drawn(opened, "Convergence") != before
    opened.click(f"{place} summary")
    opened.until(lambda: opened.run(f"document.querySelectorAll('{place} table tbody tr').length") == 4)
    assert "round" in text(opened, f"{place} table thead")


def test_light_and_dark_follow_the_reader_and_the_button(browser: Chromium, page: Path) -> None:
    def background() -> Any:
        return browser.run("getComputedStyle(document.body).backgroundColor")

    browser.size(*DESKTOP)
    browser.open(page)
    light = background()
    browser.size(*DESKTOP, dark=True)
    browser.open(page)
    assert background() != light
    browser.click("#theme")
    assert background() == light


def test_it_prints_without_controls_and_in_light_colours(browser: Chromium, page: Path) -> None:
    browser.size(*DESKTOP, dark=True)
    browser.open(page)
    browser.call("Emulation.setEmulatedMedia", media="print")
    assert browser.run("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert browser.run("getComputedStyle(document.getElementById('bar')).display") == "none"
    browser.call("Emulation.setEmulatedMedia", media="")


def test_everything_that_can_be_used_has_a_name(opened: Chromium) -> None:
    unnamed = opened.run(
        "[...document.querySelectorAll('button, select, input, svg[role=img], [role=slider], [role=region]')]"
        ".filter((one) => !(one.ariaLabel || (one.closest('label') ?? one).textContent.trim()))"
        ".map((one) => one.outerHTML)"
    )
    assert unnamed == []
    levels = opened.run("[...document.querySelectorAll('h1, h2, h3, h4')].map((one) => Number(one.tagName[1]))")
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_a_verdict_comes_first_and_the_rest_unfolds(
    browser: Chromium, sittings: Path, tmp_path: Path, size: tuple[int, int]
) -> None:
    path = tmp_path / "verdict.html"
    sentences = ("Of 100 people, 18 are served.", "Take <b>fedease</b>.")
    runs = find_runs([sittings.parent / "runs"])
    path.write_text(render(gather(runs, title="sittings", verdict=sentences)), encoding="utf-8")
    browser.requests.clear()
    browser.size(*size, phone=size == PHONE)
    browser.open(path)
    assert browser.run("document.querySelector('#main > section').id") == "verdict"
    assert browser.run("[...document.querySelectorAll('#verdict p')].map((one) => one.textContent)") == list(sentences)
    tall = browser.run("document.documentElement.scrollHeight")
    assert browser.run("document.getElementById('bar').hidden && !document.getElementById('rest').open")
    browser.run("document.getElementById('rest').open = true")
    drawn = "!document.getElementById('bar').hidden && document.querySelectorAll('#rest svg.chart').length > 0"
    browser.until(lambda: browser.run(drawn))
    assert browser.run("document.documentElement.scrollHeight") > 2 * tall
    assert {url for url in browser.requests if not url.startswith("data:")} == {path.as_uri()}
    browser.requests.clear()
