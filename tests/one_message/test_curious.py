"""What a curious server has: its disk and its memory are searched, and attacked; and what both together have."""

from __future__ import annotations

import random
import shutil
import sqlite3
import sys
import urllib.request
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("cryptography.hazmat.primitives.hpke")
pytest.importorskip("starlette")

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from ownview.one_message.envelope import Operation, Receipt, opened, sealed, stream
from ownview.one_message.numbers import summand, triangle
from ownview.one_message.terms import Share, Terms
from tests.one_message.federations import Federation

pytestmark = [
    pytest.mark.skipif(shutil.which("node") is None, reason="needs node"),
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads the memory of processes under /proc"),
]
ITEMS = [f"item {number}" for number in range(120)]
PEOPLE, SEARCHED = 60, 8
_ERRORS = 6.0
"""Standard errors that an area under the curve may be away from a half."""


def _people() -> list[dict[str, Any]]:
    """Histories with a run of neighbours, so that their numbers stand side by side."""
    chance = random.Random(3)
    found = []
    for _ in range(PEOPLE):
        begin = chance.randrange(100)
        run = list(range(begin, begin + 8))
        chance.shuffle(run)
        found.append({"history": [ITEMS[item] for item in run], "fate": "plain", "later": []})
    return found


def memory(process: int) -> bytes:
    """Everything that a process has written into its memory."""
    found = []
    with Path(f"/proc/{process}/mem").open("rb", buffering=0) as content:
        for line in Path(f"/proc/{process}/maps").read_text(encoding="utf-8").splitlines():
            begin, end = (int(one, 16) for one in line.split()[0].split("-"))
            if line.split()[1].startswith("rw") and "[v" not in line:
                try:
                    content.seek(begin)
                    found.append(content.read(end - begin))
                except (OSError, ValueError, OverflowError):
                    continue  # gone meanwhile, or not to be read
    return b"\0".join(found)


def _places(terms: Terms, one: dict[str, Any]) -> list[int]:
    return [terms.place[item] for item in one["history"]]


def _signatures(terms: Terms, people: list[dict[str, Any]]) -> list[bytes]:
    """Seven numbers side by side of every contribution, as bytes; and its history as text."""
    found = []
    for one in people:
        low = min(_places(terms, one))
        begin = int(triangle(np.array(low), np.array(low), len(ITEMS)))
        found.append(summand(terms, _places(terms, one))[begin : begin + 7].astype("<u4").tobytes())
        found.append(",".join(f'"{item}"' for item in one["history"]).encode())
    return found


def area(scores: Any, truth: Any) -> tuple[float, float]:
    """Under the curve of guesses, and its standard error where guesses are blind."""
    order = scores.argsort(kind="stable")
    ranks = np.empty(len(scores))
    ranks[order] = np.arange(1, len(scores) + 1)
    ones, zeros = int(truth.sum()), int((~truth).sum())
    found = (ranks[truth].sum() - ones * (ones + 1) / 2) / (ones * zeros)
    return float(found), float(np.sqrt((ones + zeros + 1) / (12 * ones * zeros)))


def _cells(terms: Terms, item: int) -> Any:
    """Places of all numbers about an item, its own first."""
    others = np.array([item, *(one for one in range(len(ITEMS)) if one != item)])
    return triangle(np.minimum(others, item), np.maximum(others, item), len(ITEMS))


def _guessed(terms: Terms, shares: list[Any], truth: Any) -> dict[str, tuple[float, float]]:
    """Areas of attacks on shares [n] of contributions: does one have an item?"""
    about = np.stack([_cells(terms, item) for item in range(len(ITEMS))])
    signed = np.stack([share.view(np.int32)[about] for share in shares]).astype(float)  # [u, m, m]
    features = np.concatenate([signed[..., :1], np.sort(np.abs(signed[..., 1:]), axis=-1)[..., :12]], axis=-1)
    features = (features - features.mean((0, 1))) / np.maximum(features.std((0, 1)), 1e-9)
    half = len(shares) // 2
    known, rest = features[:half].reshape(-1, 13), features[half:].reshape(-1, 13)
    weights = np.linalg.solve(known.T @ known + np.eye(13), known.T @ truth[:half].reshape(-1))
    return {
        "its own number near a pair's": area(-np.abs(signed[..., 0] - 4096).reshape(-1), truth.reshape(-1)),
        "small numbers in its row": area(-np.abs(signed).min(-1).reshape(-1), truth.reshape(-1)),
        "learnt from half of the people": area(rest @ weights, truth[half:].reshape(-1)),
    }


