"""Known faults end a build; a database that cannot be reached, or answers nonsense, does not."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from tools.bill import Component, bill

from tools import faults

SOUND, FAULTY = Component("sound", "1.0", "MIT"), Component("faulty", "2.0", "MIT")
ANSWER = {"results": [{}, {"vulns": [{"id": "GHSA-1", "modified": "2026-01-01T00:00:00Z"}, {"id": "GHSA-2"}]}]}


@contextmanager
def _database(answer: bytes, status: int = 200) -> Iterator[tuple[str, list[Any]]]:
    """A server on loopback in the database's place: its address, and the questions it was asked."""
    questions: list[Any] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            questions.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(status)
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            """Tests print nothing."""

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", questions
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def listed(tmp_path: Path) -> Path:
    path = tmp_path / "sbom.json"
    path.write_text(json.dumps(bill([SOUND, FAULTY])), encoding="utf-8")
    return path


def test_a_known_fault_is_named_with_its_package_and_ends_the_build(
    listed: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with _database(json.dumps(ANSWER).encode()) as (address, questions):
        assert faults.main(listed, address) == 1
    assert capsys.readouterr().out == "known faults: pkg:pypi/faulty@2.0: GHSA-1, GHSA-2\n"
    assert questions == [{"queries": [{"package": {"purl": it.purl}} for it in (SOUND, FAULTY)]}]


def test_faults_that_were_weighed_and_accepted_end_nothing(listed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(faults, "ACCEPTED", {"GHSA-1": "not called", "GHSA-2": "not called"})
    with _database(json.dumps(ANSWER).encode()) as (address, _):
        assert faults.main(listed, address) == 0


@pytest.mark.parametrize(
    ("answer", "status"), [(b"<html>", 200), (b"[]", 200), (b'{"results": [{}]}', 200), (b"{}", 200), (b"{}", 503)]
)
def test_an_answer_that_is_none_is_said_in_one_line_and_not_taken_for_no_faults(
    answer: bytes, status: int, listed: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with _database(answer, status) as (address, _):
        assert faults.main(listed, address) == 0
    output = capsys.readouterr().out
    assert output.startswith("known faults: not checked")
    assert output.count("\n") == 1


def test_without_a_network_the_build_goes_on(listed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with _database(b"") as (address, _):
        pass
    assert faults.main(listed, address) == 0
    assert capsys.readouterr().out.startswith("known faults: not checked")
