"""A page that contributes, in a real browser: no request without leave; what is sent, counted and taken back."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

pytest.importorskip("cryptography.hazmat.primitives.hpke")
pytest.importorskip("starlette")

from ownview.base.items.item_table import ItemTable
from ownview.one_message.opened_sums import OpenedSums
from ownview.one_message.solving import solve
from ownview.pages.encoding import encode
from ownview.pages.page import page as make_page
from ownview.pages.run_model import RunModel
from ownview.pages.weights_file import publish
from ownview.runs.run import Run
from tests.browser.chromium import Chromium, require_chromium
from tests.one_message.federations import Federation, simulated
from tests.pages.conftest import run_of, runs_folder  # noqa: F401 - fixtures

pytestmark = pytest.mark.browser
PICKS = ["Title 20", "Title 26", "Title 32"]


@pytest.fixture
def browser() -> Iterator[Chromium]:
    with require_chromium() as started:
        yield started


@pytest.fixture
def servers(run_of: Callable[[str], Run], tmp_path: Path) -> Iterator[Federation]:  # noqa: F811
    items = [str(one) for one in RunModel.of(run_of("whole")).data.items.tolist()]
    with Federation(tmp_path, items, fewest=3) as started:
        yield started


@pytest.fixture
def page(run_of: Callable[[str], Run], servers: Federation, tmp_path: Path) -> Path:  # noqa: F811
    path = tmp_path / "page.html"
    make_page(run_of("whole"), path, min_people=1, contribute=servers.terms.urls["a"])
    return path


def opened(browser: Chromium, page: Path) -> None:
    browser.size(1300, 900)
    browser.open(page)
    waited(browser, "#contribute .facts dd")
    browser.run(f"location.hash = 'picks=' + {json.dumps(PICKS)}.map(encodeURIComponent).join(',')")
    browser.run("document.querySelector('#contribute').open = true")
    browser.until(lambda: browser.run("document.querySelectorAll('.square span').length") == len(PICKS) ** 2)


def waited(browser: Chromium, selector: str) -> None:
    def there() -> bool:
        try:
            return bool(browser.run(f"document.querySelector({json.dumps(selector)}) !== null"))
        except RuntimeError as error:
            if "navigated" not in str(error) and "context" not in str(error):  # the page loads itself again
                raise
            return False

    browser.until(there)


def text(browser: Chromium, selector: str) -> str:
    return str(browser.run(f"document.querySelector({json.dumps(selector)})?.textContent ?? ''"))


def pressed(browser: Chromium, name: str, says: str) -> None:
    waited(browser, f"#contribute button.{name}:not([disabled])")
    browser.click(f"#contribute button.{name}")
    browser.until(lambda: says in text(browser, "#contribute .said"))


def allowed(browser: Chromium) -> None:
    waited(browser, "#contribute button.allow")
    browser.click("#contribute button.allow")
    waited(browser, "#contribute button.forbid")


def loaded_again(browser: Chromium, name: str) -> None:
    browser.run("document.querySelector('#contribute').classList.add('before')")
    browser.call("Page.reload")
    waited(browser, f"#contribute:not(.before) button.{name}")


def to_servers(browser: Chromium, servers: Federation) -> list[str]:
    return [url for url in browser.requests if url.startswith(tuple(servers.terms.urls.values()))]


def receipts(browser: Chromium) -> list[dict[str, Any]]:
    script = """new Promise((resolve) => {
        const request = indexedDB.open("ownview {name}");
        request.onsuccess = () => {
            const all = request.result.transaction("receipts").objectStore("receipts").getAll();
            all.onsuccess = () => { request.result.close(); resolve(all.result); };
        };
    })"""
    name = json.loads(browser.run("document.getElementById('model').textContent"))["contribute"]["leave"].split()[1]
    return list(browser.run(script.replace("{name}", name)))


def test_a_press_counts_where_the_panel_is_drawn_anew_meanwhile(browser: Chromium, page: Path) -> None:
    opened(browser, page)
    waited(browser, "#contribute button.allow")
    x, y = browser.point("#contribute button.allow")
    where = {"x": x, "y": y, "button": "left", "clickCount": 1}
    browser.call("Input.dispatchMouseEvent", type="mousePressed", **where)
    browser.run("document.querySelector('.square').id = 'before', dispatchEvent(new Event('picked'))")
    browser.until(lambda: browser.run("document.querySelector('#before') === null"))
    browser.call("Input.dispatchMouseEvent", type="mouseReleased", **where)
    waited(browser, "#contribute button.forbid")


def test_without_leave_the_policy_refuses_every_request(browser: Chromium, page: Path, servers: Federation) -> None:
    opened(browser, page)
    assert to_servers(browser, servers) == []
    assert browser.complaints == []
    for url in (*servers.terms.urls.values(), "http://127.0.0.1:1"):
        tried = f"fetch('{url}/v1/status').then(() => 'reached', () => 'refused')"
        violated = f"""new Promise((resolve) => {{
            addEventListener("securitypolicyviolation", (event) => resolve(event.effectiveDirective), {{ once: true }});
            {tried};
        }})"""
        assert browser.run(violated) == "connect-src"
        assert browser.run(tried) == "refused"
        source = f"{tried}.then((said) => postMessage(said))"
        in_worker = f"""new Promise((resolve) => {{
            const worker = new Worker(URL.createObjectURL(new Blob([{json.dumps(source)}])));
            worker.onmessage = (event) => resolve(event.data);
        }})"""
        assert browser.run(in_worker) == "refused"
    assert servers.status("b")["waiting"] == 0
    facts = text(browser, "#contribute .facts")
    for said in (
        *servers.terms.urls.values(),
        "both together can",
        "3 contributions or more",
        "without noise",
        "0 people",
    ):
        assert said in facts


def test_with_leave_only_the_two_servers_are_reached(browser: Chromium, page: Path, servers: Federation) -> None:
    opened(browser, page)
    allowed(browser)
    assert browser.run("fetch('http://127.0.0.1:1/').then(() => 'reached', (error) => 'refused')") == "refused"
    assert any("connect-src" in one for one in browser.complaints)
    browser.complaints.clear()
    assert {*to_servers(browser, servers)} == {f"{servers.terms.urls['b']}/v1/status"}
    browser.click("#contribute button.forbid")
    waited(browser, "#contribute button.allow")
    asked = f"fetch('{servers.terms.urls['a']}/v1/status').then(() => 'reached', () => 'refused')"
    assert browser.run(asked) == "refused"


def test_leave_outlasts_a_lost_session_storage_and_ends_when_it_is_taken_back(
    browser: Chromium, page: Path, servers: Federation
) -> None:
    """Of files a browser under load was seen to lose it between a press on "Allow" and the page that follows."""
    opened(browser, page)
    allowed(browser)
    browser.run("sessionStorage.clear()")
    loaded_again(browser, "forbid")
    browser.click("#contribute button.forbid")
    waited(browser, "#contribute button.allow")
    loaded_again(browser, "allow")
    asked = f"fetch('{servers.terms.urls['a']}/v1/status').then(() => 'reached', () => 'refused')"
    assert browser.run(asked) == "refused"


def newer_with_text(
    browser: Chromium, servers: Federation, opened_sum: tuple[Any, int], asked: list[list[int]], there: list[list[int]]
) -> torch.Tensor:
    """Publish weights with text beside the sums; the page's scores become Python's, which are returned [H, m].

    Args:
        browser: at the page.
        servers: that the page contributes to.
        opened_sum: what they opened, and how many contributed.
        asked: histories by the agreement's items.
        there: the same by the items of the weights.
    """
    kinds = tuple(("poems", "novels", "plays")[place % 3] for place in range(len(servers.terms.items)))
    about, chosen = ItemTable({"category": kinds}), {"regularization": 5.0, "text": 3.0}
    store = OpenedSums(servers.folder / "b", servers.terms, "b")
    publish(store, chosen, 1, 4_000_000, about)
    store.close()
    form = encode(solve(servers.terms, opened_sum[0], 1, opened_sum[1], chosen, 1, about).form, 4_000_000).form
    wanted = torch.stack([form.scores(torch.tensor(one)) for one in there])
    pressed(browser, "newer", "3 contributions")
    scores = f"Promise.all({json.dumps(asked)}.map((one) => scoresOf(one)))"
    browser.until(lambda: torch.allclose(torch.tensor(browser.run(scores)).double(), wanted, rtol=1e-6, atol=1e-9))
    browser.until(lambda: browser.run("!document.querySelector('#contribute .buttons button.back').disabled"))
    return wanted


def test_a_person_sends_once_changes_takes_back_and_gets_newer_lists(
    browser: Chromium, page: Path, servers: Federation, tmp_path: Path
) -> None:
    opened(browser, page)
    allowed(browser)
    pressed(browser, "send", "Sent.")
    assert servers.status("a")["waiting"] == servers.status("b")["waiting"] == 1
    assert [(one["history"], one["pending"]) for one in receipts(browser)] == [(PICKS, None)]
    browser.until(lambda: "Title 26" in text(browser, "#contribute .sent"))
    later = [*PICKS, "Title 38"]
    browser.run(f"location.hash = 'picks=' + {json.dumps(later)}.map(encodeURIComponent).join(',')")
    browser.until(lambda: browser.run("document.querySelectorAll('.square span').length") == len(later) ** 2)
    pressed(browser, "change", "Changed")
    others = [{"history": ["Title 20", f"Title {item}"], "fate": "plain", "later": []} for item in (44, 50)]
    assert '"failed":[]' in servers.contributors(others).communicate(timeout=120)[0]
    servers.until_counted(3)
    mine = {"history": later, "fate": "plain", "later": []}
    expected, count = simulated(servers.terms, [mine, *others])
    store = OpenedSums(servers.folder / "b", servers.terms, "b")
    assert np.array_equal(store.total(), expected)
    publish(store, {"regularization": 5.0}, 1, 4_000_000)
    store.close()
    before = browser.run("[...document.querySelectorAll('#recommended h3')].map((one) => one.textContent)")
    pressed(browser, "newer", "3 contributions")
    solved = solve(servers.terms, expected, 1, count, {"regularization": 5.0}, 1)
    form = encode(solved.form, 4_000_000).form
    asked = [[servers.terms.place[one] for one in later], [servers.terms.place["Title 44"]]]
    found = torch.tensor(browser.run(f"Promise.all({json.dumps(asked)}.map((one) => scoresOf(one)))"))
    there = [[solved.ids.index(servers.terms.items[place]) for place in one] for one in asked]
    wanted = torch.stack([form.scores(torch.tensor(one)) for one in there])
    torch.testing.assert_close(found.double(), wanted, rtol=1e-6, atol=1e-9)
    after = browser.run("[...document.querySelectorAll('#recommended h3')].map((one) => one.textContent)")
    assert after != before
    assert {*after[:2]} == {"Title 44", "Title 50"}
    fetched = [url for url in to_servers(browser, servers) if "/v1/weights/" in url]
    pressed(browser, "newer", "3 contributions")
    assert len(fetched) == 1
    by_text = newer_with_text(browser, servers, (expected, count), asked, there)
    assert not torch.allclose(by_text, wanted)
    pressed(browser, "back", "Taken back")
    assert receipts(browser)[0]["out"]
    more = [{"history": ["Title 8"], "fate": "plain", "later": []}] * 3
    assert '"failed":[]' in servers.contributors(more).communicate(timeout=120)[0]
    servers.until_counted(5)
    store = OpenedSums(servers.folder / "b", servers.terms, "b")
    assert np.array_equal(store.total(), simulated(servers.terms, [*others, *more])[0])
    store.close()
    assert browser.complaints == []


def test_a_tab_that_is_closed_in_mid_send_finishes_what_it_began(
    browser: Chromium, page: Path, servers: Federation
) -> None:
    opened(browser, page)
    allowed(browser)
    servers.kill("b")
    browser.click("#contribute button.send")
    browser.until(lambda: servers.status("a")["waiting"] == 1)
    browser.open(page)  # the first tab's worker is gone in the middle of its attempts
    servers.start("b")
    waited(browser, "#contribute button.finish")
    assert receipts(browser)[0]["pending"]["operation"] == 1
    pressed(browser, "finish", "Finished")
    others = [{"history": ["Title 20", "Title 44"], "fate": "plain", "later": []}] * 2
    assert '"failed":[]' in servers.contributors(others).communicate(timeout=120)[0]
    servers.until_counted(3)
    servers.__exit__()
    mine = {"history": PICKS, "fate": "plain", "later": []}
    assert np.array_equal(servers.total(), simulated(servers.terms, [mine, *others])[0])
    servers.start("a")
    servers.start("b")


GOODREADS = """Book Id,Title,Author,Exclusive Shelf,Date Read,Date Added
1,"Title 20 (A Series, #1)",Somebody,read,2021/03/04,2020/01/01
2,The Title 26,Another,read,,2020/05/05
3,Title 32,Third,to-read,,2020/05/06
4,"Unheard, of",Fourth,read,2022/01/01,2022/01/01
"""


def test_an_export_is_read_at_home_and_what_matched_is_shown(
    browser: Chromium, page: Path, servers: Federation
) -> None:
    browser.size(1300, 900)
    browser.open(page)
    waited(browser, "#contribute .facts dd")
    browser.run("document.querySelector('#contribute').open = true")
    browser.run(f"""(() => {{
        const held = new DataTransfer(), input = document.querySelector("#import");
        held.items.add(new File([{json.dumps(GOODREADS)}], "goodreads_library_export.csv"));
        input.files = held.files;
        input.dispatchEvent(new Event("change"));
    }})()""")
    browser.until(lambda: "From Goodreads: 2 of 3 titles" in text(browser, "#contribute .said"))
    assert "Unheard, of" in text(browser, "#contribute .said")
    assert browser.run("decodeURIComponent(location.hash)") == "#picks=Title 26,Title 20"
    browser.run("document.querySelector('#keep').click()")
    browser.settle()
    browser.until(lambda: not browser.run("document.querySelector('#contribute button.allow').disabled"))
    browser.call("Page.navigate", url="about:blank")
    browser.open(page)
    browser.until(lambda: browser.run("decodeURIComponent(location.hash)") == "#picks=Title 26,Title 20")
    assert to_servers(browser, servers) == []
    assert browser.complaints == []
