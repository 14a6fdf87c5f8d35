"""The client's module in a real browser: numbers as in Python, home in IndexedDB, a contribution and its way back."""

from __future__ import annotations

import functools
import http.server
import json
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("cryptography.hazmat.primitives.hpke")
pytest.importorskip("starlette")

from ownview.base.errors import MessageError
from ownview.one_message.numbers import summand
from ownview.one_message.sender import Contributor
from ownview.one_message.sender import simulated as summed_here
from tests.browser.chromium import Chromium, require_chromium
from tests.one_message.federations import PACKAGE, Federation, simulated

pytestmark = pytest.mark.browser
ITEMS = [f"item {number}" for number in range(50)]
HISTORIES = [["item 4", "item 9", "item 4", "item 30"], ["item 1", "unknown", "item 2"], ["item 7"]]


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Nothing."""


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Of the package, and of an empty page beside it, on loopback."""
    folder = tmp_path_factory.mktemp("site")
    (folder / "page.html").write_text(
        "<!doctype html><title>client</title><link rel=icon href=data:,>", encoding="utf-8"
    )
    for file in PACKAGE.glob("*.js"):
        (folder / file.name).write_bytes(file.read_bytes())
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_Quiet, directory=str(folder))) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.fixture
def browser(address: str) -> Iterator[Chromium]:
    with require_chromium() as started:
        started.call("Page.navigate", url=f"{address}/page.html")
        started.until(lambda: started.run("document.title === 'client' && document.readyState === 'complete'"))
        yield started


def test_a_tab_contributes_and_takes_back(browser: Chromium, tmp_path: Path) -> None:
    people = [{"history": history, "fate": "plain", "later": []} for history in HISTORIES]
    with Federation(tmp_path, ITEMS, fewest=4) as servers:
        begin = f"""(async () => {{
            globalThis.client = await import("/index.js");
            globalThis.home = await client.Home.open();
            globalThis.contributor = await client.Contributor.join({json.dumps(servers.terms.urls["a"])},
                {{ expected: "{servers.terms.name.hex()}" }});
            await home.keepHistory({json.dumps(HISTORIES[0])});
            return [...contributor.numbers(await home.history())];
        }})()"""
        numbers = browser.run(begin)
        assert np.array_equal(numbers, summand(servers.terms, [4, 9, 4, 30]))
        join = f"client.Contributor.join({json.dumps(servers.terms.urls['b'])}, {{ expected: '00' }})"
        assert "not the one that this page names" in browser.run(f"{join}.then(() => '', String)")
        browser.run(f"""(async () => {{
            for (const history of {json.dumps([*HISTORIES, ["item 3", "item 8"]])}) {{
                const ready = await contributor.prepare(history);
                await home.keepReceipt(ready.receipt);
                await home.keepReceipt(await contributor.send(ready));
            }}
        }})()""")
        servers.until_counted(4)
        assert browser.run("contributor.status().then((told) => told.contributions)") == 4
        browser.run(f"""(async () => {{
            const receipts = await home.receipts();
            const last = receipts.find((one) => one.history.includes("item 8"));
            await contributor.send(await contributor.prepareTakeOut(last));
            await home.dropReceipt(last);
            const more = {json.dumps([HISTORIES[2]] * 4)};
            for (const history of more) await contributor.send(await contributor.prepare(history));
        }})()""")
        servers.until_counted(7)
        assert len(browser.run("home.receipts()")) == 3
    more = [{"history": HISTORIES[2], "fate": "plain", "later": []}] * 4
    assert np.array_equal(servers.total(), simulated(servers.terms, [*people, *more])[0])
    assert browser.complaints == []
    asked = {url.partition("/v1/")[0] for url in browser.requests if "/v1/" in url}
    assert asked == {*servers.terms.urls.values()}


def test_python_places_node_and_a_tab_in_one_federation(browser: Chromium, tmp_path: Path) -> None:
    """One agreement with FedNext's numbers and a proof of work: simulated here, and sent by all three kinds."""
    places = [["item 1", "item 2", "item 3"], ["item 40", "item 2"], ["item 5", "item 6", "item 7", "item 1"]]
    nodes = [{"history": [f"item {k}", "item 9", "item 4"], "fate": "plain", "later": []} for k in range(10, 14)]
    with Federation(tmp_path, ITEMS, "fednext", fewest=7, work=8) as servers:
        contributor = Contributor(servers.terms)
        receipts = [contributor.add(one) for one in places]
        contributor.change(receipts[1], places[1], ["item 8", "item 40"])
        contributor.take_out(receipts[2], places[2])
        with pytest.raises(MessageError, match="taken out already"):
            contributor.take_out(receipts[2], places[2])
        assert '"failed":[]' in servers.contributors(nodes).communicate(timeout=120)[0]
        browser.run(f"""(async () => {{
            const {{ Contributor }} = await import("/index.js");
            const tab = await Contributor.join({json.dumps(servers.terms.urls["b"])});
            await tab.send(await tab.prepare({json.dumps(HISTORIES[0])}));
        }})()""")
        servers.until_counted(7)
        histories = [places[0], ["item 8", "item 40"], HISTORIES[0]]
        histories += [one["history"] for one in nodes]  # type: ignore[misc]
    assert np.array_equal(servers.total(), summed_here(servers.terms, histories))
    assert browser.complaints == []
