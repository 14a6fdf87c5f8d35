"""The page for people in a real browser: it scores as Python does, asks nobody, and answers to mouse and keyboard."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from ownview import Experiment
from ownview.attacks.published_weights import dense
from ownview.data.datasets.catalog import load
from ownview.evaluation.named_protocols import on_everything
from ownview.pages.encoding import Encoded, encode
from ownview.pages.page import page as make_page
from ownview.pages.run_model import RunModel
from ownview.runs.run import Run, run
from ownview.seam.portable import Factors, Linear
from ownview.testing import small_world
from tests.browser.chromium import Chromium, require_chromium
from tests.pages.carried_titles import carried_shares
from tests.pages.conftest import run_of, runs_folder  # noqa: F401 - fixtures
from tests.pages.worlds import HOSTILE, KINDS, histories

pytestmark = pytest.mark.browser

WIDE, PHONE = (1300, 900), (390, 844)


@pytest.fixture(scope="module")
def browser() -> Iterator[Chromium]:
    with require_chromium() as started:
        yield started


@pytest.fixture(scope="module")
def page(run_of: Callable[[str], Run], tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:  # noqa: F811
    folder = tmp_path_factory.mktemp("pages")

    def one(kind: str) -> Path:
        path = folder / f"{kind}.html"
        if not path.is_file():
            make_page(run_of(kind), path, title="Titles <b>&</b> more", min_people=1)
        return path

    return one


@pytest.fixture(autouse=True)
def _nothing_to_complain(browser: Chromium) -> Iterator[None]:
    """Whatever a test did: no error in the console, and nothing was asked for but the page itself."""
    browser.complaints.clear()
    browser.requests.clear()
    yield
    assert browser.complaints == []
    assert all(url.startswith(("file:", "data:")) and ".html" in url for url in browser.requests)
    assert len({url.partition("#")[0] for url in browser.requests}) <= 1


def opened(browser: Chromium, path: Path, picks: list[str] | None = None, **how: Any) -> Chromium:
    browser.size(*(PHONE if how.get("phone") else WIDE), phone=bool(how.get("phone")), dark=bool(how.get("dark")))
    browser.open(path)
    ready = "document.querySelector('#search') && !document.querySelector('#search').disabled"
    browser.until(lambda: browser.run(ready))
    if picks is not None:
        browser.run(f"location.hash = 'picks=' + {json.dumps(picks)}.map(encodeURIComponent).join(',')")
        browser.until(lambda: len(texts(browser, "#picks li")) == len(picks))
    browser.settle()
    return browser


def texts(browser: Chromium, selector: str) -> list[str]:
    found = f"[...document.querySelectorAll({json.dumps(selector)})].map((one) => one.textContent)"
    return list(browser.run(found))


def typed(browser: Chromium, text: str) -> None:
    browser.run("document.querySelector('#search').focus()")
    browser.call("Input.insertText", text=text)
    browser.settle()


@pytest.mark.parametrize("kind", KINDS)
def test_scores_are_those_of_python(
    kind: str,
    browser: Chromium,
    page: Callable[[str], Path],
    run_of: Callable[[str], Run],  # noqa: F811
) -> None:
    opened(browser, page(kind))
    asked = histories(50)
    found = browser.run(f"Promise.all({json.dumps(asked)}.map((history) => scoresOf(history)))")
    form = encode(RunModel.of(run_of(kind)).form, 4_000_000).form
    expected = torch.stack([form.scores(torch.tensor(one)) for one in asked])
    torch.testing.assert_close(torch.tensor(found, dtype=torch.float64), expected, rtol=1e-6, atol=1e-9)
    alike = browser.run(f"Promise.all({json.dumps(asked)}.map((history) => scoresOf(history, false)))")
    if isinstance(form, Linear):
        form = replace(form, terms=tuple(replace(one, fades=math.inf, most=None) for one in form.terms))
    expected = torch.stack([form.scores(torch.tensor(one)) for one in asked])
    torch.testing.assert_close(torch.tensor(alike, dtype=torch.float64), expected, rtol=1e-6, atol=1e-9)


def test_a_person_searches_picks_and_is_told_why(browser: Chromium, page: Callable[[str], Path]) -> None:
    opened(browser, page("whole"))
    assert texts(browser, "h1") == ["Titles <b>&</b> more"]
    assert texts(browser, "#recommended li") == []
    typed(browser, "title 20")
    assert texts(browser, "#found li")[0] == "Title 20"
    browser.press("Enter")
    typed(browser, "title 2")
    browser.press("ArrowDown")
    active = browser.run("document.querySelector('#found [aria-selected=true]').textContent")
    browser.press("Enter")
    picked = [one.removesuffix("×") for one in texts(browser, "#picks li")]
    assert picked == ["Title 20", active]
    shown = texts(browser, "#recommended h3")
    assert len(shown) == 10
    assert not {*shown} & {*picked}
    why = texts(browser, "#recommended .why")
    assert all(one.startswith(("because you liked ", "from all your picks")) for one in why)
    assert any("Title 20" in one for one in why)
    assert browser.run("decodeURIComponent(location.hash)") == f"#picks={','.join(picked)}"


def test_accents_and_case_do_not_matter_in_a_search(browser: Chromium, page: Callable[[str], Path]) -> None:
    opened(browser, page("whole"))
    typed(browser, "ECOUTE strasse")
    assert texts(browser, "#found li") == ["No title has these words"]
    browser.press("Escape")
    typed(browser, "ECOUTE")
    assert len(texts(browser, "#found li")) == 1
    assert "Écoute" in texts(browser, "#found li")[0]


def test_picks_are_taken_away_and_added_from_the_list(browser: Chromium, page: Callable[[str], Path]) -> None:
    opened(browser, page("whole"), ["Title 20", "Title 26"])
    first = texts(browser, "#recommended h3")[0]
    browser.click("#recommended li .add")
    assert [one.removesuffix("×") for one in texts(browser, "#picks li")] == ["Title 20", "Title 26", first]
    browser.click("#picks li:first-child button")
    assert [one.removesuffix("×") for one in texts(browser, "#picks li")] == ["Title 26", first]
    assert "Title 20" not in browser.run("decodeURIComponent(location.hash)")
    browser.click("#more")
    assert len(texts(browser, "#recommended li")) == 20
    browser.click("#clear")
    assert texts(browser, "#picks li") == texts(browser, "#recommended li") == []
    browser.click("#start button")
    assert len(texts(browser, "#picks li")) == 1


def test_picks_count_alike_until_somebody_says_most_recent_first(
    browser: Chromium, page: Callable[[str], Path]
) -> None:
    """The order of clicks alone changed half of a list, and nobody had been asked."""
    alike, by_order = [], []
    for picks in (["Title 20", "Title 27"], ["Title 27", "Title 20"]):
        opened(browser, page("rows"), picks)
        alike.append({*texts(browser, "#recommended h3")})
        browser.click("#ordered")
        by_order.append({*texts(browser, "#recommended h3")})
    assert alike[0] == alike[1]
    assert by_order[0] != by_order[1]


def test_new_items_are_marked_and_a_switch_takes_them_away(browser: Chromium, tmp_path: Path) -> None:
    experiment = Experiment("fedease", protocol=on_everything(), rounds=1, device="cpu")
    fitted = run(experiment, data=small_world().data, out=tmp_path / "run")
    (tmp_path / "new.csv").write_text("item,title\nn1,number 12 once more\nn2,number 35 once more\n")
    made = make_page(fitted, tmp_path / "page.html", min_people=1, new_items=tmp_path / "new.csv")
    ids = [str(one) for one in fitted.loaded().split.data.items.tolist()]
    opened(browser, made.path, ids[:2])
    while not browser.run("document.querySelector('#more').hidden"):
        browser.click("#more")
    shown = texts(browser, "#recommended h3")
    assert sum(one.endswith("(new)") for one in shown) == 2
    browser.click("#offered")
    taken = texts(browser, "#recommended h3")
    assert [one for one in shown if not one.endswith("(new)")] == taken[: len(shown) - 2], "others take their places"
    assert not any(one.endswith("(new)") for one in taken)
    browser.click("#offered")
    assert texts(browser, "#recommended h3") == shown
    browser.requests.clear()  # a second page
    opened(browser, make_page(fitted, tmp_path / "plain.html", min_people=1).path, ids[:2])
    assert browser.run("getComputedStyle(document.querySelector('#fresh')).display") == "none"


def test_what_is_not_for_me_goes_and_comes_back(browser: Chromium, page: Callable[[str], Path]) -> None:
    opened(browser, page("whole"), ["Title 20", "Title 26"])
    before = texts(browser, "#recommended h3")
    browser.click("#recommended li:first-child .refuse")
    after = texts(browser, "#recommended h3")
    assert after[:9] == before[1:]
    assert before[0] in texts(browser, "#refused li")[0]
    browser.click("#refused button")
    assert texts(browser, "#recommended h3") == before


def test_the_title_itself_comes_first_in_a_search(browser: Chromium, page: Callable[[str], Path]) -> None:
    """ "Title 6" stands behind better known titles that begin with it, such as "Title 60", unless it is looked for."""
    opened(browser, page("whole"))
    for number in (5, 6):
        browser.press("Escape")
        typed(browser, f"title {number}")
        assert texts(browser, "#found li")[0] == f"Title {number}"
        assert len(texts(browser, "#found li")) > 1
        browser.press("Escape")


def test_vectors_say_what_lies_close(browser: Chromium, page: Callable[[str], Path]) -> None:
    opened(browser, page("ridge"), ["Title 20"])
    assert any(one == "close to Title 20" for one in texts(browser, "#recommended .why"))


def test_hostile_titles_are_text(browser: Chromium, page: Callable[[str], Path]) -> None:
    opened(browser, page("whole"), list(HOSTILE))
    assert len(texts(browser, "#picks li")) == len(HOSTILE)
    assert HOSTILE[0] in texts(browser, "#picks li")[0]
    assert browser.run("document.title") == "Titles <b>&</b> more"
    assert browser.run("document.querySelectorAll('main script, main b').length") == 0


def test_an_address_that_makes_no_sense_is_no_harm(browser: Chromium, page: Callable[[str], Path]) -> None:
    opened(browser, page("whole"))
    browser.run("location.hash = '#picks=%E0%A4%A,nobody,Title%2020'")
    browser.until(lambda: len(texts(browser, "#picks li")) == 1)


@pytest.mark.parametrize("phone", [False, True])
def test_it_fits_the_window_and_everything_has_a_name(
    phone: bool, browser: Chromium, page: Callable[[str], Path]
) -> None:
    opened(browser, page("whole"), ["Title 20", HOSTILE[0], "Title 26"], phone=phone)
    assert browser.run("innerWidth") == (PHONE if phone else WIDE)[0]
    assert browser.run("document.documentElement.scrollWidth <= innerWidth")
    unnamed = browser.run(
        "[...document.querySelectorAll('button, input')].filter((one) => !(one.ariaLabel || one.labels?.length || "
        "one.textContent.trim())).map((one) => one.outerHTML)"
    )
    assert unnamed == []
    assert browser.run("[...document.querySelectorAll('h1')].length") == 1
    small = "[...document.querySelectorAll('.chip button, .add')].filter((one) => one.offsetHeight < 30).length"
    assert browser.run(small) == 0


def test_light_dark_and_print(browser: Chromium, page: Callable[[str], Path]) -> None:
    def background() -> Any:
        return browser.run("getComputedStyle(document.body).backgroundColor")

    opened(browser, page("whole"), ["Title 20"])
    light = background()
    opened(browser, page("whole"), ["Title 20"], dark=True)
    assert background() != light
    browser.call("Emulation.setEmulatedMedia", media="print")
    assert background() == "rgb(255, 255, 255)"
    assert browser.run("getComputedStyle(document.querySelector('.search')).display") == "none"
    assert browser.run("document.querySelector('#recommended').offsetHeight") > 100
    browser.call("Emulation.setEmulatedMedia", media="")


def test_what_the_page_is_stands_in_it(browser: Chromium, page: Callable[[str], Path]) -> None:
    opened(browser, page("whole"))
    browser.click("#about summary")
    about = texts(browser, "#about")[0]
    for part in ("are those of the full model", "pairs of its items, once", "protocol honest", "HR@10"):
        assert part in about
    assert "undefined" not in about


def test_connections_are_forbidden(browser: Chromium, page: Callable[[str], Path]) -> None:
    opened(browser, page("whole"))
    tried = browser.run("fetch('https://127.0.0.1:9/').then(() => 'sent', (error) => error.name)")
    assert tried == "TypeError"
    assert [one for one in browser.complaints if "Content Security Policy" in one]
    browser.complaints.clear()
    assert not [url for url in browser.requests if url.startswith("http")]


@pytest.fixture(scope="module")
def books(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Linear]:
    """A page of 2,000 books with their text, and the form that it has, as Python reads it."""
    folder, kept = tmp_path_factory.mktemp("books"), []
    experiment = Experiment("fedease", protocol=on_everything(), rounds=1, settings={"text": 3.0}, device="cpu")
    fitted = run(experiment, out=folder / "run")

    def noted(form: Linear | Factors, room: int) -> Encoded:
        kept.append(encode(form, room))
        return kept[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ownview.pages.page.encode", noted)
        made = make_page(fitted, folder / "books.html")
    assert made.bytes < 5_000_000
    form = kept[-1].form
    assert isinstance(form, Linear)
    return made.path, form


TYPED = "The Hobbit retold for winter nights, by J.R.R. Tolkien"
TERMS = (
    "the", "hobbit", "retold", "for", "winter", "nights", "by", "tolkien", "creator:j.r.r. tolkien",
    "the hobbit", "hobbit retold", "retold for", "for winter", "winter nights", "nights by", "by tolkien",
)  # fmt: skip


def test_a_title_that_no_model_has_seen_is_typed_in_and_scored_as_python_does(
    browser: Chromium, books: tuple[Path, Linear]
) -> None:
    path, form = books
    opened(browser, path)
    about = load("goodbooks").about
    assert about is not None
    shares = torch.from_numpy(carried_shares(about, list(range(2000)), TERMS))
    for before in ([], [17, 4]):
        found = browser.run(f"scoresOf({json.dumps([*before, TYPED])})")
        expected = torch.zeros(2000, dtype=torch.float64)
        for term in form.terms:
            weights, counts = torch.from_numpy(dense(term)).double(), torch.exp(-torch.arange(3.0) / term.fades)
            rows = [shares @ weights, *(weights[item] for item in reversed(before))]
            expected += sum(count * row for count, row in zip(counts.tolist(), rows, strict=False))
        torch.testing.assert_close(torch.tensor(found, dtype=torch.float64), expected, rtol=1e-4, atol=1e-7)


def test_a_person_types_a_title_in_and_gets_recommendations(browser: Chromium, books: tuple[Path, Linear]) -> None:
    opened(browser, books[0])
    typed(browser, TYPED)
    assert texts(browser, "#found li") == [f"Not listed: add “{TYPED}” by its words"]
    browser.press("Enter")
    assert texts(browser, "#picks li") == [f"{TYPED}×"]
    shown = texts(browser, "#recommended h3")
    assert len(shown) == 10
    assert any("Tolkien" in one for one in shown), "who wrote it is one of its words"
    typed(browser, "Harry Potter")
    assert "Not listed" not in texts(browser, "#found li")[0], "listed titles come first"
    browser.press("Escape")
    address = browser.run("location.hash")
    opened(browser, books[0])
    browser.run(f"location.hash = {json.dumps(address)}")
    browser.until(lambda: texts(browser, "#picks li") == [f"{TYPED}×"])
    assert texts(browser, "#recommended h3") == shown, "the address keeps it"
    browser.press("Escape")
    typed(browser, "xyzzy qwrtz")
    assert texts(browser, "#found li") == ["No title has these words"]
    browser.press("Escape")
