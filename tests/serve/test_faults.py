"""What goes wrong in a server costs one request, one model or one line of the log, and never the others."""

from __future__ import annotations

import copy
import json
import os
import shutil
import signal
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from ownview.base.errors import DataError
from ownview.serve import app as apps
from ownview.serve.app import Service
from ownview.serve.arms import ImpressionLog, Split
from ownview.serve.client import ServeClient
from ownview.serve.counters import Counters, make
from ownview.serve.model import ServedModel
from ownview.serve.stock import Stock
from ownview.serve.supervisor import Offer, Supervisor
from tests.asgi import posted
from tests.serve.servers import serving

FULL = Path("/dev/full")


@pytest.fixture
def metrics(tmp_path: Path) -> Counters:
    make(tmp_path / "metrics", 1)
    return Counters(tmp_path / "metrics", 1, 0)


def _posted(service: Service, path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
    status, answer = posted(service.app(), path, json.dumps(body).encode())
    return status, json.loads(answer)


def test_an_error_that_was_not_foreseen_is_counted(
    model: ServedModel, metrics: Counters, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise KeyError("an item")

    monkeypatch.setattr(apps, "recommended", broken)
    with pytest.raises(KeyError):
        _posted(Service({"a": model}, metrics), "/v1/recommend", {"history": []})
    assert 'ownview_requests_total{route="recommend",status="5xx"} 1' in metrics.text([])


@pytest.mark.skipif(not FULL.exists(), reason="needs a device that is always full")
def test_a_log_that_cannot_be_written_keeps_no_list_from_anybody(model: ServedModel, metrics: Counters) -> None:
    service = Service({"a": model, "b": model}, metrics, split=Split(bytes(32), 0.5), log=ImpressionLog(FULL))
    status, answer = _posted(service, "/v1/recommend", {"history": [], "unit": "visit"})
    assert (status, bool(answer["recommendations"]), "impression" in answer) == (200, True, False)
    status, answer = _posted(service, "/v1/chosen", {"impression": "0" * 24})
    assert (status, answer) == (503, {"error": "impression: the log cannot be written"})
    assert "ownview_unlogged_total 2" in metrics.text([])


def test_a_stock_file_with_a_mark_of_byte_order_loses_no_item(tmp_path: Path, model: ServedModel) -> None:
    (tmp_path / "stock.txt").write_text(f"{model.items[0][0]}\n", encoding="utf-8-sig")
    stock = Stock(tmp_path / "stock.txt")
    stock.refresh()
    assert stock.mask(model).sum() == 1


def _damaged(about: dict[str, Any]) -> list[dict[str, Any]]:
    """A description without each of its parts, and with others in their place."""
    found = []
    for name in about:
        others: tuple[Any, ...] = (None, [], {}, "x", 7)
        for value in others:
            one = copy.deepcopy(about)
            one[name] = value
            found.append(one)
        found.append({key: value for key, value in about.items() if key != name})
    return [*found, {}, {"format": 1}]


@pytest.mark.parametrize("kind", ["whole", "rows"])
def test_a_damaged_description_is_one_error_and_no_other(
    kind: str, served_folder: Callable[[str], Path], tmp_path: Path
) -> None:
    folder = tmp_path / "model"
    shutil.copytree(served_folder(kind), folder)
    about = json.loads((folder / "model.json").read_text())
    refused = 0
    for one in _damaged(about):
        (folder / "model.json").write_text(json.dumps(one))
        try:
            ServedModel(folder)
        except DataError:
            refused += 1
    assert refused >= 10


def test_after_a_model_that_cannot_be_served_the_next_one_is(
    served_folder: Callable[[str], Path], tmp_path: Path
) -> None:
    model = tmp_path / "model"
    shutil.copytree(served_folder("whole"), model)
    with serving(model, "--workers", "1") as server, ServeClient(server.url) as client:
        sound = (model / "model.json").read_text()
        (model / "model.json").write_text(json.dumps({**json.loads(sound), "form": 7}))
        server.until(lambda: server.said("the model that was there stays"), "refused")
        assert server.said(f"{model}: cannot be served"), "by the name that a person knows"
        os.kill(server.workers()[0], signal.SIGKILL)
        server.until(lambda: len(server.said("ready at")) == 2, "a worker begins with the model before")
        assert client.recommend(["Title 9"]).items
        shutil.rmtree(model)
        shutil.copytree(served_folder("rows"), model)
        expected = ServedModel(served_folder("rows")).version
        server.until(lambda: server.said(f"is now {expected}"), "swapped")
        assert client.version()["models"]["a"]["model"] == expected


def test_a_model_that_the_system_refuses_to_read_ends_no_server(served_folder: Callable[[str], Path]) -> None:
    said: list[str] = []
    supervisor = Supervisor(Offer({"a": served_folder("whole")}, port=0), said.append)
    before, refused = dict(supervisor.folders), Future[Path]()
    refused.set_exception(OSError(24, "Too many open files"))
    supervisor._hand_over("a", refused)
    assert said == ["[Errno 24] Too many open files; the model that was there stays"]
    assert supervisor.folders == before
    supervisor._end()
