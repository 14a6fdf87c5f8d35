"""A thousand contributors with goodbooks' histories, twenty of them people with a browser, while servers are killed."""

from __future__ import annotations

import json
import random
import shutil
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

pytest.importorskip("cryptography.hazmat.primitives.hpke")
pytest.importorskip("starlette")

from ownview.data.datasets.catalog import load
from ownview.one_message.opened_sums import OpenedSums
from ownview.one_message.solving import solve
from ownview.pages.encoding import encode
from ownview.pages.page import page as make_page
from ownview.pages.weights_file import publish
from ownview.runs.experiment import Experiment
from ownview.runs.run import run
from tests.browser.chromium import Chromium, require_chromium
from tests.browser.test_contribute import allowed, pressed, text, waited
from tests.one_message.federations import Federation, simulated

pytestmark = [
    pytest.mark.slow, pytest.mark.browser, pytest.mark.skipif(shutil.which("node") is None, reason="needs node"),
]  # fmt: skip
POPULAR, KILLS = 364, 50
NODE = {"closed": 98, "twice": 50, "back": 28, "update": 18, "plain": 786}
TABS = {"closed": 2, "back": 2, "update": 2, "plain": 14}
"""Of a thousand: 10 % end in mid-send, 5 % send twice, 3 % take back, 2 % update."""
SETTINGS = {"regularization": 50.0}


