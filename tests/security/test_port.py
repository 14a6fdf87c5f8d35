"""A stranger at the port cannot stop the server, nor take its memory.

Before: the carrier on plain TLS had a thread for every connection and no limit on them. With 256 files, 300 half-open
connections ended `accept` for good, also after they had gone. Flower's link kept bodies of unauthenticated senders in
memory, 500 MB each.
"""

from __future__ import annotations

import socket
import ssl
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ownview.deploy.https.app import App
from ownview.deploy.https.bounded_log import BoundedLog
from ownview.deploy.https.contexts import place_context
from ownview.deploy.https.limits import Limits
from ownview.deploy.https.pace import Pace
from ownview.deploy.https.polling import Line
from ownview.deploy.https.server import HttpsTransport
from ownview.deploy.identities.keys import KnownKeys
from tests.deploy.lines import Running, enrolled, wait_for
from tests.security.storm import half_open, still_open, without_certificate

SMALL = Limits(strangers=8, per_address=6, head=0.5, head_bytes=2048, lines=5, waiting=2)


class Echo:
    """Answers with what it was asked."""

    def answer(self, message: bytes) -> bytes:
        return message


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, KnownKeys]:
    return enrolled(tmp_path_factory.mktemp("certificates"), ("east", "north"))


@pytest.fixture
def server(certificates: tuple[Path, KnownKeys]) -> Iterator[tuple[HttpsTransport, list[str]]]:
    said: list[str] = []
    made = HttpsTransport(("127.0.0.1", 0), *certificates, said.append, SMALL, longest=1000)
    yield made, said
    made.close()


def test_half_open_connections_are_few_and_a_place_gets_in_beside_them(
    server: tuple[HttpsTransport, list[str]], certificates: tuple[Path, KnownKeys]
) -> None:
    line, said = server
    with half_open(line.address, 100) as silent:
        wait_for(lambda: still_open(silent) <= SMALL.per_address)
        running = Running(Echo(), line.address, certificates[0], "north")
        wait_for(lambda: list(line.places()) == ["north"])
        line.send("north", b"hello")
        assert line.receive(60) == [("north", b"hello")]
        running.end()
    assert 0 < len(said) <= SMALL.lines + 1, "a hundred refusals are a few lines"
    assert all(one.startswith("127.0.0.1: refused: ") for one in said)


def test_a_silent_connection_ends_by_itself(certificates: tuple[Path, KnownKeys]) -> None:
    line = HttpsTransport(("127.0.0.1", 0), *certificates, limits=Limits(handshake=0.2))
    with half_open(line.address, 4) as silent:
        wait_for(lambda: still_open(silent) == 0)
    line.close()


def test_without_a_certificate_no_request_is_read(
    server: tuple[HttpsTransport, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[object] = []

    async def noted(app: App, *given: object) -> None:
        asked.append(given)

    monkeypatch.setattr(App, "_answer", noted)
    for _ in range(3):
        assert not without_certificate(server[0].address, 1 << 22)
    assert not asked
    wait_for(lambda: len(server[1]) >= 3)
    assert all("refused: no mutual TLS" in one for one in server[1])


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (b"POST /v1/answer HTTP/1.1\r\nHost: x\r\nownview-message: 9\r\nContent-Length: 900000000\r\n\r\n", b"409"),
        (b"POST /v1/answer HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello", b"409"),
        (b"POST /v1/enrol HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello", b"403"),
        (b"GET /v1/elsewhere HTTP/1.1\r\nHost: x\r\n\r\n", b"404"),
        (b"GET /v1/next HTTP/1.1\r\nHost: x\r\n" + b"a: %s\r\n\r\n" % (b"b" * 9000), b"431"),
        (b"GET /v1/next HTTP/1.1\r\nHost: x\r\n" + b"a: b\r\n" * 1100 + b"\r\n", b"431"),
        (b"\xff\xfe no HTTP\r\n\r\n", b"400"),
    ],
)
def test_an_enrolled_place_that_asks_wrongly_is_refused_before_its_body_is_read(
    server: tuple[HttpsTransport, list[str]], certificates: tuple[Path, KnownKeys], head: bytes, status: bytes
) -> None:
    with _connected(server[0], certificates[0], "east") as one:
        one.sendall(head)
        answer = one.recv(1 << 12)
        assert answer.startswith(b"HTTP/1.1 " + status), answer
        _wait_for_end(one)
    wait_for(lambda: bool(server[1]))
    assert server[0].receive(0) == []


