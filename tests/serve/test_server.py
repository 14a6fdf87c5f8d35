"""A running server: what it answers, that it swaps and restarts without an error, and that it keeps nothing."""

from __future__ import annotations

import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from ownview.base.errors import MessageError
from ownview.runs.files.versions import publish
from ownview.serve.arms import BUCKETS, Split, read_key
from ownview.serve.asking import LONGEST_BODY
from ownview.serve.client import ServeClient
from ownview.serve.listing import recommended
from ownview.serve.model import ServedModel
from ownview.serve.openapi import document
from tests.pages.worlds import USERS
from tests.serve.servers import PATIENCE, Server, serving
from tests.serve.worlds import fitted

pytest.importorskip("starlette")


@pytest.fixture(scope="module")
def folder(served_folder: Callable[[str], Path]) -> Path:
    return served_folder("whole")


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[Server]:
    with serving(folder, "--workers", "1") as one:
        yield one


def test_the_client_gets_the_lists_of_the_model(server: Server, folder: Path) -> None:
    model = ServedModel(folder)
    history = [model.items[i][0] for i in (2, 11, 30)]
    with ServeClient(server.url) as client:
        assert client.healthy()
        found = client.recommend([*history, "unknown-id"], k=7, explain=True, diversity=0.2, popularity=0.1)
        wishes = {"k": 7, "explain": True, "diversity": 0.2, "popularity": 0.1, "again": False, "in_stock": True}
        asked = {"history": history, **wishes}
        expected = recommended(model, asked, None)
        assert [(one.item, one.title, one.score) for one in found.items] == [
            (one["item"], one["title"], one["score"]) for one in expected["recommendations"]
        ]
        assert found.unknown == ("unknown-id",)
        assert found.model == model.version
        assert (
            client.recommend(user="u5").items
            == client.recommend([model.items[i][0] for i in model.history_of("u5") or ()]).items
        )
        assert len(client.similar(history[0], k=3)) == 3
        assert client.items("title 1", k=2)[0][1].startswith("Title 1")
        assert client.version()["models"]["a"]["items"] == model.size


def _raw(
    server: Server, method: str, path: str, body: bytes | None = None
) -> tuple[int, bytes, http.client.HTTPMessage]:
    parts = urlsplit(server.url)
    connection = http.client.HTTPConnection(str(parts.hostname), parts.port, timeout=60)
    try:
        connection.request(method, path, body)
        response = connection.getresponse()
        return response.status, response.read(), response.headers
    finally:
        connection.close()


def test_the_document_names_every_route_and_each_answers(server: Server) -> None:
    status, body, _ = _raw(server, "GET", "/openapi.json")
    assert (status, json.loads(body)) == (200, json.loads(json.dumps(document())))
    for path, methods in document()["paths"].items():
        for method in methods:
            answered, said, headers = _raw(server, method.upper(), path, b"{}" if method == "post" else None)
            assert b"nothing here" not in said, path
            assert answered < 500
            assert headers["cache-control"] == "no-store"


def test_what_is_too_much_is_one_line(server: Server) -> None:
    with ServeClient(server.url) as client:
        with pytest.raises(MessageError, match="expected 1,048,576 bytes at most"):
            client.recommend([str(k) for k in range(10**6)])
        with pytest.raises(MessageError, match=r"20,000 items; expected 10,000 at most"):
            client.recommend(["1"] * 20_000)
        assert client.recommend(["Title 9"] * 10_000, k=1).items  # and it goes on
    status, body, _ = _raw(server, "POST", "/v1/recommend", b"x" * (LONGEST_BODY + 1))
    assert status == 413
    assert json.loads(body)["error"].count("\n") == 0
    assert _raw(server, "GET", "/v1/similar?item=none")[0] == 404
    assert _raw(server, "DELETE", "/v1/recommend")[0] in (404, 405)


def test_a_head_that_is_too_long_or_no_http_ends_the_connection(server: Server) -> None:
    parts = urlsplit(server.url)
    for sent in (b"GET / HTTP/1.1\r\nx: " + b"a" * 100_000, b"\x00\x01\x02 nonsense\r\n\r\n"):
        with socket.create_connection((str(parts.hostname), int(parts.port or 0)), timeout=30) as one:
            try:
                one.sendall(sent)
                answer = one.recv(4096)
            except ConnectionError:
                answer = b""
            assert answer == b"" or b" 400 " in answer


