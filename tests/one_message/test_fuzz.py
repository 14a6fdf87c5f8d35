"""Five thousand spoilt messages: each is refused with one line, nothing is thrown, and memory does not grow."""

from __future__ import annotations

import http.client
import random
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("cryptography.hazmat.primitives.hpke")
pytest.importorskip("starlette")

from ownview.one_message.envelope import Operation, Receipt, sealed
from ownview.one_message.numbers import summand
from ownview.one_message.terms import Share
from tests.one_message.federations import Federation, simulated

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("node") is None, reason="needs node"),
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads memory under /proc"),
]
ITEMS = [f"item {number}" for number in range(60)]
MESSAGES, WARM = 5000, 1500
GROWTH = 8 << 20
"""Bytes that may differ between the 1,500th message and the last: pools of the allocator, not what messages leave."""
_OTHERS = ("/v1/peer/known", "/v1/peer/batch", "/v1/agreement", "/v1/weights/../../a.key", "/v1/x")
_PATHS = ("/v1/messages",) * 6 + _OTHERS


def resident(process: int) -> int:
    """Bytes of memory that a process holds."""
    return int(Path(f"/proc/{process}/statm").read_text(encoding="utf-8").split()[1]) * 4096


def spoilt(good: bytes, chance: random.Random) -> bytes:
    """Another message: flipped, cut, longer, of other parts, or nothing of a message at all."""
    body = bytearray(good)
    for _ in range(chance.randint(1, 5)):
        body[chance.randrange(len(body))] ^= 1 << chance.randrange(8)
    match chance.randrange(6):
        case 0:
            return bytes(body[: chance.randrange(len(body))])
        case 1:
            return bytes(body) + chance.randbytes(chance.randrange(1, 3000))
        case 2:
            return chance.randbytes(chance.randrange(0, 4000))
        case 3:
            body[5] = chance.randrange(256)
    return bytes(body)


def test_five_thousand_spoilt_messages(tmp_path: Path) -> None:
    chance = random.Random(12)
    with Federation(tmp_path, ITEMS, fewest=2) as servers:
        good, _ = sealed(servers.terms, summand(servers.terms, [1, 2]), Receipt.new(), Operation.ADD)
        lines: dict[Share, http.client.HTTPConnection] = {
            share: http.client.HTTPConnection("127.0.0.1", servers.ports[share], timeout=30) for share in ("a", "b")
        }
        before: dict[str, int] = {}
        for number in range(MESSAGES):
            if number == WARM:
                before = {share: resident(servers.processes[share].pid) for share in lines}
            share: Share = chance.choice(("a", "b"))
            headers = {"ownview-peer": chance.choice(("", "0" * 64, "\xe9"))} if chance.random() < 0.2 else {}
            lines[share].request("POST", chance.choice(_PATHS), spoilt(good[share], chance), headers)
            answer = lines[share].getresponse()
            assert answer.status in (400, 404, 405), answer.status
            said = answer.read()
            assert b"Traceback" not in said
            assert said.count(b"\n") <= 1
        grown = {share: resident(servers.processes[share].pid) - before[share] for share in lines}
        print(f"{MESSAGES:,} spoilt messages; memory grew by {grown} bytes since the {WARM:,}th")  # noqa: T201 - with -s
        for line in lines.values():
            line.close()
        assert max(grown.values()) < GROWTH
        for said_by in servers.lines.values():
            assert 1 < len(said_by) < 200  # a few lines a minute, the rest counted
            assert all(line.startswith(("ownview sums: ", "ownview: ")) for line in said_by)  # and no traceback
            assert any("refused: " in line for line in said_by)
        people = [{"history": ["item 3", "item 4"], "fate": "plain", "later": []}] * 2
        assert '"failed":[]' in servers.contributors(people).communicate(timeout=120)[0]
        servers.until_counted(2)
    assert np.array_equal(servers.total(), simulated(servers.terms, people)[0])
