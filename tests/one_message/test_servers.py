"""Two servers and many tabs: what is opened is the simulation's sum, whatever tabs and servers do."""

from __future__ import annotations

import random
import shutil
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("cryptography.hazmat.primitives.hpke")
pytest.importorskip("starlette")

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from ownview.base.errors import DataError, MessageError
from ownview.one_message.envelope import Operation, Receipt, opened, sealed
from ownview.one_message.numbers import summand
from ownview.one_message.serving import read_secret
from ownview.one_message.store import ShareStore
from tests.one_message.federations import Federation, simulated

pytestmark = pytest.mark.skipif(shutil.which("node") is None, reason="needs node")
ITEMS = [f"item {number}" for number in range(60)]
FATES = ["plain"] * 12 + ["twice"] * 2 + ["closed"] * 2 + ["unsent", "back", "back", "update"]


def _people(count: int, seed: int) -> list[dict[str, Any]]:
    chance = random.Random(seed)

    def history() -> list[str]:
        return [*(chance.choice(ITEMS) for _ in range(chance.randint(1, 40))), "unknown item"]

    return [{"history": history(), "fate": chance.choice(FATES), "later": history()} for _ in range(count)]


def _adds(people: list[dict[str, Any]]) -> int:
    return sum(one["fate"] in ("plain", "twice", "back", "update") for one in people)


LAST = {"history": ["item 3", "item 4"], "fate": "plain", "later": []}


