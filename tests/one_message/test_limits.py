"""Limits of a server of shares before it believes anything: memory, addresses, agreements; and what ends it."""

from __future__ import annotations

import asyncio
import json
import math
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("cryptography.hazmat.primitives.hpke")
pytest.importorskip("starlette")

import uvicorn
from starlette.requests import Request

from ownview.base.errors import DataError, MessageError
from ownview.base.http.listening import listening
from ownview.one_message import app as apps
from ownview.one_message import solving
from ownview.one_message.app import ShareServer
from ownview.one_message.budget import ShareBudget
from ownview.one_message.envelope import NAME, Operation, Receipt, sealed
from ownview.one_message.numbers import summand
from ownview.one_message.opened_sums import ENTRY
from ownview.one_message.senders import Senders, TooManyError
from ownview.one_message.serving import _both
from ownview.one_message.store import ASKED_TOGETHER, NO_ROOM
from ownview.one_message.terms import SHARES, Share, Terms
from tests.asgi import asked, posted
from tests.one_message.store_pairs import GROUPING, StorePair

ITEMS = 6


def _server(pair: StorePair, share: Share) -> ShareServer:
    return ShareServer(
        pair.terms, share, pair.stores[share], pair.keys[share], GROUPING, Senders(1_000_000), lambda line: None
    )


def test_bodies_that_come_at_once_have_a_limit_and_are_asked_to_come_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pair = StorePair(tmp_path, ITEMS, fewest=2)
    server = _server(pair, "b")
    sent, _ = sealed(pair.terms, summand(pair.terms, [1]), Receipt.new(), Operation.ADD)
    monkeypatch.setattr(apps, "_MOST_HELD", len(sent["b"]) - 1)
    status, answer = posted(server.app(()), "/v1/messages", sent["b"])
    assert (status, b"try again later" in answer, server.held.total()) == (503, True, 0)
    monkeypatch.undo()
    assert posted(server.app(()), "/v1/messages", sent["b"]) == (200, b'{"new":true}')
    assert not server.held


@pytest.mark.parametrize("share", SHARES)
def test_a_full_disk_is_no_refusal_and_names_no_path(share: Share, tmp_path: Path) -> None:
    """A client that hears 503 sends the same message again; 400 would have it take the message for refused."""
    resource = pytest.importorskip("resource", reason="files cannot be limited here")
    pair = StorePair(tmp_path, ITEMS, fewest=2)
    server = _server(pair, share)
    sent, _ = sealed(pair.terms, summand(pair.terms, [1]), Receipt.new(), Operation.ADD)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (16, hard))  # less than a share, and than a page of the journal
    try:
        status, answer = posted(server.app(()), "/v1/messages", sent[share])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert (status, json.loads(answer)) == (503, {"error": NO_ROOM})
    assert not list((tmp_path / share / "waiting").iterdir())
    assert posted(server.app(()), "/v1/messages", sent[share]) == (200, b'{"new":true}')


def test_how_many_contributed_is_answered_while_the_store_is_at_work(tmp_path: Path) -> None:
    """A batch of large sums is opened for seconds, in another thread."""
    pair = StorePair(tmp_path, ITEMS, fewest=2)
    pair.send(summand(pair.terms, [1]), Receipt.new())
    server, answers = _server(pair, "b"), list[tuple[int, bytes]]()
    asking = threading.Thread(target=lambda: answers.append(asked(server.app(()), "/v1/status")), daemon=True)
    with pair.stores["b"].guard:
        asking.start()
        asking.join(60)
        assert answers, "it waited for the store"
    assert (answers[0][0], json.loads(answers[0][1])["waiting"]) == (200, 1)


def test_a_stranger_cannot_send_the_other_servers_path_more_than_it_would(tmp_path: Path) -> None:
    pair = StorePair(tmp_path, ITEMS, fewest=2)
    server = _server(pair, "a")
    for path, most in (("known", ENTRY * ASKED_TOGETHER), ("batch", NAME * pair.terms.most)):
        known = server._mark(f"/v1/peer/{path}", "0" * 64)
        for mark, why in (("", "not from the other server"), (known, f"expected {most:,} at most")):
            headers = {"content-length": str(most + 1), apps.PEER: mark}
            status, answer = posted(server.app(()), f"/v1/peer/{path}", b"", headers)
            assert (status, why.encode() in answer) == (400, True)


def _stalled(host: str, path: str, first: bytes, headers: dict[str, str]) -> tuple[Any, Any, list[bytes]]:
    """Scope and messages of a request that has sent its first bytes and stays; and what was read of it."""
    given = [(name.encode(), value.encode()) for name, value in headers.items()]
    scope = {"type": "http", "method": "POST", "path": path, "query_string": b"", "client": (host, 5), "headers": given}
    read: list[bytes] = []

    async def receive() -> Any:
        if read:
            await asyncio.Event().wait()
        read.append(first)
        return {"type": "http.request", "body": first, "more_body": True}

    return scope, receive, read


async def _ignored(_: Any) -> None:
    return


def test_an_address_that_stalls_takes_its_own_share_and_nobody_elses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pair = StorePair(tmp_path, ITEMS, fewest=2)
    server = _server(pair, "b")
    sent, _ = sealed(pair.terms, summand(pair.terms, [1]), Receipt.new(), Operation.ADD)
    size = len(sent["b"])
    monkeypatch.setattr(apps, "_MOST_HELD", 4 * size)

    async def tried() -> None:
        app, headers = server.app(()), {"content-length": str(size)}
        stalled = [_stalled("192.0.2.1", "/v1/messages", sent["b"][:-1], headers)[:2] for _ in range(6)]
        tasks = [asyncio.ensure_future(app(*one, _ignored)) for one in stalled]
        for _ in range(50):
            await asyncio.sleep(0)
        assert dict(server.held) == {"192.0.2.1": size - 1}, "its others are asked to come again"
        answers: list[Any] = []

        async def send(message: Any) -> None:
            answers.append(message)

        scope, _, _ = _stalled("192.0.2.2", "/v1/messages", b"", headers)
        await app(scope, _whole(sent["b"]), send)
        assert answers[0]["status"] == 200
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    asyncio.run(tried())
    assert not server.held