def test_metrics_count_what_was_asked_and_never_what_was_in_it(server: Server) -> None:
    with ServeClient(server.url) as client:
        client.recommend(["Title 20", "a-secret-id-that-no-model-has"])
    text = _raw(server, "GET", "/metrics")[1].decode()
    counts = {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in text.splitlines() if line[0] != "#"}
    assert counts['ownview_requests_total{route="recommend",status="2xx"}'] >= 1
    assert counts['ownview_request_seconds_count{route="recommend"}'] == sum(
        counts[f'ownview_requests_total{{route="recommend",status="{kind}"}}'] for kind in ("2xx", "4xx", "5xx")
    )
    assert counts["ownview_unknown_ids_total"] >= 1
    assert "secret" not in text
    assert not any("secret" in line or "Title 20" in line for line in server.lines)


def test_models_are_swapped_and_workers_killed_without_an_error(
    served_folder: Callable[[str], Path], tmp_path: Path
) -> None:
    first, second = served_folder("whole"), served_folder("product")
    versions = {ServedModel(one).version for one in (first, second)}
    link = tmp_path / "model"
    link.symlink_to(first)
    seen, wrong, stop = set[str](), list[str](), threading.Event()

    def ask(url: str) -> None:
        with ServeClient(url) as client:
            while not stop.is_set():
                try:
                    seen.add(client.recommend(["Title 9", "Title 33"], k=5).model)
                except MessageError as error:
                    wrong.append(str(error))

    with serving(link, "--workers", "2") as server:
        threads = [threading.Thread(target=ask, args=(server.url,)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for place in range(3):
            fresh = tmp_path / "fresh"
            fresh.symlink_to((second, first)[place % 2])
            fresh.replace(link)
            server.until(lambda place=place: len(server.said("is now")) >= 2 * (place + 1), "swapped")  # type: ignore[misc]
        victim = server.workers()[0]
        os.kill(victim, signal.SIGKILL)
        server.until(lambda: len(server.said("ready at")) >= 2, "started again")
        stop.set()
        for thread in threads:
            thread.join()
        assert server.workers()
        assert victim not in server.workers()
    assert wrong == []
    assert seen == versions


def test_the_whole_server_is_killed_and_started_again_at_a_socket_that_is_held(folder: Path) -> None:
    """As under systemd: connections wait meanwhile, and unanswered requests are sent once more."""
    answers, wrong, stop = list[str](), list[str](), threading.Event()

    def ask(url: str) -> None:
        with ServeClient(url, timeout=PATIENCE) as client:
            while not stop.is_set():
                try:
                    answers.append(client.recommend(["Title 9", "Title 33"], k=5).model)
                except MessageError as error:
                    wrong.append(str(error))

    with socket.create_server(("127.0.0.1", 0), backlog=64) as held:
        with serving(folder, "--workers", "2", held=held) as server:
            assert server.url.endswith(f":{held.getsockname()[1]}")
            threads = [threading.Thread(target=ask, args=(server.url,)) for _ in range(4)]
            for thread in threads:
                thread.start()
            server.until(lambda: len(answers) > 20, "answers")
            server.process.kill()
            server.process.wait()
        before = len(answers)
        with serving(folder, "--workers", "2", held=held) as server:
            server.until(lambda: len(answers) > before + 20, "answers again")
            stop.set()
            for thread in threads:
                thread.join()
    assert wrong == []


def _copied(source: Path, place: Path) -> None:
    shutil.copytree(source, place, dirs_exist_ok=True)


def test_the_version_of_a_run_that_is_put_in_use_is_served(
    served_folder: Callable[[str], Path], tmp_path: Path
) -> None:
    first, second = (fitted(served_folder(kind).parent, kind).folder.path for kind in ("whole", "rows"))
    expected = ServedModel(served_folder("rows")).version
    model = tmp_path / "model"
    shutil.copytree(first, model)
    with serving(model, "--workers", "1") as server, ServeClient(server.url) as client:
        assert client.version()["models"]["a"]["users"] == USERS
        publish(model, lambda place: _copied(second, place))
        server.until(lambda: server.said(f"is now {expected}"), "swapped")
        assert client.recommend(user="u1").model == expected


def test_a_model_that_cannot_be_read_changes_nothing(folder: Path, tmp_path: Path) -> None:
    model = tmp_path / "model"
    shutil.copytree(folder, model)
    with serving(model, "--workers", "1") as server, ServeClient(server.url) as client:
        before = client.version()
        (model / "model.safetensors").write_bytes(b"damaged")
        server.until(lambda: server.said("is damaged"), "refused")
        assert client.version() == before
        assert client.recommend(["Title 9"]).items


def test_the_stock_file_is_watched(folder: Path, tmp_path: Path) -> None:
    stock = tmp_path / "stock.txt"
    stock.write_text("Title 10\n\nTitle 11\nno-such-item\n", encoding="utf-8")
    with serving(folder, "--workers", "1", "--in-stock", str(stock)) as server, ServeClient(server.url) as client:
        assert {one.item for one in client.recommend([], k=50).items} == {"Title 10", "Title 11"}
        stock.write_text("Title 12\n", encoding="utf-8")
        server.until(lambda: [one.item for one in client.recommend([], k=50).items] == ["Title 12"], "read again")
        stock.unlink()
        server.until(lambda: server.said("what was in stock before stays"), "one line")
        assert [one.item for one in client.recommend([], k=50).items] == ["Title 12"]


def test_two_models_share_units_by_a_key_and_the_log_names_no_one(
    served_folder: Callable[[str], Path], tmp_path: Path
) -> None:
    folders = {"a": served_folder("whole"), "b": served_folder("product")}
    versions = {arm: ServedModel(folder).version for arm, folder in folders.items()}
    key, log = tmp_path / "key", tmp_path / "log.jsonl"
    words = ("--against", str(folders["b"]), "--key", str(key), "--log", str(log), "--workers", "2")
    units = [f"person-{number}@example.org" for number in range(60)]
    arms = dict[str, str]()
    for _ in range(2):  # the second server is the first one started again
        with serving(folders["a"], *words) as server, ServeClient(server.url) as client:
            for unit in units:
                found = client.recommend(["Title 9"], unit=unit)
                assert found.arm is not None
                assert found.impression is not None
                assert found.model == versions[found.arm]
                assert arms.setdefault(unit, found.arm) == found.arm
            client.chosen(str(found.impression))
            assert client.recommend(["Title 9"]).impression is None
            with pytest.raises(MessageError, match="expected the name"):
                client.chosen("no\nname")
    assert len({*arms.values()}) == 2
    split = Split(read_key(key), 0.5)
    assert arms == {unit: split.arm(unit) for unit in units}
    text = log.read_text(encoding="utf-8")
    lines = [json.loads(line) for line in text.splitlines()]
    assert sum("shown" in line for line in lines) == 120
    assert sum("chosen" in line for line in lines) == 2
    assert all(0 <= line["bucket"] < BUCKETS for line in lines if "shown" in line)
    assert "person" not in text
    assert "Title" not in text
    assert key.stat().st_mode & 0o77 == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["no-such-folder"], "holds no model; expected the folder of a finished run or of ownview export"),
        (["MODEL", "--log", "x"], "go with --against"),
        (["MODEL", "--against", "MODEL"], "needs --key FILE"),
        (["MODEL", "--in-stock", "no-such-file"], "expected ids of items, one a line"),
        (["MODEL", "--host", "256.0.0.1"], "expected an address of this machine"),
    ],
)
def test_what_cannot_be_served_is_one_line(words: list[str], said: str, folder: Path, tmp_path: Path) -> None:
    line = [str(folder) if word == "MODEL" else word for word in words]
    done = subprocess.run(
        [sys.executable, "-m", "ownview", "serve", *line], cwd=tmp_path, capture_output=True, text=True, timeout=120,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "OWNVIEW_PROGRESS": "off"}, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert said in done.stderr
    assert done.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []
