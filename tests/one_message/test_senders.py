"""Who may send how much: a rate by address, a proof of work, strict headers; and nginx with TLS in front."""

from __future__ import annotations

import http.client
import shutil
import ssl
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("cryptography.hazmat.primitives.hpke")
pytest.importorskip("starlette")

from ownview.one_message.envelope import Operation, Receipt, sealed
from ownview.one_message.numbers import summand
from ownview.one_message.sender import worked
from ownview.one_message.terms import Share
from tests.one_message.federations import Federation, free_port, simulated

NODE = pytest.mark.skipif(shutil.which("node") is None, reason="needs node")
ITEMS = [f"item {number}" for number in range(30)]
PEOPLE = [{"history": ["item 1", "item 2", f"item {k}"], "fate": "plain", "later": []} for k in range(3, 6)]
EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "shares_nginx.conf"


def _posted(port: int, body: bytes, headers: dict[str, str]) -> tuple[int, dict[str, str], bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request("POST", "/v1/messages", body, headers)
        answer = connection.getresponse()
        return answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()
    finally:
        connection.close()


@NODE
def test_work_is_asked_for_the_rate_is_kept_and_headers_are_strict(tmp_path: Path) -> None:
    options = ("--per-minute", "12", "--behind-proxy")
    with Federation(tmp_path, ITEMS, fewest=3, work=9, options=options) as servers:
        sent, _ = sealed(servers.terms, summand(servers.terms, [1, 2]), Receipt.new(), Operation.ADD)
        port, body = servers.ports["b"], sent["b"]
        proof = worked(body, 9)
        for said in ("", "zz", "0" * 15, proof[:-1], f"{int(proof, 16) ^ 1:016x}"):
            status, _, answer = _posted(port, body, {"ownview-work": said} if said else {})
            assert (status, b"no proof of work of 9 bits" in answer) == (400, True)
        status, headers, answer = _posted(port, body, {"ownview-work": proof, "origin": "https://page.example"})
        assert (status, answer) == (200, b'{"new":true}')
        assert headers["content-security-policy"] == "default-src 'none'; frame-ancestors 'none'"
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cache-control"] == "no-store"
        assert headers["access-control-allow-origin"] == "*"
        codes = [_posted(port, body, {"ownview-work": proof})[0] for _ in range(8)]
        assert (codes[0], codes[-1]) == (200, 429)
        # Another address is counted by itself; one network of 64 bits counts as one.
        for address, expected in (("192.0.2.1", 200), ("spoofed, 192.0.2.2", 200)):
            assert _posted(port, body, {"ownview-work": proof, "x-forwarded-for": address})[0] == expected
        many = [
            _posted(port, body, {"ownview-work": proof, "x-forwarded-for": f"2001:db8::{k}"})[0] for k in range(1, 15)
        ]
        assert (many[0], many[-1]) == (200, 429)
    with Federation(_new(tmp_path / "next"), ITEMS, fewest=3, work=9) as servers:
        assert '"failed":[]' in servers.contributors(PEOPLE).communicate(timeout=120)[0]
        servers.until_counted(3)


def _new(folder: Path) -> Path:
    folder.mkdir()
    return folder


@contextmanager
def _nginx(folder: Path, ports: dict[Share, int], behind: dict[Share, int]) -> Iterator[None]:
    """The example's configuration for each share, with paths and ports of the test."""
    running = []
    for share, port in ports.items():
        place = folder / f"nginx-{share}"
        place.mkdir()
        text = EXAMPLE.read_text(encoding="utf-8")
        for old, new in (
            ("/run/ownview-nginx.pid", str(place / "pid")), ("/var/lib/ownview", str(place)),
            ("listen 443 ssl", f"listen 127.0.0.1:{port} ssl"), ("b.example", "localhost"),
            ("/etc/ownview/certificate.pem", str(folder / "certificate.pem")),
            ("/etc/ownview/key.pem", str(folder / "key.pem")), ("127.0.0.1:8082", f"127.0.0.1:{behind[share]}"),
        ):  # fmt: skip
            assert old in text
            text = text.replace(old, new)
        (place / "nginx.conf").write_text(text, encoding="utf-8")
        line = ["nginx", "-p", str(place), "-c", str(place / "nginx.conf"), "-g", "daemon off;"]
        running.append(subprocess.Popen(line, stderr=subprocess.DEVNULL))
    try:
        yield
    finally:
        for process in running:
            process.terminate()
            process.wait(30)


@NODE
@pytest.mark.skipif(shutil.which("nginx") is None or shutil.which("openssl") is None, reason="needs nginx and openssl")
def test_the_example_of_nginx_carries_messages_over_tls(tmp_path: Path) -> None:
    certificate = tmp_path / "certificate.pem"
    line = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days",
            "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-keyout",
            str(tmp_path / "key.pem"), "-out", str(certificate)]  # fmt: skip
    subprocess.run(line, check=True, capture_output=True, timeout=60)
    ports: dict[Share, int] = {"a": free_port(), "b": free_port()}
    urls: dict[Share, str] = {share: f"https://localhost:{port}" for share, port in ports.items()}
    trust = {"SSL_CERT_FILE": str(certificate), "NODE_EXTRA_CA_CERTS": str(certificate)}
    options = ("--per-minute", "100", "--behind-proxy")
    servers = Federation(tmp_path, ITEMS, fewest=3, urls=urls, environment=trust, options=options)
    with _nginx(tmp_path, ports, servers.ports), servers:
        assert '"failed":[]' in servers.contributors(PEOPLE).communicate(timeout=120)[0]
        servers.until_counted(3)
        context = ssl.create_default_context(cafile=str(certificate))
        connection = http.client.HTTPSConnection("localhost", ports["b"], timeout=30, context=context)
        connection.request("GET", "/v1/status")
        answer = connection.getresponse()
        assert (answer.status, answer.read()[:1]) == (200, b"{")
        assert answer.headers.get_all("strict-transport-security") == ["max-age=31536000"]
        connection.request("GET", "/other")
        answer = connection.getresponse()
        assert answer.status == 404
        answer.read()
        connection.request("POST", "/v1/status", bytes(2000))
        answer = connection.getresponse()
        assert answer.status == 413
        answer.read()
        connection.close()
        time.sleep(0.1)
    assert np.array_equal(servers.total(), simulated(servers.terms, PEOPLE)[0])