def _lasts(people: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Those whose last one fills a batch of one more than `_adds`: who takes back in the same batch does not count."""
    return [LAST] * (1 + sum(one["fate"] == "back" for one in people))


def _sent(servers: Federation, people: list[dict[str, Any]]) -> None:
    out, err = servers.contributors(people).communicate(timeout=400)
    assert '"failed":[]' in out, (out, err, servers.lines)


@pytest.mark.parametrize("method", ["fedease", "counts"])
def test_two_batches_are_the_simulations_sum(method: str, tmp_path: Path) -> None:
    people = _people(60, 1)
    with Federation(tmp_path, ITEMS, method, fewest=_adds(people) + 1) as servers:
        for _ in range(2):
            _sent(servers, people)
            before = servers.status("b")
            _sent(servers, _lasts(people))  # the batch is full now
            servers.until_counted(before["contributions"] + simulated(servers.terms, [*people, *_lasts(people)])[1])
        assert servers.status("b")["batches"] == servers.status("a")["batches"] == 2
    assert np.array_equal(servers.total(), 2 * simulated(servers.terms, [*people, *_lasts(people)])[0])


def test_kills_lose_nothing_and_count_nothing_twice(tmp_path: Path) -> None:
    people, chance = _people(80, 2), random.Random(5)
    with Federation(tmp_path, ITEMS, fewest=_adds(people) + 1) as servers:
        working = servers.contributors(people)
        for _ in range(6):
            time.sleep(chance.random())
            share = chance.choice(("a", "b"))
            servers.kill(share)  # type: ignore[arg-type]
            servers.start(share)  # type: ignore[arg-type]
        assert '"failed":[]' in working.communicate(timeout=400)[0]
        _sent(servers, _lasts(people))
        servers.kill("b")  # perhaps while the batch is opened
        servers.start("b")
        expected, count = simulated(servers.terms, [*people, *_lasts(people)])
        servers.until_counted(count)
    assert np.array_equal(servers.total(), expected)


def test_neither_server_keeps_a_history_or_a_share_that_both_could_be_read_with(tmp_path: Path) -> None:
    people = [{"history": ["item 7", "item 8", "item 9"], "fate": "plain", "later": []} for _ in range(5)]
    with Federation(tmp_path, ITEMS, fewest=5) as servers:
        _sent(servers, people)
        servers.until_counted(5)
    plain = summand(servers.terms, [7, 8, 9]).tobytes()
    for share in ("a", "b"):
        for path in (tmp_path / share).rglob("*"):
            content = path.read_bytes() if path.is_file() else b""
            assert plain not in content
            assert b"item 7" not in content
    store = ShareStore(tmp_path / "a", servers.terms, "a")
    assert store._rows("SELECT COUNT(*) FROM messages WHERE key IS NOT NULL")[0][0] == 0
    assert list((tmp_path / "b" / "waiting").iterdir()) == []
    store.close()


@pytest.fixture
def stores(tmp_path: Path) -> tuple[Federation, dict[str, ShareStore]]:
    servers = Federation(tmp_path, ITEMS, fewest=3)
    return servers, {share: ShareStore(tmp_path / share, servers.terms, share) for share in ("a", "b")}


def _put(
    stores: tuple[Federation, dict[str, ShareStore]], history: list[int], receipt: Receipt, how: Operation
) -> None:
    servers, both = stores
    sent, _ = sealed(servers.terms, summand(servers.terms, history), receipt, how)
    for share, store in both.items():
        key = X25519PrivateKey.from_private_bytes(read_secret(servers.folder / f"{share}.key"))
        message = opened(servers.terms, share, key, sent[share])  # type: ignore[arg-type, index]
        assert store.put(message)
        assert not store.put(message)


def test_too_few_are_never_opened_and_server_a_decides_for_itself(
    stores: tuple[Federation, dict[str, ShareStore]],
) -> None:
    _, both = stores
    for _ in range(2):
        _put(stores, [1, 2], Receipt.new(), Operation.ADD)
    assert both["b"].confirm(both["a"].known) == 2
    assert both["b"].open(lambda names: both["a"].batch(names).read_bytes()) == 0
    names = [row[0] for row in both["b"]._rows("SELECT name FROM messages ORDER BY name")]
    with pytest.raises(MessageError, match="adds 2 contributions; expected 3"):
        both["a"].batch(names)
    with pytest.raises(MessageError, match="not different and ascending"):
        both["a"].batch([*names, names[0]])
    _put(stores, [1, 2], Receipt.new(), Operation.ADD)
    both["b"].confirm(both["a"].known)
    assert both["b"].open(lambda names: both["a"].batch(names).read_bytes()) == 3
    with pytest.raises(MessageError, match="not here, or was opened before"):
        both["a"].batch(sorted([*names, b"x" * 16]))


def test_only_who_has_the_secret_takes_a_contribution_out_and_once(
    stores: tuple[Federation, dict[str, ShareStore]],
) -> None:
    receipt = Receipt.new()
    _put(stores, [1, 2], receipt, Operation.ADD)
    with pytest.raises(MessageError, match="another secret"):
        _put(stores, [1, 2], Receipt(receipt.contribution, bytes(32)), Operation.TAKE_OUT)
    with pytest.raises(MessageError, match="no such contribution"):
        _put(stores, [1, 2], Receipt.new(), Operation.CHANGE)
    _put(stores, [1, 2], receipt, Operation.TAKE_OUT)
    with pytest.raises(MessageError, match="taken out already"):
        _put(stores, [1, 2], receipt, Operation.CHANGE)


def test_a_folder_of_another_agreement_is_refused(stores: tuple[Federation, dict[str, ShareStore]]) -> None:
    servers, _ = stores
    with pytest.raises(DataError, match="another agreement"):
        ShareStore(servers.folder / "a", servers.terms, "b")


def test_nonsense_is_one_line_and_servers_go_on(tmp_path: Path) -> None:
    chance = random.Random(9)
    with Federation(tmp_path, ITEMS, fewest=2) as servers:
        good, _ = sealed(servers.terms, summand(servers.terms, [1]), Receipt.new(), Operation.ADD)
        for _ in range(300):
            share = chance.choice(("a", "b"))
            body = bytearray(good[share])  # type: ignore[index]
            for _ in range(chance.randint(1, 4)):
                body[chance.randrange(len(body))] ^= 1 << chance.randrange(8)
            path = chance.choice(("/v1/messages", "/v1/messages", "/v1/peer/known", "/v1/peer/batch"))
            cut = bytes(body[: chance.choice((0, 10, len(body), len(body)))])
            request = urllib.request.Request(f"{servers.terms.urls[share]}{path}", cut, method="POST")  # type: ignore[index]
            with pytest.raises(urllib.error.HTTPError) as refused:
                urllib.request.urlopen(request, timeout=30)
            assert refused.value.code in (400, 404)
            refused.value.close()
        assert all("Traceback" not in line for lines in servers.lines.values() for line in lines)
        _sent(servers, [LAST, LAST])
        servers.until_counted(2)