def _people(said: list[list[str]], fates: dict[str, int], chance: random.Random) -> list[dict[str, Any]]:
    drawn = [fate for fate, count in fates.items() for _ in range(count)]
    chance.shuffle(drawn)
    pairs = zip(said, drawn, strict=True)
    return [{"history": one, "fate": fate, "later": one[len(one) // 3 :]} for one, fate in pairs]


class Killing(threading.Thread):
    """Kills servers at random while contributors work; the one that a test needs dead stays so."""

    def __init__(self, servers: Federation) -> None:
        super().__init__()
        self.servers, self.guard, self.done, self.ended = servers, threading.Lock(), 0, threading.Event()

    def run(self) -> None:
        chance = random.Random(6)
        while self.done < KILLS and not self.ended.wait(2 * chance.random()):
            with self.guard:
                share: Any = chance.choice(("a", "b"))
                self.servers.kill(share)
                self.servers.start(share)
                self.done += 1


def _picked(browser: Chromium, page: Path, history: list[str]) -> None:
    browser.call("Page.navigate", url=f"{page.resolve().as_uri()}#picks={','.join(history)}")
    waited(browser, "#contribute .facts dd")
    browser.run("document.querySelector('#contribute').open = true")
    _drawn(browser, history)


def _drawn(browser: Chromium, history: list[str]) -> None:
    count = "document.querySelectorAll('.square span').length"
    browser.until(lambda: browser.run(count) == len({*history}) ** 2)


def _tab(browser: Chromium, page: Path, one: dict[str, Any], killing: Killing) -> None:
    """One person with a browser; a press that met a dead server is pressed again."""
    servers, fate = killing.servers, one["fate"]
    if fate == "closed":
        with killing.guard:
            with browser.context():
                _joined(browser, page, one["history"])
                servers.kill("b")
                before = servers.status("a")["waiting"]
                browser.click("#contribute button.send")
                browser.until(lambda: servers.status("a")["waiting"] > before)
            servers.start("b")
        return
    with browser.context():
        _joined(browser, page, one["history"])
        _until_sent(browser, "send", "Sent.")
        if fate == "back":
            _until_sent(browser, "back", "Taken back")
        if fate == "update":
            browser.run(f"location.hash = 'picks={','.join(one['later'])}'")
            _drawn(browser, one["later"])
            _until_sent(browser, "change", "Changed")


def _joined(browser: Chromium, page: Path, history: list[str]) -> None:
    browser.size(1200, 900)
    _picked(browser, page, history)
    allowed(browser)
    _drawn(browser, history)
    waited(browser, "#contribute button.send:not([disabled])")


def _until_sent(browser: Chromium, name: str, says: str) -> None:
    finished = ("Finished", says)
    while not any(one in text(browser, "#contribute .said") for one in finished):
        there = f"document.querySelector('#contribute button.{name}:not([disabled])')"
        again = "document.querySelector('#contribute button.finish:not([disabled])')"
        if browser.run(f"{again} !== null"):
            browser.click("#contribute button.finish")
        elif browser.run(f"{there} !== null"):
            browser.click(f"#contribute button.{name}")
        time.sleep(0.2)
    waited(browser, "#contribute button.newer:not([disabled])")
    browser.run("document.querySelector('#contribute .said').replaceChildren()")


def test_the_opened_sum_is_the_simulations_and_lists_are_pythons(tmp_path: Path) -> None:
    data, chance = load("goodbooks"), random.Random(4)
    kept = np.argsort(-np.bincount(data.item), kind="stable")[:POPULAR]
    items, mine = [str(data.items[item]) for item in kept], {*kept.tolist()}
    every = [[one for one in data.item[data.of(user)].tolist() if one in mine] for user in range(data.num_users)]
    said = [[str(data.items[item]) for item in one] for one in every if len(one) > 2]
    rows = [f"{user},{item},{k}" for user, one in enumerate(said) for k, item in enumerate(one)]
    (tmp_path / "books.csv").write_text("user,item,timestamp\n" + "\n".join(rows) + "\n", encoding="utf-8")
    model = run(Experiment(method="fedease", data=str(tmp_path / "books.csv"), rounds=1), out=tmp_path / "model")
    many, few = sum(NODE.values()), sum(TABS.values())
    tabs = _people([one[-25:] for one in said[many : many + few]], TABS, chance)
    people = _people(said[:many], NODE, chance)
    adding = many + few - NODE["closed"] - TABS["closed"]
    # Who takes back in the same batch does not count for it, so that as many more fill it.
    last = [{"history": said[0], "fate": "plain", "later": []}] * (1 + NODE["back"] + TABS["back"])
    (tmp_path / "servers").mkdir()
    with Federation(tmp_path / "servers", items, fewest=adding + 1) as servers, require_chromium() as browser:
        page = tmp_path / "page.html"
        make_page(model, page, min_people=1, contribute=servers.terms.urls["a"])
        working, killing = servers.contributors(people, retries=1000), Killing(servers)
        killing.start()
        for one in tabs:
            _tab(browser, page, one, killing)
        out = working.communicate(timeout=1200)[0]
        killing.ended.set()
        killing.join()
        assert '"failed":[]' in out
        assert '"failed":[]' in servers.contributors(last).communicate(timeout=300)[0]
        expected, count = simulated(servers.terms, [*people, *tabs, *last])
        servers.until_counted(count)
        store = OpenedSums(tmp_path / "servers" / "b", servers.terms, "b")
        assert np.array_equal(store.total(), expected)
        publish(store, SETTINGS, 1, 4_000_000)
        store.close()
        solved = solve(servers.terms, expected, 1, count, SETTINGS, 1)
        form, there = encode(solved.form, 4_000_000).form, {item: place for place, item in enumerate(solved.ids)}
        asked = [[there[item] for item in one if item in there][-10:] for one in said[:50]]
        lists = [_list(form.scores(torch.tensor(one)), one) for one in asked]
        with browser.context():
            _picked(browser, page, [solved.ids[place] for place in asked[0]])
            allowed(browser)
            pressed(browser, "newer", f"{count} contributions")
            places = {item: place for place, item in enumerate(_ids(browser))}
            here = [[places[solved.ids[place]] for place in one] for one in asked]
            found = browser.run(f"Promise.all({json.dumps(here)}.map((one) => scoresOf(one)))")
    in_page = [torch.tensor(one, dtype=torch.float64) for one in found]
    assert [_list(scores, given) for scores, given in zip(in_page, asked, strict=True)] == lists
    print(f"{count:,} of {many + few + len(last):,} count after {killing.done} kills, {few} of them tabs")  # noqa: T201 - with -s


def _ids(browser: Chromium) -> list[str]:
    return list(json.loads(browser.run("document.getElementById('model').textContent"))["ids"])


def _list(scores: torch.Tensor, history: list[int]) -> list[int]:
    """The ten best places, of which none is in the history."""
    scores[history] = -torch.inf
    return [int(one) for one in scores.argsort(descending=True, stable=True)[:10]]