def _whole(body: bytes) -> Any:
    async def receive() -> Any:
        return {"type": "http.request", "body": body, "more_body": False}

    return receive


def test_of_a_stranger_at_the_other_servers_path_nothing_is_read(tmp_path: Path) -> None:
    server = _server(StorePair(tmp_path, ITEMS, fewest=2), "a")
    for mark in ("", "0" * 128, "\xe9" * 128):
        scope, receive, read = _stalled("192.0.2.1", "/v1/peer/batch", b"x", {"content-length": "16", apps.PEER: mark})
        asyncio.run(asyncio.wait_for(server.app(())(scope, receive, _ignored), 60))
        assert not read


def _from(host: str, *forwarded: str) -> Request:
    headers = [(b"x-forwarded-for", one.encode()) for one in forwarded]
    return Request({"type": "http", "headers": headers, "client": (host, 5)})


def test_the_address_is_the_proxys_word_also_where_it_adds_a_line_of_its_own() -> None:
    senders = Senders(2, behind_proxy=True)
    for claimed in ("1.1.1.1", "2.2.2.2"):
        senders.count(_from("127.0.0.1", claimed, "203.0.113.9"))
    with pytest.raises(TooManyError):
        senders.count(_from("127.0.0.1", "3.3.3.3", "203.0.113.9"))
    senders.count(_from("127.0.0.1", "203.0.113.9", "3.3.3.3"))


def test_addresses_of_version_4_at_a_socket_of_version_6_are_not_one_network() -> None:
    senders = Senders(1)
    senders.count(_from("::ffff:198.51.100.1"))
    senders.count(_from("::ffff:198.51.100.2"))
    with pytest.raises(TooManyError):
        senders.count(_from("::ffff:198.51.100.1"))


def test_an_agreement_whose_numbers_are_all_zero_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no agreement of format 1"):
        StorePair(tmp_path, ITEMS, {"table": [0]}, fewest=2)


def test_agreements_are_checked_without_assertions_too(tmp_path: Path) -> None:
    content = json.loads(StorePair(tmp_path, ITEMS, fewest=2).terms.content)
    (tmp_path / "agreement.json").write_text(json.dumps({**content, "fewest": 0}))
    code = (
        "import pathlib, sys\nfrom ownview.base.errors import DataError\nfrom ownview.one_message.terms import Terms\n"
        "try: Terms.read(pathlib.Path(sys.argv[1]).read_bytes())\nexcept DataError as error: print(error)\n"
    )
    line = [sys.executable, "-O", "-c", code, str(tmp_path / "agreement.json")]
    assert "ValueError: fewest" in subprocess.run(line, capture_output=True, text=True, check=True).stdout


def test_noise_of_all_groups_is_below_the_edge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sum over g groups has the noise of g draws: eigenvalues that are nothing but noise must not count."""
    pytest.importorskip("dp_accounting")
    edges = []

    def noted(gram: Any, _: float, edge: float) -> Any:
        edges.append(edge)
        return gram

    monkeypatch.setattr(solving, "weights_above", noted)

    def edge_of(groups: int) -> float:
        budget = ShareBudget.planned(1.0, 1e-5)
        terms: Terms = StorePair(tmp_path / str(groups), ITEMS, fewest=2, budget=budget, groups=groups).terms
        solving.solve(terms, np.zeros(terms.size, dtype=np.int64), 3, 20, {}, 1)
        return float(edges.pop())

    assert edge_of(9) == pytest.approx(3 * edge_of(1))
    assert math.isfinite(edge_of(6))


def test_it_is_said_what_to_do_where_server_a_refuses_a_batch_for_good(tmp_path: Path) -> None:
    """As after a's folder came back from a backup: b would ask for ever."""
    pair = StorePair(tmp_path, ITEMS, fewest=2)
    bound = listening("127.0.0.1", 0)
    pair.terms.urls["a"] = f"http://127.0.0.1:{bound.getsockname()[1]}"
    http = uvicorn.Server(uvicorn.Config(_server(pair, "a").app(()), ws="none", lifespan="off", log_config=None))
    asking = _server(pair, "b")

    async def asked() -> None:
        serving = asyncio.create_task(http.serve([bound]))
        try:
            await asyncio.to_thread(asking._ask_batch, [bytes(NAME)])
        finally:
            http.should_exit = True
            await serving

    with pytest.raises(
        MessageError, match=r"is not here, or was opened before.*came back from a backup, bring the newest"
    ):
        asyncio.run(asked())


def test_a_server_that_cannot_open_any_more_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would go on taking messages, and look well."""
    pair = StorePair(tmp_path, ITEMS, fewest=2)
    server = _server(pair, "b")

    def broken(_: object) -> int:
        raise RuntimeError("out of order")

    monkeypatch.setattr(pair.stores["b"], "confirm", broken)
    bound = listening("127.0.0.1", 0)
    http = uvicorn.Server(uvicorn.Config(server.app(()), ws="none", lifespan="off", log_config=None))
    with pytest.raises(RuntimeError, match="out of order"):
        asyncio.run(_both(server, http, bound, lambda line: None))