def _sent(servers: Federation, people: list[dict[str, Any]]) -> dict[Share, list[bytes]]:
    """Every message as it arrives at its server, in one order."""
    kept: dict[Share, list[bytes]] = {"a": [], "b": []}
    for one in people:
        made, _ = sealed(
            servers.terms, summand(servers.terms, _places(servers.terms, one)), Receipt.new(), Operation.ADD
        )
        for share, body in made.items():
            with urllib.request.urlopen(f"{servers.terms.urls[share]}/v1/messages", body, timeout=30) as answer:
                assert answer.read() == b'{"new":true}'
            kept[share].append(body)
    return kept


def test_a_server_alone_has_nothing_of_a_history_and_both_have_all(tmp_path: Path) -> None:
    people = _people()
    with Federation(tmp_path, ITEMS, fewest=PEOPLE + 1) as servers:
        terms, signatures = servers.terms, _signatures(servers.terms, people[:SEARCHED])
        arrived = _sent(servers, people)
        assert servers.status("b")["waiting"] == PEOPLE
        for share in arrived:
            held = memory(servers.processes[share].pid)
            on_disk = b"\0".join(path.read_bytes() for path in (tmp_path / share).rglob("*") if path.is_file())
            assert (tmp_path / f"{share}.key").read_bytes() in held  # the search finds what is there
            for content in (held, on_disk):
                assert not [one for one in signatures if one in content]
    # A curious server keeps all that it can open; which contribution is whose both together tell, and nothing else.
    read = {share: [_opened(tmp_path, terms, share, body) for body in bodies] for share, bodies in arrived.items()}
    seen: dict[str, list[Any]] = {"a": [stream(key, terms.size) for key in read["a"]]}
    seen["b"] = [np.frombuffer(one, "<u4") for one in read["b"]]
    seen["both"] = [one + other for one, other in zip(seen["a"], seen["b"], strict=True)]
    truth = np.zeros((PEOPLE, len(ITEMS)), dtype=bool)
    for row, one, both in zip(truth, people, seen["both"], strict=True):
        row[_places(terms, one)] = True
        assert np.array_equal(both, summand(terms, _places(terms, one)))
    for who, given in seen.items():
        for attack, (found, error) in _guessed(terms, given, truth).items():
            print(f"{who}: {attack}: area {found:.4f}, blind guesses .5 +- {error:.4f}")  # noqa: T201 - with -s
            if who != "both":
                assert abs(found - 0.5) < _ERRORS * error, (who, attack)
    assert _guessed(terms, seen["both"], truth)["its own number near a pair's"][0] == 1.0


def _opened(folder: Path, terms: Terms, share: Share, body: bytes) -> bytes:
    key = X25519PrivateKey.from_private_bytes((folder / f"{share}.key").read_bytes())
    return opened(terms, share, key, body).share


def test_opened_contributions_leave_no_trace_on_either_disk(tmp_path: Path) -> None:
    people = _people()[:5]
    with Federation(tmp_path, ITEMS, fewest=5) as servers:
        assert '"failed":[]' in servers.contributors(people).communicate(timeout=200)[0]
        servers.until_counted(5)
        journal = sqlite3.connect(tmp_path / "a" / "journal.sqlite")
        assert journal.execute("SELECT COUNT(*) FROM messages WHERE key IS NOT NULL").fetchone() == (0,)
        journal.close()
        assert list((tmp_path / "b" / "waiting").iterdir()) == []
        signatures = _signatures(servers.terms, people)
        for share in ("a", "b"):
            for path in (tmp_path / share).rglob("*"):
                content = path.read_bytes() if path.is_file() else b""
                assert not [one for one in signatures if one in content]
