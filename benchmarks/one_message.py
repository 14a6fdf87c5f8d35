"""What one message costs: bytes, time in a tab, and CPU of the two servers for a contribution.

    python -m benchmarks.one_message NAME ...     # some of the cases below; results/one_message.json
    python -m benchmarks.one_message --page       # the record into docs/one-message.md

Histories have 80 different items. All times are CPU, so that other work on the machine hardly matters. Of the client:
the processes of a tab of headless Chromium, and Node, for numbers, shares and seals. Of the servers: a reads a
message and makes its stream when the batch is opened; b reads and keeps a message, adds it when it is confirmed, and
opens; with noise where there is a budget. HTTP is not in it, but for `rate`: there both servers run, and take messages
of one sender over loopback one after the other.
"""

from __future__ import annotations

import argparse
import functools
import http.client
import http.server
import json
import os
import platform
import random
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from tests.browser.chromium import Chromium, find_chromium
from tests.one_message.federations import Federation

from ownview.one_message.budget import ShareBudget
from ownview.one_message.envelope import Operation, Receipt, opened, sealed
from ownview.one_message.numbers import summand
from ownview.one_message.store import ShareStore
from ownview.one_message.terms import SHARES, Share, Terms, agreed

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "ownview" / "one_message" / "client"
RESULTS, PAGE = ROOT / "results" / "one_message.json", ROOT / "docs" / "one-message.md"
BEGIN, END = "<!-- begin: benchmarks/one_message.py -->\n", "<!-- end: benchmarks/one_message.py -->"
CASES: dict[str, tuple[str, str, int, bool, int, int]] = {
    "private-364": ("FedEASE, private form: 364 items are kept", "fedease", 364, True, 0, 20),
    "full-2000": ("FedEASE in full", "fedease", 2000, False, 0, 6),
    "private-2000": ("FedEASE under a budget, all items", "fedease", 2000, True, 0, 4),
    "next-364": ("FedNext, 364 items are kept", "fednext", 364, True, 0, 10),
    "next-rank-2000": ("FedNext by rank 32", "fednext", 2000, False, 32, 10),
    "next-rank-10000": ("FedNext by rank 32", "fednext", 10_000, False, 32, 4),
    "full-10000": ("FedEASE in full", "fedease", 10_000, False, 0, 2),
    "private-10000": ("FedEASE under a budget, all items", "fedease", 10_000, True, 0, 2),
}
"""What, method, items, under a budget, rank, contributions that are measured."""
RATE = "rate"
CLIENT = """
const { readAgreement, Contributor } = await import(process.argv[1] + "/index.js");
const { readFileSync } = await import("node:fs");
const contributor = new Contributor(await readAgreement(readFileSync(process.argv[2])));
const history = JSON.parse(process.argv[3]), count = Number(process.argv[4]);
await contributor.prepare(history);
const before = process.cpuUsage();
for (let k = 0; k < count; k += 1) await contributor.prepare(history);
const used = process.cpuUsage(before);
console.log((used.user + used.system) / 1e3 / count);
"""
IN_A_TAB = """(async () => {
    const { readAgreement, Contributor } = await import("/index.js");
    const content = new Uint8Array(await (await fetch("/agreement.json")).arrayBuffer());
    const contributor = new Contributor(await readAgreement(content)), history = HISTORY;
    globalThis.prepared = async () => { for (let k = 0; k < COUNT; k += 1) await contributor.prepare(history); };
    await prepared();
})()"""


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Nothing."""


@contextmanager
def _site(folder: Path) -> Iterator[str]:
    handler = functools.partial(_Quiet, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def cpu(work: Callable[[], Any]) -> tuple[float, Any]:
    """Milliseconds of CPU, and what came out."""
    begun = time.process_time()
    made = work()
    return 1e3 * (time.process_time() - begun), made


def _terms(name: str, keys: dict[Share, bytes]) -> Terms:
    _, method, items, private, rank, count = CASES[name]
    vectors = np.random.default_rng(0).normal(size=(items, rank)) if rank else None
    budget = ShareBudget.planned(1.0, 1e-5) if private else None
    urls: dict[Share, str] = {"a": "http://a", "b": "http://b"}
    return agreed(method, [str(k) for k in range(items)], urls, keys, fewest=count, budget=budget, vectors=vectors)


def _of_client(terms: Terms, folder: Path, history: list[int], count: int) -> dict[str, float]:
    for file in PACKAGE.glob("*.js"):
        (folder / file.name).write_bytes(file.read_bytes())
    (folder / "agreement.json").write_bytes(terms.content)
    (folder / "page.html").write_text("<!doctype html><title>tab</title><link rel=icon href=data:,>", encoding="utf-8")
    given = [str(item) for item in history]
    line = ["node", "--input-type=module", "-e", CLIENT, str(PACKAGE), str(folder / "agreement.json")]
    done = subprocess.run([*line, json.dumps(given), str(count)], capture_output=True, text=True, check=True)
    program = find_chromium()
    assert program is not None
    with _site(folder) as address, Chromium(program) as browser:
        browser.call("Page.navigate", url=f"{address}/page.html")
        browser.until(lambda: browser.run("document.title === 'tab' && document.readyState === 'complete'"))
        script = IN_A_TAB.replace("HISTORY", json.dumps(given)).replace("COUNT", str(count))
        browser.run(script)
        before = _of_tabs(browser)
        browser.run("prepared()")
        return {"node_cpu_ms": float(done.stdout), "tab_cpu_ms": 1e3 * (_of_tabs(browser) - before) / count}


def _of_tabs(browser: Chromium) -> float:
    """CPU-seconds of all processes that pages run in."""
    session, browser._session = browser._session, None  # a question to the browser, not to its page
    processes = browser.call("SystemInfo.getProcessInfo")["processInfo"]
    browser._session = session
    return float(sum(one["cpuTime"] for one in processes if one["type"] == "renderer"))


def measured(name: str) -> dict[str, Any]:
    """One case, means over its contributions."""
    what, _, items, _, _, count = CASES[name]
    private = {share: X25519PrivateKey.generate() for share in ("a", "b")}
    terms = _terms(name, {share: private[share].public_key().public_bytes_raw() for share in ("a", "b")})
    history = random.Random(0).sample(range(items), 80)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        client = _of_client(terms, folder, history, count)
        stores: dict[Share, ShareStore] = {share: ShareStore(folder / share, terms, share) for share in ("a", "b")}
        spent, numbers = {"a": 0.0, "b": 0.0}, summand(terms, history)
        sent: dict[Share, bytes] = {}
        for _ in range(count):
            sent, _ = sealed(terms, numbers, Receipt.new(), Operation.ADD)
            for share, store in stores.items():
                spent[share] += cpu(lambda: store.put(opened(terms, share, private[share], sent[share])))[0]  # noqa: B023
        spent["b"] += cpu(lambda: stores["b"].confirm(stores["a"].known))[0]
        names = [row[0] for row in stores["b"]._rows("SELECT name FROM messages ORDER BY name")]
        streamed, batch = cpu(lambda: stores["a"].batch(names).read_bytes())
        took, number = cpu(lambda: stores["b"].open(lambda _: batch))
        assert number == count
        for store in stores.values():
            store.close()
    of_servers = {"a_cpu_ms": (spent["a"] + streamed) / count, "b_cpu_ms": (spent["b"] + took) / count}
    return {
        "case": name, "what": what, "items": items, "bytes_a": len(sent["a"]), "bytes_b": len(sent["b"]),
        "contributions": count, **client, **of_servers, "load": os.getloadavg()[0],
    }  # fmt: skip


def _used(process: int) -> float:
    """CPU-seconds of a process so far."""
    fields = Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def rate(count: int = 300) -> dict[str, Any]:
    """Both servers as processes, with HTTP, 364 items."""
    items = [str(k) for k in range(364)]
    with tempfile.TemporaryDirectory() as place, Federation(Path(place), items, fewest=count) as servers:
        terms, history = servers.terms, random.Random(0).sample(range(364), 80)
        made = [sealed(terms, summand(terms, history), Receipt.new(), Operation.ADD)[0] for _ in range(count)]
        before = {share: _used(servers.processes[share].pid) for share in ("a", "b")}
        begun = time.monotonic()
        lines = {share: http.client.HTTPConnection("127.0.0.1", servers.ports[share], timeout=60) for share in SHARES}
        for one in made:
            for share, body in one.items():
                lines[share].request("POST", "/v1/messages", body)
                assert lines[share].getresponse().read() == b'{"new":true}'
        seconds = time.monotonic() - begun
        servers.until_counted(count)
        after = {share: _used(servers.processes[share].pid) for share in before}
    spent = {f"{share}_cpu_ms": 1e3 * (after[share] - before[share]) / count for share in before}
    return {"case": RATE, "items": 364, "contributions": count, "wall_s": seconds, **spent, "load": os.getloadavg()[0]}


def table(rows: list[dict[str, Any]]) -> str:
    """For the page."""
    lines = [
        "| what | items | bytes to a | bytes to b | a tab | Node | server a | server b |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for one in (row for name in CASES for row in rows if row["case"] == name):
        times = (_time(one[name]) for name in ("tab_cpu_ms", "node_cpu_ms", "a_cpu_ms", "b_cpu_ms"))
        lines.append(
            f"| {one['what']} | {one['items']:,} | {one['bytes_a']:,} | {one['bytes_b']:,} | {' | '.join(times)} |"
        )
    for one in (row for row in rows if row["case"] == RATE):
        together = one["a_cpu_ms"] + one["b_cpu_ms"]
        cores = together * 1e6 / 86_400_000
        servers = f"server a {one['a_cpu_ms']:.1f} ms and server b {one['b_cpu_ms']:.1f} ms of CPU a contribution"
        lines += [
            "",
            f"With HTTP, 364 items: {servers}; a million in 24 hours take {cores:.2f} of one core, together. One "
            f"sender that waits for answers brings {one['contributions'] / one['wall_s']:.0f} a second by the clock, "
            "where a million in 24 hours are 11.6.",
        ]
    return "\n".join(lines) + "\n"


def _time(milliseconds: float) -> str:
    return f"{milliseconds / 1e3:.1f} s" if milliseconds >= 1000 else f"{milliseconds:.3g} ms"


def page() -> None:
    """The record, between its marks."""
    rows = json.loads(RESULTS.read_text(encoding="utf-8"))["rows"]
    head, rest = PAGE.read_text(encoding="utf-8").split(BEGIN)
    PAGE.write_text(head + BEGIN + table(rows) + END + rest.split(END)[1], encoding="utf-8")


def main() -> None:
    """Measure some cases, each kept at once; or write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", choices=[[], *CASES, RATE])
    parser.add_argument("--page", action="store_true")
    given = parser.parse_args()
    for name in given.cases:
        row = rate() if name == RATE else measured(name)
        rows = json.loads(RESULTS.read_text(encoding="utf-8"))["rows"] if RESULTS.exists() else []
        rows = [one for one in rows if one["case"] != name] + [row]
        record = {"machine": platform.machine(), "cores": os.cpu_count(), "rows": rows}
        RESULTS.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
        print(json.dumps(row), flush=True)
    if given.page:
        page()


if __name__ == "__main__":
    main()