@pytest.mark.parametrize(("length", "status"), [(b"Content-Length: 1001", 413), (b"Transfer-Encoding: chunked", 411)])
def test_an_answer_that_was_asked_for_has_a_length_and_a_limit(
    server: tuple[HttpsTransport, list[str]], certificates: tuple[Path, KnownKeys], length: bytes, status: int
) -> None:
    line = server[0]
    with _connected(line, certificates[0], "east") as one:
        one.sendall(b"GET /v1/next HTTP/1.1\r\nHost: x\r\n\r\n")
        assert one.recv(1 << 12).startswith(b"HTTP/1.1 204")
        line.send("east", b"hello")
        one.sendall(b"GET /v1/next HTTP/1.1\r\nHost: x\r\n\r\n")
        assert b"ownview-message: 1\r\nownview-longest: 1000\r\n" in _read_until(one, b"hello")
        one.sendall(b"POST /v1/answer HTTP/1.1\r\nHost: x\r\nownview-message: 1\r\n" + length + b"\r\n\r\n")
        assert f" {status} ".encode() in one.recv(1 << 12)
    assert line.receive(0) == []


def test_a_head_that_comes_byte_by_byte_is_given_up(
    server: tuple[HttpsTransport, list[str]], certificates: tuple[Path, KnownKeys]
) -> None:
    with _connected(server[0], certificates[0], "east") as one:
        one.settimeout(0.02)

        def ended() -> bool:
            try:
                one.sendall(b"G")
                return one.recv(1) == b""
            except TimeoutError:
                return False
            except OSError:
                return True

        wait_for(ended)


def test_a_certificate_has_one_connection_and_a_place_few_messages(
    server: tuple[HttpsTransport, list[str]], certificates: tuple[Path, KnownKeys]
) -> None:
    line = server[0]
    made = [_connected(line, certificates[0], "east") for _ in range(5)]
    for one in made[:-1]:
        _wait_for_end(one)
    made[-1].sendall(b"GET /v1/next HTTP/1.1\r\nHost: x\r\n\r\n")
    assert made[-1].recv(1 << 12).startswith(b"HTTP/1.1 204")
    for number in range(5):
        line.send("east", b"%d" % number)
    last = Line(line.address, place_context(certificates[0], "east"))
    taken = []
    for _ in range(SMALL.waiting):
        response = last.request("GET", "next")
        taken.append(last.read(response, 10))
        last.request("POST", "answer", b"", response.headers["ownview-message"]).read()
    assert taken == [b"3", b"4"]
    last.close()
    for one in made:
        one.close()


def test_handshakes_begin_at_a_steady_pace_however_many_come() -> None:
    clock = [0.0]
    pace = Pace(10, lambda: clock[0])
    begun = 0
    while clock[0] < 60:  # the next one is always there
        clock[0] += max(pace.wait(), 1e-4)
        begun += 1
    assert 600 <= begun <= 600 + 11, "sixty seconds, and those of the second before"
    clock[0] += 1000
    assert [pace.wait() for _ in range(12)] == pytest.approx([0.0] * 10 + [0.1, 0.2])


def test_a_flood_of_handshakes_is_taken_at_that_pace_and_a_place_gets_in(certificates: tuple[Path, KnownKeys]) -> None:
    line = HttpsTransport(("127.0.0.1", 0), *certificates, limits=Limits(handshakes=20, handshake=0.2))
    started = time.monotonic()
    for _ in range(60):
        assert not without_certificate(line.address, 0)
    assert time.monotonic() - started > 40 / 20 - 0.1, "the first twenty come at once"
    running = Running(Echo(), line.address, certificates[0], "north")
    wait_for(lambda: list(line.places()) == ["north"])
    running.end()
    line.close()


def test_the_log_says_how_much_it_leaves_out() -> None:
    said: list[str] = []
    clock = [0.0]
    log = BoundedLog(said.append, 3, lambda: clock[0])
    for number in range(1000):
        log(f"line {number}")
    assert said == ["line 0", "line 1", "line 2"]
    clock[0] = 20.0
    log("later")
    assert said[-1] == "later (997 more lines left out)"


def _connected(line: HttpsTransport, certificates: Path, name: str) -> ssl.SSLSocket:
    plain = socket.create_connection(line.address, timeout=60)
    return place_context(certificates, name).wrap_socket(plain, server_hostname=line.address[0])


def _read_until(one: ssl.SSLSocket, last: bytes) -> bytes:
    """What comes, up to some bytes."""
    read = b""
    while not read.endswith(last):
        read += one.recv(1 << 12)
    return read


def _wait_for_end(one: ssl.SSLSocket) -> None:
    """Until the server has hung up, however it does that."""
    try:
        while one.recv(1 << 12):
            pass
    except (ConnectionError, ssl.SSLError):
        pass
